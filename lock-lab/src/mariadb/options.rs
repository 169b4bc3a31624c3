//! The options of a private MariaDB.

use std::{ffi::OsString, fs, net::SocketAddr, path::Path, process::Output};

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

const INSTALL: &str = "apt-get install mariadb-server-core";
const INSTALL_CLIENT: &str = "apt-get install mariadb-client-core";

const ADMIN: &str = "admin";

/// Small files are copied quickly. The server needs the same sizes in its options.
const MAKE: &str = r#"
"$tool" --no-defaults --datadir="$PWD/new" --skip-test-db --innodb-flush-method=nosync \
    --innodb-log-file-size=8M --innodb-data-file-path=ibdata1:5M:autoextend \
    --innodb-autoextend-increment=1 >/dev/null
"#;

#[derive(Clone, Debug, Default)]
pub struct MariaDbOptions {
    password: Password,
    pub(super) durable: bool,
    pub(super) is_tls_only: bool,
}

impl MariaDbOptions {
    pub(super) fn client(&self, addr: SocketAddr, args: &[&str]) -> Result<Client, LabError> {
        self.client_as(NAME, addr, args)
    }

    pub(super) fn admin(&self, addr: SocketAddr) -> Result<Client, LabError> {
        self.client_as(ADMIN, addr, &[])
    }

    fn client_as(&self, user: &str, addr: SocketAddr, args: &[&str]) -> Result<Client, LabError> {
        let mut command = Command::new(program::find(Path::new("mariadb"), INSTALL_CLIENT)?);
        command
            .args(["--no-defaults", "--batch", "--skip-column-names", "--protocol=tcp"])
            .args(["--default-character-set=utf8mb4", "--user", user])
            .arg(format!("--host={}", addr.ip()))
            .arg(format!("--port={}", addr.port()))
            .args(self.is_tls_only.then_some("--ssl"))
            .args(args)
            .env_clear()
            .env("MYSQL_PWD", self.password.as_str());
        Ok(Client { server: "mysql", command, was_cut_off })
    }

    fn server(&self, home: &Path, addr: SocketAddr, tls: Option<&Tls>) -> Vec<OsString> {
        let in_home = |option: &str, name: &str| {
            let mut arg = OsString::from(option);
            arg.push(home.join(name));
            arg
        };
        let sync: &[&str] = match self.durable {
            true => &["--innodb-flush-log-at-trx-commit=1"],
            false => &["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync"],
        };
        let port = format!("--port={}", addr.port());
        let options = [
            "--no-defaults",
            &format!("--bind-address={}", addr.ip()),
            &port,
            "--socket=",
            "--skip-name-resolve",
            "--character-set-server=utf8mb4",
            "--max-connections=500",
            "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=8M",
            "--innodb-data-file-path=ibdata1:5M:autoextend",
            "--innodb-autoextend-increment=1",
        ];
        let mut args: Vec<_> = options.iter().chain(sync).map(OsString::from).collect();
        // Temporary files outside of `home` would stay.
        let places = [("--datadir=", "data"), ("--tmpdir=", ""), ("--init-file=", "init.sql")];
        args.extend(places.map(|(option, name)| in_home(option, name)));
        if let Some(tls) = tls {
            let files = [("--ssl-cert=", Tls::CERTIFICATE), ("--ssl-key=", Tls::KEY)];
            args.extend(files.map(|(option, name)| in_home(option, name)));
            args.extend(tls.clients.iter().map(|_| in_home("--ssl-ca=", Tls::CLIENTS)));
            args.extend(tls.only.then(|| "--require-secure-transport=ON".into()));
        }
        args
    }

    /// Statements for every start, before the server listens.
    fn init(&self, addr: SocketAddr) -> String {
        let clients = if addr.ip().is_loopback() { "127.0.0.1" } else { "%" };
        format!(
            "CREATE DATABASE IF NOT EXISTS {NAME};\n\
             CREATE USER IF NOT EXISTS {NAME}@'{clients}' IDENTIFIED BY '{}';\n\
             GRANT ALL ON {NAME}.* TO {NAME}@'{clients}' WITH GRANT OPTION;\n\
             GRANT CREATE USER, PROCESS ON *.* TO {NAME}@'{clients}';\n\
             CREATE USER IF NOT EXISTS {ADMIN}@'{clients}' IDENTIFIED BY '{}';\n\
             GRANT ALL ON *.* TO {ADMIN}@'{clients}' WITH GRANT OPTION;\n",
            self.password.as_str(),
            self.password.as_str(),
        )
    }
}

impl Store for MariaDbOptions {
    fn scheme(&self) -> &'static str {
        "mysql"
    }

    fn login(&self) -> String {
        self.password.login()
    }

    fn path(&self) -> &'static str {
        "/lab"
    }

    fn user(&self) -> Option<&'static str> {
        Some("mysql")
    }

    fn installed(&self, common: &Common) -> Result<(), LabError> {
        common.program("mariadbd", INSTALL)?;
        program::find(Path::new("mariadb-install-db"), INSTALL)?;
        program::find(Path::new("mariadb"), INSTALL_CLIENT).map(drop)
    }

    fn command(&self, common: &Common, home: &Path, addrs: &[SocketAddr]) -> Arguments {
        let binary = common.program("mariadbd", INSTALL)?;
        let tool = program::find(Path::new("mariadb-install-db"), INSTALL)?;
        let init = self.init(addrs[0]);
        fs::write(home.join("init.sql"), init).map_err(LabError::io("writing init.sql"))?;
        let tls = common.tls.as_ref();
        tls.map_or(Ok(()), |tls| tls.write(home))?;
        let mut server = vec![binary.into_os_string()];
        server.extend(self.server(home, addrs[0], tls));
        server.extend(common.args.iter().cloned());
        Template { server: "mariadb", tool, make: MAKE, first: "" }.command(server)
    }

    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()> {
        Box::pin(async move { self.client(addr, &[NAME])?.run("SELECT 1").await.map(drop) })
    }

    fn counters(&self, addr: SocketAddr) -> Answer<'_, Counters> {
        // Without a database, so that its own connections differ from the others.
        Box::pin(
            async move { Ok(counters::read(&self.client(addr, &[])?.run(counters::ASK).await?)) },
        )
    }
}

/// Errors from 2000 on are the client's own: no connection, or one that broke.
fn was_cut_off(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).lines().any(|line| line.starts_with("ERROR 20"))
}
