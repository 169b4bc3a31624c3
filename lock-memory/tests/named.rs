//! The stores behind URLs, and the clients that connected by a URL.

use std::{sync::Arc, time::Duration};

use lock_core::{Connect, Error, Locks, LossReason, Opener, Opening, StoreUrl};
use lock_memory::{MemoryConfig, MemoryLock, MemoryStore};

async fn connect(url: &str) -> Locks {
    let config = MemoryConfig::from_url(&url.parse().unwrap()).unwrap();
    Locks::new(MemoryLock::connect(config).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_url_and_a_name_are_one_store() {
    for (url, name) in [
        ("memory:", ""),
        ("memory:named-one", "named-one"),
        ("memory:named%20two?ttl=4s", "named two"),
        ("memory:named/three", "named/three"),
    ] {
        let (locks, store) = (connect(url).await, MemoryStore::named(name));
        let guard = locks.lock("a").unwrap().acquire().await.unwrap();
        let contents = store.contents();
        assert_eq!(contents[0].1[0].holder.token, Some(guard.token()), "{url}");
        assert!(
            Locks::new(store.client()).lock("a").unwrap().try_acquire().await.unwrap().is_none()
        );
        store.expire(guard.name());
        assert_eq!(guard.lost().await, LossReason::EntryGone);
    }
    assert_eq!(MemoryStore::named("named-other").contents(), []);
}

#[tokio::test(start_paused = true)]
async fn the_faults_of_clients_that_connected_by_url() {
    let store = MemoryStore::named("the-faults-of-clients");
    assert!(store.faults().is_empty());
    let url = "memory:the-faults-of-clients";
    let (first, second) = (connect(url).await, connect(url).await);
    let [a, b] = [first.shared("a"), second.shared("a")].map(|lock| lock.unwrap().acquire());
    let (a, b) = (a.await.unwrap(), b.await.unwrap());
    let [of_first, of_second] = store.faults().try_into().unwrap();
    assert_eq!(of_second.lose(b.name()), 1);
    assert_eq!(b.lost().await, LossReason::EntryGone);
    assert!(a.is_valid());
    of_first.partition();
    assert_eq!(a.lost().await, LossReason::Expired);
    // A client that has closed, or is dropped, is not connected.
    second.close().await.unwrap();
    assert_eq!(store.faults().len(), 1);
    drop((a, first));
    while !store.faults().is_empty() {
        tokio::task::yield_now().await;
    }
}

fn connecting(url: &str) -> Connect {
    let open: fn(StoreUrl) -> Opening = |url| {
        Box::pin(async move {
            let config = MemoryConfig::from_url(&url)?;
            Ok(Arc::new(MemoryLock::connect(config).await?) as _)
        })
    };
    Connect::new(
        url,
        Opener { open, default_port: |_| None, explain: |_, _| Box::pin(async { None }) },
    )
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_all_of_its_time_and_no_more() {
    let (store, time) = (MemoryStore::named("refuses"), Duration::from_secs(3));
    store.refuse_connects(true);
    let connect = connecting("memory:refuses").retry(time);
    let began = lock_core::Clock::Tokio.now();
    let refused = connect.clone().await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { op: "connect", .. }), "{refused}");
    let took = lock_core::Clock::Tokio.now().since(began);
    assert!(took >= time && took < time + Duration::from_millis(5), "{took:?}");
    // The store accepts connects while the second retry is under way. The first try has failed by
    // then.
    let waiting = tokio::spawn(connecting("memory:refuses").retry(Duration::MAX).into_future());
    tokio::time::sleep(time * 100).await;
    assert!(!waiting.is_finished());
    store.refuse_connects(false);
    let locks = waiting.await.unwrap().unwrap();
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}
