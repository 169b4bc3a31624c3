//! TLS to a server with a certificate: checked where asked for, used where offered.

use lock_core::{Error, Locks};
use lock_lab::{MariaDb, Postgres};
use lock_sql::{
    Dialect, SqlLock,
    client::{
        mysql::{MySqlConnectOptions, MySqlPoolOptions, MySqlSslMode},
        postgres::{PgConnectOptions, PgPoolOptions, PgSslMode},
    },
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::{Database, connect, locks, on_both, support::contend::contend};

on_both!(a_certificate_is_checked, offered_tls_is_used, the_certificates_of_a_pool_count);

/// The certificate of the server's issuer, in a file.
struct Authority(tempfile::NamedTempFile);

impl Authority {
    fn option(&self) -> String {
        format!("?tls=verify&ca={}", self.0.path().display())
    }
}

/// A server with a certificate for `host`, and its issuer.
async fn start(dialect: Dialect, host: &str) -> (Database, Authority) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([host.to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    let authority = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&authority, issuer.pem()).unwrap();
    let (certificate, key) = (certificate.pem(), key.serialize_pem());
    let server = match dialect {
        Dialect::Postgres => {
            let server = Postgres::builder().tls(certificate, key).start().await;
            Database::Postgres(server.unwrap())
        }
        _ => {
            let server = MariaDb::builder().tls(certificate, key).start().await;
            Database::MariaDb(server.unwrap())
        }
    };
    (server, Authority(authority))
}

async fn the_certificates_of_a_pool_count(dialect: Dialect) {
    let (server, authority) = start(dialect, "127.0.0.1").await;
    let (_other, stranger) = start(dialect, "127.0.0.1").await;
    let driver = async |authority: &Authority| match dialect {
        Dialect::Postgres => {
            let options: PgConnectOptions = server.url().parse().unwrap();
            let options = options.ssl_mode(PgSslMode::VerifyFull).ssl_root_cert(&authority.0);
            SqlLock::with_client(&PgPoolOptions::new().connect_lazy_with(options)).await
        }
        _ => {
            let options: MySqlConnectOptions = server.url().parse().unwrap();
            let options = options.ssl_mode(MySqlSslMode::VerifyIdentity).ssl_ca(&authority.0);
            SqlLock::with_client(&MySqlPoolOptions::new().connect_lazy_with(options)).await
        }
    };
    let own = Locks::new(driver(&authority).await.unwrap());
    contend(&own, &locks(&server.url()).await).await;
    let refused = driver(&stranger).await.unwrap_err();
    assert!(refused.to_string().contains("BadSignature"), "{refused}");
}

async fn a_certificate_is_checked(dialect: Dialect) {
    let (server, authority) = start(dialect, "127.0.0.1").await;
    let url = server.url();
    let known = locks(&(url.clone() + &authority.option())).await;
    let guard = known.lock("a").unwrap().acquire().await.unwrap();
    // No authority that this machine trusts has signed it.
    refused(&(url.clone() + "?tls=verify"), "UnknownIssuer").await;
    let (_other, stranger) = start(dialect, "127.0.0.1").await;
    refused(&(url + &stranger.option()), "BadSignature").await;
    guard.release().await.unwrap();

    let (elsewhere, authority) = start(dialect, "elsewhere.example").await;
    let url = elsewhere.url() + &authority.option();
    refused(&url, "not valid for name \"127.0.0.1\"").await;
}

async fn refused(url: &str, why: &str) {
    let error = connect(url).await.unwrap_err();
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
