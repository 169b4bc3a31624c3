//! A disk without room.

use crate::file::child;

/// It passes: the same client goes on when there is room.
#[test]
fn a_full_disk_is_out_of_reach_for_a_moment() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display();
    let mount = format!("mount -t tmpfs -o size=1m none {folder}");
    let mut other = child::start_behind(&mount, "fill", &folder.to_string());
    let said = other.says();
    assert!(said.contains("sqlite is unavailable") && said.contains("full"), "{said}");
    other.says().parse::<u64>().unwrap();
    other.ends();
}
