//! The commands of the pages for databases, on a PostgreSQL and a MariaDB.

use std::{fs, process::Command};

use lock_lab::{MariaDb, Postgres};

use super::{
    block,
    scene::{bash, printed, program},
};
use crate::place::{Place, said};

/// The two servers. On each the user `boss` may make tables, and `app` may not.
struct Servers {
    postgres: Postgres,
    mariadb: MariaDb,
}

impl Servers {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let started = async {
            let postgres = Postgres::builder().in_memory().start().await.expect("PostgreSQL");
            let mariadb = MariaDb::builder().in_memory().start().await.expect("MariaDB");
            let users = "CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'right';
                CREATE ROLE app LOGIN PASSWORD 'right';
                CREATE DATABASE app;";
            postgres.sql_as_admin(users).await.expect("two users");
            let users = "CREATE DATABASE locks;
                CREATE USER boss@'127.0.0.1' IDENTIFIED BY 'right';
                GRANT ALL ON locks.* TO boss@'127.0.0.1' WITH GRANT OPTION;
                CREATE USER app IDENTIFIED BY 'right';";
            mariadb.sql_as_admin(users).await.expect("two users");
            Self { postgres, mariadb }
        };
        runtime.block_on(started)
    }

    /// Lines for a shell of `boss`, as the client programs of both servers read it.
    fn boss(&self, place: &Place, lines: &str) -> Command {
        let port = self.mariadb.addr().port();
        let login = "host=127.0.0.1\nprotocol=tcp\nuser=boss\npassword=right";
        let file = format!("[client]\nport={port}\n{login}\n");
        fs::write(place.path().join(".my.cnf"), file).expect("a file");
        let mut shell = bash(place, lines);
        shell.env("PGPORT", self.postgres.addr().port().to_string());
        shell.env("PGUSER", "boss").env("PGPASSWORD", "right");
        shell
    }
}

#[test]
fn an_administrator_makes_tables_and_raises_the_floor() {
    let (servers, place) = (Servers::start(), Place::new());
    let tables = block("docs/stores/sql.md", "GRANT SELECT").replace("10.0.0.1", "127.0.0.1");
    printed(servers.boss(&place, &tables));
    let postgres = format!("postgres://app:right@{}/app", servers.postgres.addr());
    let mariadb = format!("mysql://app:right@{}/locks", servers.mariadb.addr());
    for url in [&postgres, &mariadb] {
        let (code, _, error) = place.run(&["run", "x", "--store", url, "true"]);
        assert_eq!(code, Some(0), "{error}");
    }
    migrates(&place, &postgres);
    raises(&servers, &place, &postgres);
}

/// The recipe of `docs/cli.md`.
fn migrates(place: &Place, url: &str) {
    program(place, "migrate", "#!/bin/sh\necho \"$*\"\n");
    program(place, "server", "#!/bin/sh\necho serves\n");
    let lines = block("docs/cli.md", "distlock run migrate");
    let shown = printed(bash(place, &lines.replace("postgres://app@10.0.0.1/app", url)));
    let (fence, rest) = shown.split_once('\n').expect("two lines");
    assert!(fence.starts_with("--fence ") && rest == "serves\n", "{shown}");
}

/// Above what the table of `docs/operators.md` has seen. An empty table has seen nothing.
fn raises(servers: &Servers, place: &Place, url: &str) {
    let boss = |lines: &str| {
        let mut shell = servers.boss(place, lines);
        shell.env("PGHOST", "127.0.0.1").env("PGDATABASE", "app").env("DISTLOCK_STORE", url);
        shell
    };
    let raise = block("docs/operators.md", "SELECT max(fence) FROM orders");
    printed(boss("psql --command 'CREATE TABLE orders (fence BIGINT)'"));
    let (code, shown, error) = said(&boss(&raise).output().expect("a shell"));
    assert_eq!(code, Some(64), "{shown}{error}");
    printed(boss("psql --command 'INSERT INTO orders VALUES (4127000)'"));
    let shown = printed(boss(&raise));
    assert!(shown.contains("4127000"), "{shown}");
}
