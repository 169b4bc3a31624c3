//! Locks on a client that the caller has made, and on connections made with the caller's options.

use std::time::Duration;

use lock_core::{Error, Locks, LossReason};
use lock_etcd::{
    EtcdConfig, EtcdLock,
    client::{Client, ConnectOptions},
};
use lock_lab::{Etcd, Proxy};

use crate::{
    contend::{acquire, contend},
    support::{etcd, locks, soon, with_users},
};

fn login() -> ConnectOptions {
    ConnectOptions::new().with_user("me", "s3cret")
}

async fn client(etcd: &Etcd, options: ConnectOptions) -> Client {
    Client::connect([etcd.addr().to_string()], Some(options)).await.unwrap()
}

/// Uses the client as a program does beside locks.
async fn works(client: &Client) {
    let mut kv = client.kv_client();
    soon(kv.put("locks/data", "mine", None)).await.unwrap();
    let got = soon(kv.get("locks/data", None)).await.unwrap();
    assert_eq!(got.kvs()[0].value(), b"mine");
}

async fn of_client(client: &Client) -> Locks {
    let config = EtcdConfig::from_client(client).prefix("locks/");
    Locks::new(EtcdLock::connect(config).await.unwrap())
}

#[tokio::test]
async fn the_connection_and_the_login_of_a_client_are_shared() {
    let etcd = etcd().await;
    with_users(&etcd).await.unwrap();
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let client = Client::connect([proxy.addr().to_string()], Some(login())).await.unwrap();
    works(&client).await;
    let own = of_client(&client).await;
    let other = locks(&format!("etcd://me:s3cret@{}?prefix=locks/", etcd.addr())).await;
    contend(&own, &other).await;
    works(&client).await;
    assert_eq!(proxy.stats().connections_total, 1);

    // The end of the locks does not end the client, and the end of the client's own handle does not
    // end the locks.
    let held = acquire(&own, "orders").await;
    own.close().await.unwrap();
    assert!(!held.is_valid());
    works(&client).await;
    let own = of_client(&client).await;
    drop(client);
    contend(&own, &other).await;
}

#[tokio::test]
async fn a_client_without_a_leader_or_logins_of_its_own_logs_in_again() {
    let etcd = Etcd::start().await.unwrap();
    with_users(&etcd).await.unwrap();
    let client = client(&etcd, login()).await;
    let own = of_client(&client).await;
    let held = acquire(&own, "held").await;
    // etcd forgets all tokens.
    etcd.kill();
    etcd.restart().await.unwrap();
    let job = own.lock("orders").unwrap();
    soon(async { while job.acquire().await.is_err() {} }).await;
    soon(held.renew()).await.unwrap();
    held.release().await.unwrap();
    works(&client).await;
    let other = locks(&format!("etcd://me:s3cret@{}?prefix=locks/", etcd.addr())).await;
    contend(&own, &other).await;
}

#[tokio::test]
async fn a_client_whose_endpoints_are_taken_away_is_an_outage() {
    let etcd = etcd().await;
    let client = client(&etcd, ConnectOptions::new()).await;
    let config = EtcdConfig::from_client(&client).ttl(Duration::from_secs(3));
    let own = Locks::new(EtcdLock::connect(config).await.unwrap());
    let held = acquire(&own, "orders").await;
    client.remove_endpoint(format!("http://{}", etcd.addr())).await.unwrap();
    assert_eq!(soon(held.lost()).await, LossReason::Expired);
    let refused = soon(own.lock("orders").unwrap().acquire()).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    client.add_endpoint(etcd.addr().to_string()).await.unwrap();
    let job = own.lock("orders").unwrap();
    soon(async { while job.acquire().await.is_err() {} }).await;
    contend(&own, &locks(&etcd.url()).await).await;
}

#[tokio::test]
async fn a_client_that_is_not_let_in_any_more_is_denied() {
    let etcd = etcd().await;
    let client = client(&etcd, ConnectOptions::new()).await;
    with_users(&etcd).await.unwrap();
    let refused = EtcdLock::with_client(&client).await.unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused}");
}

#[tokio::test]
async fn connections_are_made_with_given_options() {
    let etcd = etcd().await;
    with_users(&etcd).await.unwrap();
    // A short limit of requests is no limit of waits.
    let options = login().with_timeout(Duration::from_secs(1));
    let config =
        EtcdConfig::from_options(["127.0.0.1:1".to_owned(), etcd.addr().to_string()], options);
    let own = Locks::new(EtcdLock::connect(config.prefix("locks/")).await.unwrap());
    let other = locks(&format!("etcd://me:s3cret@{}?prefix=locks/", etcd.addr())).await;
    contend(&own, &other).await;

    let options = ConnectOptions::new().with_user("me", "wr0ng");
    let config = EtcdConfig::from_options([etcd.addr().to_string()], options);
    let shown = format!("{config:?}");
    let refused = EtcdLock::connect(config).await.unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused}");
    assert!(!format!("{shown} {refused:?}").contains("wr0ng"), "{shown} {refused:?}");
}

#[tokio::test]
async fn a_ttl_that_etcd_cannot_count_is_refused() {
    let etcd = etcd().await;
    let client = client(&etcd, ConnectOptions::new()).await;
    let config = EtcdConfig::from_client(&client).ttl(Duration::from_millis(2500));
    let refused = EtcdLock::connect(config).await.unwrap_err();
    assert!(matches!(refused, Error::InvalidOption { .. }), "{refused}");
}
