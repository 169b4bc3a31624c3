//! `docs/what-happens.md` beside the code.

use std::time::Duration;

use distlock::Overlap;
use lock_core::validity::margin;

const PAGE: &str = include_str!("../../docs/what-happens.md");

#[test]
fn the_page_lists_each_overlap_once() {
    for overlap in Overlap::ALL {
        assert_eq!(PAGE.matches(&format!("\n| `{overlap:?}`")).count(), 1, "{overlap:?}");
    }
}

#[test]
fn the_page_says_the_margin() {
    assert!(PAGE.contains("(a twentieth of T,\n  at least 50 ms)"));
    assert_eq!(margin(Duration::from_secs(20)), Duration::from_secs(1));
    assert_eq!(margin(Duration::ZERO), Duration::from_millis(50));
}
