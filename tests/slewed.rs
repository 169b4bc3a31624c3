//! Servers whose clocks run fast while they do not hear a holder.
#![cfg(any(
    feature = "etcd",
    feature = "redis",
    feature = "zookeeper",
    feature = "mysql",
    feature = "postgres"
))]

use std::time::Duration;

use lock_core::Clock;
use lock_lab::{Proxy, Shift};

use crate::support::{beat::Beat, connect, start};

const TTL: Duration = Duration::from_secs(6);

on_every_server!(a_holder_stops_in_time, a_clock_of_twice_the_speed_overtakes_a_holder);
test_on!("postgres" postgres a_holder_stops_in_time a_clock_of_twice_the_speed_overtakes_a_holder);
test_on!("mysql" mysql a_holder_stops_in_time a_clock_of_twice_the_speed_overtakes_a_holder);

/// Lets the server's clocks gain this part of the time from when a holder is cut off, and returns
/// whether another client got the lock before the holder stopped.
async fn overtaken(store: &str, gain: f64) -> bool {
    let server = start(store).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let (holder, other) = (connect(&server.url_via(&proxy)).await, connect(&server.url()).await);
    let held = holder.lock("orders").unwrap().ttl(TTL).acquire().await.unwrap();
    proxy.cut();
    let cut = Clock::Boot.now();
    let end = cut + held.remaining();
    let next = other.lock("orders").unwrap().ttl(TTL);
    while next.try_acquire().await.unwrap().is_none() {
        let ahead = Shift::ahead(Clock::Boot.now().since(cut).mul_f64(gain));
        server.move_clocks(ahead, ahead).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Clock::Boot.now() < end
}

/// Every deadline is a twentieth of the TTL early.
async fn a_holder_stops_in_time(store: &str) {
    assert!(!overtaken(store, 0.045).await, "two held it");
}

/// What the pages say of a clock that is slewed by more than that.
async fn a_clock_of_twice_the_speed_overtakes_a_holder(store: &str) {
    for _ in 0..5 {
        let beat = Beat::start();
        if overtaken(store, 1.0).await {
            return;
        }
        // The holder ends, too, where the machine stands still for the rest of its TTL.
        let late = beat.late();
        assert!(late >= TTL / 4, "the clocks did not move, and tasks are late by {late:?}");
    }
    panic!("the machine stood still each time");
}
