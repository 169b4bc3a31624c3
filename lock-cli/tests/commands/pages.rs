//! `docs/stores`: each page shows the promises that `distlock stores` prints.

use crate::{place::Place, stores::on_every_store};

on_every_store!(its_page_shows_its_promises);

const PAGES: [(&str, &str); 5] = [
    ("memory", include_str!("../../../docs/stores/memory.md")),
    ("sqlite", include_str!("../../../docs/stores/sqlite.md")),
    ("etcd", include_str!("../../../docs/stores/etcd.md")),
    ("redis", include_str!("../../../docs/stores/redis.md")),
    ("zookeeper", include_str!("../../../docs/stores/zookeeper.md")),
];

/// The rows that depend on the version or the settings of a server.
const OF_THE_SERVER: [&str; 3] = ["a holder may be told after the next grant if", "TTL", "caution"];

fn its_page_shows_its_promises(place: &Place) {
    the_page_shows_the_promises(place, place.store());
}

#[test]
fn memory_shows_its_promises() {
    the_page_shows_the_promises(&Place::new(), "memory:");
}

fn the_page_shows_the_promises(place: &Place, url: &str) {
    let (code, promises, error) = place.run(&["stores", "--store", url]);
    assert_eq!(code, Some(0), "{error}");
    let scheme = url.split(':').next().unwrap();
    let (_, page) = PAGES.iter().find(|(store, _)| *store == scheme).expect("a page");
    let (_, shown) = page.split_once("\n## What it promises\n").expect("the heading");
    let (_, shown) = shown.split_once("```text\n").expect("a block");
    let (shown, _) = shown.split_once("\n```").expect("its end");
    let is_fixed = matches!(scheme, "memory" | "sqlite");
    let rows = promises.lines().skip_while(|row| !row.starts_with("kinds")).filter(|row| {
        let varies = OF_THE_SERVER.iter().any(|label| row.starts_with(label));
        !row.starts_with(".. are above") && (is_fixed || !varies)
    });
    let mut compared = 0;
    for row in rows {
        assert!(shown.lines().any(|line| line == row.trim_end()), "not on the page: {row:?}");
        compared += 1;
    }
    assert!(compared >= 8, "{promises}");
}
