//! Certificates of servers that the client cannot take: what is wrong with them.

use std::{fs, path::Path, process::Command};

use lock_lab::{MariaDb, Postgres};
use lock_sql::Dialect;

use crate::servers::{
    Database, on_both,
    tls::{refused, verify},
};

on_both!(a_certificate_of_version_1_is_named_though_it_is_not_checked);

/// Makes a key, and a certificate that it signs itself. `more` is the text of its extensions:
/// without any it is of version 1.
fn certificate(folder: &Path, more: &str) -> [String; 2] {
    let file = |name: &str| folder.join(name).display().to_string();
    let (key, request, signed, text) = (file("key"), file("request"), file("signed"), file("text"));
    fs::write(&text, more).unwrap();
    let mut make = vec!["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    make.extend(["-nodes", "-subj", "/CN=127.0.0.1", "-keyout", &key, "-out", &request]);
    let mut sign = vec!["x509", "-req", "-in", &request, "-signkey", &key, "-out", &signed];
    if !more.is_empty() {
        sign.extend(["-extfile", &text]);
    }
    for arguments in [make, sign] {
        let made = Command::new("openssl").args(arguments).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    [signed, key].map(|file| fs::read_to_string(file).unwrap())
}

async fn a_certificate_of_version_1_is_named_though_it_is_not_checked(dialect: Dialect) {
    let folder = tempfile::tempdir().unwrap();
    let [signed, key] = certificate(folder.path(), "");
    let server = match dialect {
        Dialect::Postgres => {
            Database::from(Postgres::builder().tls(signed, key).start().await.unwrap())
        }
        _ => Database::from(MariaDb::builder().tls(signed, key).start().await.unwrap()),
    };
    refused(&server.url(), "X.509 version 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_certificate_lacks_is_named() {
    const HOST: &str = "subjectAltName = IP:127.0.0.1\n";
    for (more, trusted, alone) in [
        ("basicConstraints = CA:FALSE\n".to_owned(), "needs a subjectAltName", "signed by itself"),
        (format!("basicConstraints = CA:TRUE\n{HOST}"), "CA:TRUE", "CA:TRUE"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let [signed, key] = certificate(folder.path(), &more);
        let server = Database::from(Postgres::builder().tls(signed, key).start().await.unwrap());
        refused(&(server.url() + &verify(&folder.path().join("signed"))), trusted).await;
        refused(&(server.url() + "?tls=verify"), alone).await;
    }
}
