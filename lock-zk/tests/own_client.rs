//! Locks in sessions that the caller's connector makes.

use std::time::Duration;

use lock_core::{Error, Locks};
use lock_zk::{
    Access, ZkConfig, ZkLock,
    client::{Acls, Client, Connector, CreateMode},
};

use crate::{
    contend::{acquire, contend},
    support::*,
};

fn connector() -> Connector {
    Client::connector().with_auth("digest", b"me:s3cret")
}

#[tokio::test]
async fn the_login_and_the_chroot_of_a_connector_count() {
    let server = shared().await;
    let chroot = format!("/{}", fresh("app"));
    let cluster = format!("{}{chroot}", server.addr());
    // The caller's own client, of the same connector.
    let client = connector().connect(&server.addr().to_string()).await.unwrap();
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.create(&chroot, b"", &open).await.unwrap();
    // The connector's timeout is no TTL.
    let given = connector().with_session_timeout(Duration::from_secs(40)).with_readonly(true);
    let config = ZkConfig::from_connector(given, &cluster).unwrap().access(Access::Creator);
    let own = Locks::new(ZkLock::connect(config.ttl(Duration::from_secs(6))).await.unwrap());
    let other = format!("zookeeper://me:s3cret@{cluster}?acl=creator&ttl=6s");
    contend(&own, &self::open(&other).await).await;
    let held = acquire(&own, "orders").await;
    let path = format!("{chroot}/locks/orders");
    let child = children(&client, &path).await.remove(0);
    let (acl, _) = client.get_acl(&format!("{path}/{child}")).await.unwrap();
    assert!(format!("{acl:?}").contains("me"), "{acl:?}");
    held.release().await.unwrap();

    // The end of one does not end the other.
    own.close().await.unwrap();
    client.check_stat(&path).await.unwrap();
    let own = Locks::new(ZkLock::with_connector(connector(), &cluster).await.unwrap());
    let held = acquire(&own, "held").await;
    drop(client);
    held.renew().await.unwrap();
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_session_of_the_callers_is_not_taken_away() {
    let server = shared().await;
    let client = raw(server).await;
    let given = Client::connector().with_session(client.session().clone());
    let error = ZkConfig::from_connector(given, &server.addr().to_string()).unwrap_err();
    assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
    client.check_stat("/").await.unwrap();
}

#[tokio::test]
async fn a_tick_that_cannot_be_asked_must_be_given() {
    let cluster = "tcp+tls://127.0.0.1:1";
    let error = ZkLock::with_connector(connector(), cluster).await.unwrap_err();
    assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
    assert!(error.to_string().contains("tickTime"), "{error}");
    let config = ZkConfig::from_connector(connector(), "127.0.0.1:1").unwrap().prefix("locks");
    let error = ZkLock::connect(config.clone()).await.unwrap_err();
    assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
    assert!(!format!("{config:?} {error:?}").contains("s3cret"), "{config:?}");
}
