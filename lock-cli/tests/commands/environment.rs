//! Variables that a client library reads by itself.

use std::{os::unix::fs::PermissionsExt, process::Command};

use lock_lab::Postgres;

use crate::place::{Place, said};

/// The environment gives sqlx the right password, and much that does not fit.
#[test]
fn the_environment_gives_postgres_no_password_and_no_encryption() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Postgres::builder().start()).unwrap();
    let url = server.url();
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, host) = rest.rsplit_once('@').unwrap();
    runtime.block_on(server.sql_as_admin("ALTER USER lab PASSWORD 'right'")).unwrap();
    let place = Place::on(format!("{scheme}://lab:right@{host}"));
    let passwords = place.path().join("pgpass");
    std::fs::write(&passwords, "*:*:*:*:right\n").unwrap();
    std::fs::set_permissions(&passwords, PermissionsExt::from_mode(0o600)).unwrap();
    let from_environment = |command: &mut Command| {
        command.env("PGPASSWORD", "right").env("PGPASSFILE", &passwords);
    };

    let mut nameless = place.command(&["run", "orders", "--", "true"]);
    from_environment(nameless.env("DISTLOCK_STORE", format!("{scheme}://lab@{host}")));
    let refused = nameless.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("password"), "{said}");

    let mut complete = place.command(&["run", "orders", "--", "true"]);
    complete.env("PGPASSWORD", "wrong").env("PGSSLMODE", "verify-full").env("PGPORT", "1");
    let served = complete.env("PGHOST", "nowhere.invalid").output().unwrap();
    assert!(served.status.success(), "{}", String::from_utf8_lossy(&served.stderr));
}

#[test]
fn the_service_links_of_kubernetes_are_no_typing_errors() {
    let place = Place::new();
    let mut command = place.command(&["ls"]);
    command.env_remove("DISTLOCK_STORE").env("HOME", place.path());
    command
        .env("DISTLOCK_ETCD_SERVICE_HOST", "10.0.0.7")
        .env("DISTLOCK_PORT", "tcp://10.0.0.7:2379");
    let (code, _, error) = said(&command.output().unwrap());
    assert_eq!(code, Some(0), "{error}");
}
