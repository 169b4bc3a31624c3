//! The token floor.

use lock_core::{Error, LossReason};
use lock_sql::Dialect;

use crate::{
    servers::{Database, locks, on_both},
    support::floor,
};

on_both!(a_raise_removes_what_has_expired);

async fn a_raise_removes_what_has_expired(dialect: Dialect) {
    let server = Database::start(dialect).await;
    floor::a_raise_removes_what_has_expired(locks(&server.url()).await).await;
}

/// Makes each removal of `theirs` do this instead.
async fn guard_theirs(server: &Database, instead: &str) {
    let function = format!(
        "CREATE OR REPLACE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF OLD.name = 'theirs'::bytea THEN {instead}; END IF; RETURN OLD; END $$"
    );
    server.sql(&function).await;
    let trigger = "CREATE OR REPLACE TRIGGER theirs BEFORE DELETE ON distlock_v1_entries \
                   FOR EACH ROW EXECUTE FUNCTION theirs()";
    server.sql(trigger).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_revokes_all_but_the_lock_that_may_not_be_revoked() {
    let server = Database::start(Dialect::Postgres).await;
    let (one, operator) = (locks(&server.url()).await, locks(&server.url()).await);
    let hold = async |name: &str| one.lock(name).unwrap().acquire().await.unwrap();
    let ([first, theirs, last], newest) = (
        [hold("first").await, hold("theirs").await, hold("last").await],
        operator.token_floor().await.unwrap().newest,
    );
    guard_theirs(&server, "RAISE EXCEPTION 'not yours' USING ERRCODE = '42501'").await;
    let refused = operator.raise_token_floor(newest).await.unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
    let shown = refused.to_string();
    assert!(shown.ends_with("below it: theirs") && shown.contains("not yours"), "{shown}");
    for ended in [first, last] {
        assert_eq!(ended.lost().await, LossReason::EntryGone);
    }
    assert!(theirs.is_valid());
    server.sql("DROP TRIGGER theirs ON distlock_v1_entries").await;
    operator.raise_token_floor(newest).await.unwrap();
    assert_eq!(theirs.lost().await, LossReason::EntryGone);
}

/// The database reports that the removal is done, but it is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_that_does_not_end_names_the_locks_below_it() {
    let server = Database::start(Dialect::Postgres).await;
    let (one, operator) = (locks(&server.url()).await, locks(&server.url()).await);
    let theirs = one.lock("theirs").unwrap().acquire().await.unwrap();
    guard_theirs(&server, "RETURN NULL").await;
    let failed = operator.raise_token_floor(theirs.token()).await.unwrap_err();
    assert!(matches!(failed, Error::Unavailable { .. }), "{failed:?}");
    let shown = failed.to_string();
    assert!(shown.ends_with("below it: theirs") && shown.contains("30"), "{shown}");
    assert_eq!(operator.token_floor().await.unwrap().above, theirs.token());
}
