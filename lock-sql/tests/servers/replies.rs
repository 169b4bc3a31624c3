//! Lost replies: the attempt's id tells what has happened.

use std::{sync::Arc, time::Duration};

use lock_core::{Effect, Error, LockName, Locks};
use lock_lab::Proxy;
use lock_sql::Dialect;

use crate::servers::{Database, costs::settled, eventually, locks, on_both};

on_both!(
    an_unanswered_acquire_is_sent_again,
    an_unanswered_renewal_is_sent_again,
    an_unanswered_revoke_is_not_taken_for_one_of_nothing,
    many_clients_may_create_the_tables_at_once,
);

const TTL: Duration = Duration::from_secs(15);

/// A client whose replies can be held back, with a connection that is in use already. No request of
/// its own has that connection when replies are held back.
struct Far {
    server: Database,
    proxy: Proxy,
    locks: Locks,
}

impl Far {
    async fn start(dialect: Dialect) -> Self {
        let server = Database::start(dialect).await;
        let proxy = Proxy::start(server.addr()).await.unwrap();
        let locks = locks(&server.url_via(&proxy)).await;
        settled(&server, &locks).await;
        Self { server, proxy, locks }
    }

    /// Sends a request that gets no answer: it takes effect, then the connection breaks, and the
    /// client asks again.
    async fn unanswered<T>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
        done: impl AsyncFnMut() -> bool,
    ) -> T
    where
        T: Send + 'static,
    {
        self.proxy.half_open();
        let request = tokio::spawn(request);
        eventually("the request is done", done).await;
        assert!(!request.is_finished(), "an answer has come through");
        self.proxy.reset();
        self.proxy.heal();
        request.await.unwrap()
    }

    /// How many tokens were taken.
    async fn tokens(&self) -> u64 {
        let tokens = self.server.sql("SELECT sum(token) FROM distlock_v1_slots").await;
        tokens.trim().parse().unwrap()
    }

    /// Time until the only entry expires, by the server's clock.
    async fn left(&self) -> Duration {
        let now = match &self.server {
            Database::Postgres(_) => "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
            Database::MariaDb(_) => "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
        };
        let left = format!("SELECT min(expires) - {now} FROM distlock_v1_entries");
        Duration::from_micros(self.server.sql(&left).await.trim().parse().unwrap())
    }
}

/// The commit is done, but its reply is lost. The second request finds the first one's entry, whose
/// time runs since the first.
async fn an_unanswered_acquire_is_sent_again(dialect: Dialect) {
    let far = Far::start(dialect).await;
    let (lock, before) = (far.locks.lock("a").unwrap().ttl(TTL), far.tokens().await);
    let mut left = TTL;
    let entered = async || {
        if far.server.entries().await == 1 {
            left = far.left().await;
        }
        left < TTL - Duration::from_secs(1)
    };
    let guard = far.unanswered(lock.acquire(), entered).await.unwrap();
    assert!(guard.remaining() <= left, "{:?} of {left:?}", guard.remaining());
    assert_eq!(far.server.entries().await, 1, "one attempt has two entries");
    assert!(far.tokens().await >= before + 2, "the request was not sent again");
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    assert_eq!(far.server.entries().await, 0);
}

async fn an_unanswered_renewal_is_sent_again(dialect: Dialect) {
    let far = Far::start(dialect).await;
    let guard = Arc::new(far.locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap());
    // So that a renewal shows.
    let shorten = "UPDATE distlock_v1_entries SET expires = expires - 5000000";
    far.server.sql(shorten).await;
    let renewed = async || far.left().await > TTL - Duration::from_secs(4);
    let (before, renewing) = (far.server.counters().await.unwrap(), guard.clone());
    far.unanswered(async move { renewing.renew().await }, renewed).await.unwrap();
    let since = far.server.counters().await.unwrap().since(&before);
    assert!(since.get("cmd.update") >= 2, "the request was not sent again: {since}");
    assert!(guard.is_valid());
    drop(guard);
}

/// The second request finds nothing, since the first one has removed it.
async fn an_unanswered_revoke_is_not_taken_for_one_of_nothing(dialect: Dialect) {
    let far = Far::start(dialect).await;
    let guard = far.locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    let attempt = far.locks.inspect("a").await.unwrap()[0].attempt.unwrap();
    let (driver, name) = (far.locks.driver().clone(), LockName::new("a").unwrap());
    let revoke = async move { driver.revoke(&name, attempt).await };
    let gone = async || far.server.entries().await == 0;
    let error = far.unanswered(revoke, gone).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { effect: Effect::Unknown, .. }), "{error:?}");
    assert!(error.to_string().contains("an answer was lost"), "{error}");
    assert!(!far.locks.revoke("a", attempt).await.unwrap());
    guard.lost().await;
}

/// The clients connect to an empty database together, and each of them creates its tables.
async fn many_clients_may_create_the_tables_at_once(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let url = server.url();
    let connecting = (0..8).map(|_| {
        let url = url.clone();
        tokio::spawn(async move {
            let locks = locks(&url).await;
            for n in 0..5 {
                let lock = locks.lock(format!("{}", n % 2)).unwrap().ttl(TTL);
                lock.acquire().await.unwrap().release().await.unwrap();
            }
        })
    });
    for done in connecting.collect::<Vec<_>>() {
        done.await.unwrap();
    }
    assert_eq!(server.entries().await, 0);
}
