//! TLS to a server with a certificate: checked where asked for, used where offered, and each failure
//! with its cause.

use std::{fs, path::Path, sync::OnceLock, time::Duration};

use lock_core::{Error, Locks};
use lock_lab::{Authority, Issued, MariaDb, Pool, Postgres};
use lock_sql::{
    Dialect, SqlLock,
    client::{
        mysql::{MySqlConnectOptions, MySqlPoolOptions, MySqlSslMode},
        postgres::{PgConnectOptions, PgPoolOptions, PgSslMode},
    },
};
use tempfile::NamedTempFile;

use crate::{
    servers::{Database, bounded::bounded, connect, locks, on_both, rotation::end_connections},
    support::contend::contend,
};

on_both!(
    a_key_in_a_file_that_breaks_is_not_shown,
    a_certificate_is_checked,
    an_expired_certificate_is_refused,
    a_server_that_demands_tls_and_certificates_gets_both,
    offered_tls_is_used,
    the_certificates_of_a_pool_count
);

/// Longest time until a refusal.
const SOON: Duration = Duration::from_secs(5);

/// Options that trust the authority in a file.
pub fn verify(ca: &Path) -> String {
    format!("?tls=verify&ca={}", ca.display())
}

/// Starts a server with this certificate.
async fn with(dialect: Dialect, issued: &Issued) -> Database {
    let (certificate, key) = (issued.certificate(), issued.key());
    match dialect {
        Dialect::Postgres => {
            let server = Postgres::builder().tls(certificate, key).start().await;
            Database::from(server.unwrap())
        }
        _ => {
            let server = MariaDb::builder().tls(certificate, key).start().await;
            Database::from(server.unwrap())
        }
    }
}

/// Who has issued a server's certificate.
pub struct Issuer {
    certificate: &'static str,
    file: NamedTempFile,
}

impl Issuer {
    /// The file with its certificate.
    pub fn file(&self) -> &Path {
        self.file.path()
    }
}

/// The servers with a certificate for one host.
struct Named {
    host: &'static str,
    /// Its certificate, the key, and the issuer's certificate.
    issued: OnceLock<[String; 3]>,
    postgres: Pool<Postgres>,
    mariadb: Pool<MariaDb>,
}

impl Named {
    const fn new(host: &'static str) -> Self {
        Self { host, issued: OnceLock::new(), postgres: Pool::new(), mariadb: Pool::new() }
    }

    fn issued(&self) -> &[String; 3] {
        self.issued.get_or_init(|| {
            let authority = Authority::new().unwrap();
            let issued = authority.server(&[self.host]).unwrap();
            [issued.certificate().to_owned(), issued.key().to_owned(), authority.certificate()]
        })
    }
}

/// Takes an empty server with a certificate for `host`. Returns its issuer, too.
pub async fn start(dialect: Dialect, host: &str) -> (Database, Issuer) {
    static NAMED: [Named; 2] = [Named::new("127.0.0.1"), Named::new("elsewhere.example")];
    let named = NAMED.iter().find(|named| named.host == host).expect("one of these hosts");
    let [certificate, key, issuer] = named.issued();
    let server = match dialect {
        Dialect::Postgres => {
            let start = async || Postgres::builder().tls(certificate, key).start().await;
            Database::Postgres(named.postgres.lend(Postgres::empty, start).await.unwrap().into())
        }
        _ => {
            let start = async || MariaDb::builder().tls(certificate, key).start().await;
            Database::MariaDb(named.mariadb.lend(MariaDb::empty, start).await.unwrap().into())
        }
    };
    let file = NamedTempFile::new().unwrap();
    fs::write(&file, issuer).unwrap();
    (server, Issuer { certificate: issuer, file })
}

async fn the_certificates_of_a_pool_count(dialect: Dialect) {
    let (server, authority) = start(dialect, "127.0.0.1").await;
    let stranger = Authority::new().unwrap();
    let driver = async |ca: &Path| match dialect {
        Dialect::Postgres => {
            let options: PgConnectOptions = server.url().parse().unwrap();
            let options = options.ssl_mode(PgSslMode::VerifyFull).ssl_root_cert(ca);
            SqlLock::with_client(&PgPoolOptions::new().connect_lazy_with(options)).await
        }
        _ => {
            let options: MySqlConnectOptions = server.url().parse().unwrap();
            let options = options.ssl_mode(MySqlSslMode::VerifyIdentity).ssl_ca(ca);
            SqlLock::with_client(&MySqlPoolOptions::new().connect_lazy_with(options)).await
        }
    };
    let own = Locks::new(driver(authority.file()).await.unwrap());
    contend(&own, &locks(&server.url()).await).await;
    let refused = driver(stranger.file()).await.unwrap_err();
    assert!(refused.to_string().contains("option ca"), "{refused}");
}

async fn a_certificate_is_checked(dialect: Dialect) {
    let (server, authority) = start(dialect, "127.0.0.1").await;
    let url = server.url();
    let known = locks(&(url.clone() + &verify(authority.file()))).await;
    let guard = known.lock("a").unwrap().acquire().await.unwrap();
    // No authority that this machine trusts has signed it.
    refused(&(url.clone() + "?tls=verify"), "of an authority that is not trusted").await;
    let stranger = Authority::new().unwrap();
    refused(&(url.clone() + &verify(stranger.file())), "option ca").await;
    guard.release().await.unwrap();
    let wrong = server.url_as("lab:wrong") + &verify(authority.file());
    let cause = match dialect {
        Dialect::Postgres => "password authentication failed",
        _ => "Access denied for user 'lab'",
    };
    refused(&wrong, cause).await;

    let (elsewhere, authority) = start(dialect, "elsewhere.example").await;
    let url = elsewhere.url() + &verify(authority.file());
    refused(&url, "for another host name: name the host as in the certificate (DNS or /etc/hosts")
        .await;

    let plain = Database::start(dialect).await;
    refused(&(plain.url() + &verify(authority.file())), "the server offers none").await;
}

/// The client library shows a text that it cannot read.
async fn a_key_in_a_file_that_breaks_is_not_shown(dialect: Dialect) {
    let (server, authority) = start(dialect, "127.0.0.1").await;
    let file = NamedTempFile::new().unwrap();
    fs::write(&file, authority.certificate).unwrap();
    let path = file.path().display().to_string();
    let locks = locks(&format!("{}?tls=verify&ca={path}", server.url())).await;
    let key = Authority::new().unwrap().client("me").unwrap().key().to_owned();
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    fs::write(&file, key.clone() + broken).unwrap();
    end_connections(&server, "lab").await;
    let error = locks.lock("a").unwrap().acquire().await.unwrap_err();
    let shown = format!("{error} {error:?} {:?}", locks.connection());
    assert!(shown.contains(&path), "{shown}");
    let hidden = key.lines().filter(|line| shown.contains(line));
    assert_eq!(hidden.count(), 0, "{shown}");
}

async fn an_expired_certificate_is_refused(dialect: Dialect) {
    let authority = Authority::new().unwrap();
    let server = with(dialect, &authority.expired(&["127.0.0.1"]).unwrap()).await;
    refused(&(server.url() + &verify(authority.file())), "has expired").await;
}

async fn a_server_that_demands_tls_and_certificates_gets_both(dialect: Dialect) {
    let authority = Authority::new().unwrap();
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let (certificate, key) = (issued.certificate(), issued.key());
    let (server, create) = match dialect {
        Dialect::Postgres => {
            let builder = Postgres::builder().tls(certificate, key).tls_only();
            let server = builder.client_authority(authority.certificate()).start().await;
            let create = "CREATE ROLE certified LOGIN PASSWORD 'plain'; \
                          GRANT ALL ON ALL TABLES IN SCHEMA public TO certified";
            (Database::from(server.unwrap()), create)
        }
        _ => {
            let builder = MariaDb::builder().tls(certificate, key).tls_only();
            let server = builder.client_authority(authority.certificate()).start().await;
            let create = "CREATE USER certified@'%' IDENTIFIED BY 'plain' REQUIRE X509; \
                          GRANT ALL ON lab.* TO certified@'%'";
            (Database::from(server.unwrap()), create)
        }
    };
    let other = locks(&(server.url() + &verify(authority.file()))).await;
    server.sql(create).await;
    refused(&(server.url() + "?tls=off"), "the server demands TLS").await;
    let url = server.url_as("certified:plain") + &verify(authority.file());
    refused(&url, "certificate").await;
    let client = authority.client("certified").unwrap();
    let [certificate, key] = client.files().map(|file| file.display().to_string());
    let safe = locks(&format!("{url}&cert={certificate}&key={key}")).await;
    safe.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    other.lock("b").unwrap().acquire().await.unwrap().release().await.unwrap();
}

/// Checks that a server is refused for good, and why.
pub async fn refused(url: &str, why: &str) {
    let error = bounded("a refused connect", SOON, connect(url)).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains(why), "{error}");
}

async fn offered_tls_is_used(dialect: Dialect) {
    let (server, _) = start(dialect, "elsewhere.example").await;
    // MariaDB counts all connections that were made, also the one that asks. PostgreSQL counts this
    // driver's present ones.
    let (how_many, own) = match dialect {
        Dialect::Postgres => {
            let ours = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                        WHERE ssl AND application_name = 'distlock'";
            (ours, 0)
        }
        _ => {
            let accepted = "SELECT variable_value FROM information_schema.global_status \
                            WHERE variable_name = 'Ssl_finished_accepts'";
            (accepted, 1)
        }
    };
    let encrypted = async || server.sql(how_many).await.trim().parse::<u64>().unwrap();
    let before = encrypted().await;
    let plain = locks(&(server.url() + "?tls=off")).await;
    plain.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    let after = encrypted().await;
    assert_eq!(after, before + own);
    let safe = locks(&server.url()).await;
    let guard = safe.lock("a").unwrap().acquire().await.unwrap();
    assert!(encrypted().await > after + own);
    guard.release().await.unwrap();
}
