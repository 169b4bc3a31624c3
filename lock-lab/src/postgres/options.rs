//! The options of a private PostgreSQL.

use std::{
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{self, Output},
};

use tokio::process::Command;

use super::counters;
use crate::{
    Counters, LabError,
    options::Common,
    program,
    sql_account::{NAME, Password},
    sql_client::Client,
    store::{Answer, Arguments, Store},
    template::Template,
    tls::Tls,
};

const INSTALL: &str = "apt-get install postgresql";
/// Debian's folder for the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The user with all rights, as `initdb` names it.
const ADMIN: &str = "postgres";

/// Each database is 300 files to copy, so there is no spare one.
///
/// No login works with the data in the template: the server reads another `pg_hba.conf`, which
/// demands passwords, and there are none yet.
const MAKE: &str = r#"
"$tool" -D new -U postgres -A trust --no-sync --no-instructions --encoding=UTF8 --locale=C \
    --wal-segsize=1 >/dev/null
single() { "$server" --single -D new -c fsync=off "$1" >/dev/null; }
server=$1
single template1 <<'END'
CREATE ROLE lab LOGIN CREATEROLE IN ROLE pg_read_all_stats
ALTER DATABASE postgres OWNER TO lab
ALTER DATABASE postgres RENAME TO lab
ALTER DATABASE template0 IS_TEMPLATE false
DROP DATABASE template0
END
single lab <<'END'
CREATE EXTENSION pg_stat_statements
END
"#;
/// The server refuses a key that other users may read.
const OWN_KEY: &str = "own-key.pem";
const FIRST: &str = r#""$1" --single -D new -c fsync=off lab <password.sql >/dev/null
if [ -f tls-key.pem ]; then install -m 600 tls-key.pem own-key.pem; fi"#;

#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    pub(super) password: Password,
    pub(super) durable: bool,
}

impl PostgresOptions {
    pub(super) fn client(&self, addr: SocketAddr) -> Result<Client, LabError> {
        self.client_as(NAME, addr)
    }

    pub(super) fn admin(&self, addr: SocketAddr) -> Result<Client, LabError> {
        self.client_as(ADMIN, addr)
    }

    fn client_as(&self, user: &str, addr: SocketAddr) -> Result<Client, LabError> {
        let mut command = Command::new(program::find(&newest("psql"), INSTALL)?);
        command
            .args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--no-password"])
            .args(["--field-separator=\t", "--pset=null=NULL", "--set=ON_ERROR_STOP=1"])
            .args(["--username", user, "--dbname", NAME])
            .arg(format!("--host={}", addr.ip()))
            .arg(format!("--port={}", addr.port()))
            .env_clear()
            .env("PGAPPNAME", "lock-lab")
            .env("PGPASSWORD", self.password.as_str());
        Ok(Client { server: "postgres", command, was_cut_off })
    }

    fn server(&self, home: &Path, addr: SocketAddr, tls: Option<&Tls>) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["-D".into(), home.join("data").into()];
        let settings = [
            &format!("listen_addresses={}", addr.ip()),
            &format!("port={}", addr.port()),
            "unix_socket_directories=",
            &format!("fsync={}", if self.durable { "on" } else { "off" }),
            "max_connections=500",
            "max_wal_size=1GB",
            // The other types leave a segment in memory when the server is killed.
            "dynamic_shared_memory_type=mmap",
            "shared_preload_libraries=pg_stat_statements",
            "pg_stat_statements.max=10000",
            "pg_stat_statements.save=off",
        ];
        args.extend(settings.iter().flat_map(|setting| ["-c".into(), setting.into()]));
        let mut files = vec![("hba_file=", "logins.conf")];
        if let Some(tls) = tls {
            args.extend(["-c".into(), "ssl=on".into()]);
            files.extend([("ssl_cert_file=", Tls::CERTIFICATE), ("ssl_key_file=", OWN_KEY)]);
            files.extend(tls.clients.iter().map(|_| ("ssl_ca_file=", Tls::CLIENTS)));
        }
        for (setting, name) in files {
            let mut setting = OsString::from(setting);
            setting.push(home.join(name));
            args.extend(["-c".into(), setting]);
        }
        args
    }
}

impl Store for PostgresOptions {
    fn scheme(&self) -> &'static str {
        "postgres"
    }

    fn login(&self) -> String {
        self.password.login()
    }

    fn path(&self) -> &'static str {
        "/lab"
    }

    fn user(&self) -> Option<&'static str> {
        Some("postgres")
    }

    fn installed(&self, common: &Common) -> Result<(), LabError> {
        common.program(newest("postgres"), INSTALL)?;
        program::find(&newest("initdb"), INSTALL)?;
        program::find(&newest("psql"), INSTALL).map(drop)
    }

    fn command(&self, common: &Common, home: &Path, addrs: &[SocketAddr]) -> Arguments {
        let binary = common.program(newest("postgres"), INSTALL)?;
        let tool = program::find(&newest("initdb"), INSTALL)?;
        let password = [NAME, ADMIN]
            .map(|user| format!("ALTER ROLE {user} PASSWORD '{}'\n", self.password.as_str()))
            .concat();
        let clients = if addrs[0].ip().is_loopback() { "127.0.0.1/32" } else { "0.0.0.0/0" };
        let tls = common.tls.as_ref();
        let logins = logins(clients, tls);
        for (name, text) in [("password.sql", &*password), ("logins.conf", &logins)] {
            fs::write(home.join(name), text).map_err(LabError::io(format!("writing {name}")))?;
        }
        tls.map_or(Ok(()), |tls| tls.write(home))?;
        let mut server = vec![binary.into_os_string()];
        server.extend(self.server(home, addrs[0], tls));
        server.extend(common.args.iter().cloned());
        Template { server: "postgres", tool, make: MAKE, first: FIRST }.command(server)
    }

    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()> {
        Box::pin(async move { self.client(addr)?.run("SELECT 1").await.map(drop) })
    }

    /// Lets the kernel free the server's segment of System V shared memory with its last process.
    /// Otherwise the segment would outlive a killed server, and there is room for a few thousand.
    fn settle(&self, home: &Path) -> Result<(), LabError> {
        let facts = fs::read_to_string(home.join("data/postmaster.pid"))
            .map_err(LabError::io("reading postmaster.pid"))?;
        let Some(segment) = facts.lines().nth(6).and_then(|line| line.split_whitespace().nth(1))
        else {
            return Ok(());
        };
        process::Command::new("ipcrm")
            .args(["-m", segment])
            .status()
            .map_err(LabError::io("starting ipcrm"))?;
        Ok(())
    }

    fn counters(&self, addr: SocketAddr) -> Answer<'_, Counters> {
        Box::pin(async move { Ok(counters::read(&self.client(addr)?.run(counters::ASK).await?)) })
    }
}

/// The logins that the server takes: the first line that fits counts.
fn logins(clients: &str, tls: Option<&Tls>) -> String {
    let certified = match tls.and_then(|tls| tls.clients.as_ref()) {
        Some(_) => format!("hostssl all certified {clients} scram-sha-256 clientcert=verify-ca\n"),
        None => String::new(),
    };
    let host = if tls.is_some_and(|tls| tls.only) { "hostssl" } else { "host" };
    format!("{certified}{host} all all {clients} scram-sha-256\n")
}

/// Returns the program of the newest version that Debian has installed, or else its bare name.
fn newest(name: &str) -> PathBuf {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let programs = versions.filter_map(|version| {
        let program = version.path().join("bin").join(name);
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        program.is_file().then_some((number, program))
    });
    programs.max().map_or_else(|| name.into(), |(_, program)| program)
}

/// psql ends with 2 if it has no connection, or lost it.
fn was_cut_off(output: &Output) -> bool {
    output.status.code() == Some(2)
}
