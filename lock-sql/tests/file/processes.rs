//! Several processes on one file.

use crate::file::child::{self, Other};

#[test]
fn processes_exclude_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let counter = directory.path().join("counter");
    std::fs::write(&counter, "0").unwrap();
    let start = |_| child::start("count", directory.path().to_str().unwrap(), |_| {});
    let others: Vec<Other> = (0..4).map(start).collect();
    others.into_iter().for_each(Other::ends);
    assert_eq!(std::fs::read_to_string(&counter).unwrap(), "200");
}
