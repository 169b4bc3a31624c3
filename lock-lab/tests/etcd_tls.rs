//! A private etcd with TLS and logins.

use std::process::Stdio;

use lock_lab::{Authority, Etcd, etcdctl};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

/// Runs `etcdctl` with these arguments. Returns its output if it succeeds.
async fn ctl(etcd: &Etcd, args: &[&str]) -> std::result::Result<String, String> {
    let mut command = tokio::process::Command::new(etcdctl().unwrap());
    let endpoint = format!("https://{}", etcd.addr());
    command.env("ETCDCTL_API", "3").args(["--endpoints", &endpoint]);
    command.args(["--dial-timeout", "30s", "--command-timeout", "30s"]);
    let output = command.args(args).stdin(Stdio::null()).output().await.unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

#[tokio::test]
async fn tls_and_a_certificate_and_a_login_are_demanded() -> Result {
    let authority = Authority::new()?;
    let server = authority.server(&["127.0.0.1"])?;
    let builder = Etcd::builder().in_memory().tls(server.certificate(), server.key());
    let etcd = builder.client_authority(authority.certificate()).start().await?;
    etcd.put(b"k", b"v").await?;
    etcd.demand_logins(&[("me", "s3cret", "locks/")]).await?;
    // The lab's own requests go on.
    assert_eq!(etcd.keys().await?, [b"k"]);

    let client = authority.client("anybody")?;
    let path = |path: &std::path::Path| path.display().to_string();
    let [cert, key] = client.files().map(path);
    let ca = path(authority.file());
    let tls = ["--cacert", &*ca, "--cert", &*cert, "--key", &*key];
    let put = |login: &'static str| [&tls[..], &["--user", login, "put", "locks/a", "1"]].concat();
    assert_eq!(ctl(&etcd, &put("me:s3cret")).await?.trim(), "OK");
    let refused = ctl(&etcd, &put("me:wrong")).await.unwrap_err();
    assert!(refused.contains("authentication failed"), "{refused}");
    etcd.set_password("me", "other").await?;
    assert!(ctl(&etcd, &put("me:s3cret")).await.is_err());
    assert!(ctl(&etcd, &put("me:other")).await.is_ok());
    let stranger =
        ["--dial-timeout", "2s", "--command-timeout", "2s", "--cacert", &*ca, "get", "k"];
    assert!(ctl(&etcd, &stranger).await.is_err(), "without a certificate");
    assert_eq!(etcd.keys().await?.len(), 2);

    // After a restart as well.
    etcd.restart().await?;
    assert_eq!(etcd.keys().await?.len(), 2);
    Ok(())
}
