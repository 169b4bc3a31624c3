//! Where a server of PostgreSQL, MySQL or MariaDB is, and how to connect to it.

use std::net::IpAddr;

use lock_core::{
    Encryption, Options, Result, Secret, StoreUrl, Timeouts, Tls, User, keep::errors::invalid,
};

/// Where a server is, how to log in, and how to connect. `Debug` does not show the password.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct Server {
    /// Its host name or address, with `:PORT` behind it unless that is 3306 of MySQL, 5432 of
    /// PostgreSQL. Several: those of one deployment, which needs [`failover`](Self::failover).
    pub hosts: Vec<String>,
    /// The user. Default: the client library's, mostly the operating system's user. One from a file
    /// or from the environment is read for each connection, and needs a [`database`](Self::database).
    pub user: Option<User>,
    /// The password. One from a file or from the environment is read for each connection.
    pub password: Option<Secret>,
    /// The database. Default of PostgreSQL: named like the user; MySQL has none.
    pub database: Option<String>,
    /// Whether to encrypt, and with which certificates. Default: [`Encryption::Prefer`].
    #[cfg_attr(feature = "serde", serde(default = "prefer"))]
    pub tls: Tls,
    /// The limits of a connection's waits.
    #[cfg_attr(feature = "serde", serde(default))]
    pub timeouts: Timeouts,
    /// Who moves the role of the primary to another server. Default: nobody.
    pub failover: Option<Failover>,
    /// How the pooler that the host is shares sessions among its clients, on PostgreSQL. Default:
    /// none, and a pooler is refused.
    pub pooler: Option<Pooler>,
}

/// Who moves the role of the primary to another server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Failover {
    /// A program beside the servers, such as Patroni. It makes sure that the former primary takes
    /// no writes before the next one does. Locks do not rely on the list of hosts for that.
    Managed,
}

/// How a pooler of connections, such as PgBouncer, shares the sessions of one PostgreSQL. In either
/// mode each message brings its settings along, and reads which server and database it has come to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Pooler {
    /// A connection keeps its session until it ends. The server pushes.
    Session,
    /// A session per transaction. Waiters poll, as on MySQL.
    Transaction,
}

impl Server {
    /// A server at an address; everything else by default.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        let host = host.into();
        let is_bare = host.contains(':') && !host.starts_with('[');
        let host = if is_bare { format!("[{host}]") } else { host };
        Self {
            hosts: vec![format!("{host}:{port}")],
            user: None,
            password: None,
            database: None,
            tls: prefer(),
            timeouts: Timeouts::default(),
            failover: None,
            pooler: None,
        }
    }

    /// Sets [`user`](Self#structfield.user) and [`password`](Self#structfield.password).
    pub fn login(mut self, user: impl Into<User>, password: impl Into<Secret>) -> Self {
        (self.user, self.password) = (Some(user.into()), Some(password.into()));
        self
    }

    lock_core::setters! {
        /// Sets [`hosts`](Self#structfield.hosts).
        hosts: impl IntoIterator<Item = impl Into<String>>
            => hosts.into_iter().map(Into::into).collect();
        /// Sets [`database`](Self#structfield.database).
        database: impl Into<String> => Some(database.into());
        /// Sets [`tls`](Self#structfield.tls).
        tls: Tls => tls;
        /// Sets [`timeouts`](Self#structfield.timeouts).
        timeouts: Timeouts => timeouts;
        /// Sets [`failover`](Self#structfield.failover).
        failover: Failover => Some(failover);
        /// Sets [`pooler`](Self#structfield.pooler).
        pooler: Pooler => Some(pooler);
    }

    pub(crate) fn from_url(
        url: &StoreUrl,
        options: &mut Options<'_>,
        default_port: u16,
    ) -> Result<Self> {
        if let Some(name) = options.text("server_name") {
            return Err(invalid("server_name", name, HOST_ONLY));
        }
        let modes = [("managed", Failover::Managed)];
        let poolers = [("session", Pooler::Session), ("transaction", Pooler::Transaction)];
        let server = Self {
            hosts: url.hosts(default_port),
            user: User::from_url(url, options)?,
            password: Secret::from_url(url, options)?,
            database: Some(url.path()).filter(|path| !path.is_empty()).map(str::to_owned),
            tls: Tls::from_options(options, Encryption::Prefer)?,
            timeouts: Timeouts::from_options(options)?,
            failover: options.choice("failover", &modes)?,
            pooler: options.choice("pooler", &poolers)?,
        };
        server.check(default_port)?;
        Ok(server)
    }

    /// Says that a machine on the way may get the password, if one may: without a check of the
    /// certificate it can say that there is no TLS, and ask for the password in plain text.
    pub(crate) fn open_login(&self) -> Option<String> {
        let is_open =
            self.tls.mode != Encryption::Verify && !self.hosts.iter().all(|host| is_here(host));
        (self.password.is_some() && is_open).then(|| {
            "the server's certificate is not checked, so a machine on the way can ask for the \
             password and get it: use tls=verify where others can reach the network"
                .to_owned()
        })
    }

    /// Checks what a program or a file has set.
    pub(crate) fn check(&self, default_port: u16) -> Result<()> {
        if let Some(name) = &self.tls.server_name {
            return Err(invalid("server_name", name, HOST_ONLY));
        }
        self.tls.check()?;
        self.timeouts.check()?;
        if self.database.is_none() && self.user.as_ref().is_some_and(User::can_change) {
            return Err(invalid("database", "none", NAMED));
        }
        if self.pooler.is_some() && self.failover.is_some() {
            return Err(invalid("failover", "managed", UNPOOLED));
        }
        let addresses = self.addresses(default_port)?;
        if addresses.is_empty() || addresses.len() > 1 && self.failover.is_none() {
            return Err(invalid("hosts", self.hosts.join(","), MANAGED));
        }
        Ok(())
    }

    /// Refuses a pooler: scripts of MySQL rely on the settings of their session.
    pub(crate) fn check_direct(&self) -> Result<()> {
        let allowed = "none on MySQL and MariaDB: name the server itself";
        self.pooler.map_or(Ok(()), |pooler| {
            Err(invalid("pooler", format!("{pooler:?}").to_lowercase(), allowed))
        })
    }

    /// The hosts, without the brackets of IPv6, and their ports.
    pub(crate) fn addresses(&self, default_port: u16) -> Result<Vec<(String, u16)>> {
        let address = |host: &String| {
            let allowed = "HOST or HOST:PORT, and [ADDRESS]:PORT of IPv6";
            split(host, default_port).ok_or_else(|| invalid("hosts", host, allowed))
        };
        self.hosts.iter().map(address).collect()
    }
}

const MANAGED: &str = "expected one host. Several hosts need failover=managed: a program such as Patroni must make sure \
     that only one of them takes writes at a time, and a failover to a standby that lags loses \
     locks";

/// The client chooses among servers, and finds a former primary, by its own connections to each.
const UNPOOLED: &str = "none with a pooler, which hides the servers from the client: name the servers \
     themselves, or leave failover out";

const NAMED: &str = "a name: without one the user's own may count, and with user_file or user_env \
     another user would have other locks";

/// The client library checks a certificate for the host that it connects to, and for no other name.
const HOST_ONLY: &str = "none on PostgreSQL and MySQL: name the host as in the certificate, and let DNS or the hosts \
     file (/etc/hosts) lead this name to the server";

/// The mode that both servers' own clients have.
fn prefer() -> Tls {
    let mut tls = Tls::default();
    tls.mode = Encryption::Prefer;
    tls
}

/// Whether connections to the host stay on this machine.
fn is_here(host: &str) -> bool {
    let Some((name, _)) = split(host, 0) else { return false };
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    name == "localhost" || name.starts_with('/') || name.parse().is_ok_and(is_loopback)
}

fn split(host: &str, default_port: u16) -> Option<(String, u16)> {
    let bare = |host: &str| {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = !host.is_empty() && (bare.is_some() || !host.contains(':'));
        is_host.then(|| bare.unwrap_or(host).to_owned())
    };
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => Some((bare(name)?, port.parse().ok()?)),
        _ => Some((bare(host)?, default_port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_a_port_or_the_default_one() {
        for (host, expected) in [
            ("h", Some(("h", 7))),
            ("h:8", Some(("h", 8))),
            ("[::1]", Some(("::1", 7))),
            ("[::1]:8", Some(("::1", 8))),
            ("::1", None),
            ("h:x", None),
            ("", None),
        ] {
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(split(host, 7), expected, "{host}");
        }
        assert_eq!(Server::new("::1", 8).addresses(7).unwrap(), [("::1".to_owned(), 8)]);
    }

    #[test]
    fn a_password_on_the_way_through_a_network_is_told() {
        let told = |server: Server| server.login("me", "p").open_login().is_some();
        for here in ["localhost:1", "127.0.0.2", "[::1]:1", "[::ffff:127.0.0.1]", "/run/pg"] {
            assert!(!told(Server::new("a", 7).hosts([here])), "{here}");
        }
        assert!(told(Server::new("127.example", 7)));
        assert!(told(Server::new("localhost", 7).hosts(["localhost", "10.0.0.1"])));
        assert!(!told(Server::new("10.0.0.1", 7).tls(Tls::verify())));
        assert!(told(Server::new("10.0.0.1", 7).tls(Tls::default())));
        assert_eq!(Server::new("10.0.0.1", 7).open_login(), None, "no password");
    }

    #[test]
    fn another_name_in_the_certificate_is_refused_with_advice() {
        for tls in [Tls::verify(), Tls::default()] {
            let server = Server::new("10.0.0.1", 7).tls(tls.server_name("db.example"));
            let error = server.check(7).unwrap_err().to_string();
            assert!(error.contains("server_name") && error.contains("/etc/hosts"), "{error}");
        }
    }

    #[test]
    fn a_user_that_changes_needs_a_database_of_a_fixed_name() {
        let server = Server::new("a", 7).login(User::file("/u"), Secret::file("/p"));
        let error = server.check(7).unwrap_err().to_string();
        assert!(error.contains("user_file") && error.contains("other locks"), "{error}");
        server.database("locks").check(7).unwrap();
        Server::new("a", 7).login("me", Secret::file("/p")).check(7).unwrap();
    }

    #[test]
    fn a_pooler_leads_to_one_server_of_postgres() {
        let server = Server::new("a", 7).pooler(Pooler::Transaction);
        server.check(7).unwrap();
        assert!(server.check_direct().unwrap_err().to_string().contains("MySQL"));
        let error = server.failover(Failover::Managed).check(7).unwrap_err().to_string();
        assert!(error.contains("failover") && error.contains("pooler"), "{error}");
        Server::new("a", 7).check_direct().unwrap();
    }

    #[test]
    fn several_hosts_need_to_be_managed() {
        let server = Server::new("a", 7).hosts(["a", "b:8"]);
        let error = server.check(7).unwrap_err().to_string();
        assert!(error.contains("failover=managed"), "{error}");
        server.failover(Failover::Managed).check(7).unwrap();
        assert!(Server::new("a", 7).hosts([""; 0]).check(7).is_err());
    }
}
