//! Tables that another user creates.

use crate::place::{Place, said};

/// A user with the right to do so creates them for the clients: lock-sql tests that on servers.
#[test]
fn the_tables_of_a_store() {
    let place = Place::new();
    let (code, sql, error) =
        said(&place.command(&["schema", "--store", "sqlite:"]).output().unwrap());
    assert_eq!((code, error.as_str()), (Some(0), ""));
    for table in ["slots", "entries", "marks"] {
        assert!(
            sql.contains(&format!("CREATE TABLE IF NOT EXISTS distlock_v1_{table} (")),
            "{sql}"
        );
    }
}

#[test]
fn a_store_without_tables() {
    let place = Place::new();
    let etcd = ["schema", "--store", "etcd://user:hidden@127.0.0.1"];
    let (code, text, error) = said(&place.command(&etcd).output().unwrap());
    assert_eq!((code, text.as_str()), (Some(64), ""));
    assert_eq!(error, "distlock: etcd has no tables; postgres, mysql and sqlite have\n");
}
