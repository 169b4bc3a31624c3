//! A private store, and runs on it under valgrind.

use std::time::Duration;

use lock_core::Clock;
use lock_lab::{AnyServer, AnyStore, Counters, Proxy, ZooKeeper};

use crate::{
    Failure,
    figures::{BYTES, Figures, LATE, RENEWALS, REQUESTS},
    program::Program,
};

/// Pairs of the shorter and of the longer run: the difference has no costs of start and end. Each
/// number of tasks divides both.
const PAIRS: [u64; 2] = [192, 576];
const MORE: u64 = PAIRS[1] - PAIRS[0];
/// How many undisturbed rounds count, and how many there are at most.
const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 9;

pub struct Place<'p> {
    program: &'p Program,
    store: AnyStore,
    scheme: &'p str,
    /// Counts the bytes to the server.
    proxy: Option<Proxy>,
    /// So long that no renewal falls into a run.
    ttl: Duration,
}

impl<'p> Place<'p> {
    pub async fn open(program: &'p Program, scheme: &'p str) -> Result<Self, Failure> {
        let (store, ttl) = match scheme {
            "zookeeper" => {
                // Sessions last for 20 ticks at most. Its sweep of empty directories sleeps.
                let server = ZooKeeper::builder().in_memory().tick(Duration::from_secs(30));
                let server =
                    server.arg("-Dznode.container.checkIntervalMs=3600000").start().await?;
                let server = AnyStore::Server(Box::new(AnyServer::ZooKeeper(server)));
                (server, Duration::from_secs(600))
            }
            _ => (AnyStore::open_in_memory(scheme).await, Duration::from_secs(3600)),
        };
        let proxy = match store.server() {
            Some(server) => Some(Proxy::start(server.addr()).await?),
            None => None,
        };
        let place = Self { program, store, scheme, proxy, ttl };
        // The first client makes tables, and loads scripts.
        place.run(1, 1).await?;
        Ok(place)
    }

    /// Returns the least costs of a few rounds: other programs only add to them.
    pub async fn count(
        &self,
        tasks: u64,
        is_enough: &dyn Fn(&Figures) -> bool,
    ) -> Result<Figures, Failure> {
        let (mut least, mut counted, mut why) = (None::<Figures>, 0, String::new());
        for _ in 0..MOST_ROUNDS {
            let [short, long] = self.round(tasks).await?;
            match Figures::between(&short, &long, MORE, tasks == 1) {
                Err(disturbed) => why = disturbed,
                Ok(figures) => {
                    let figures = match &least {
                        Some(least) => figures.least(least),
                        None => figures,
                    };
                    counted += 1;
                    if counted == ROUNDS || is_enough(&figures) {
                        return Ok(figures);
                    }
                    least = Some(figures);
                }
            }
        }
        Err(format!("{counted} of {MOST_ROUNDS} rounds were undisturbed; of the last one, {why}")
            .into())
    }

    /// Returns the costs of one round, disturbed or not.
    pub async fn show(&self, tasks: u64) -> Result<Figures, Failure> {
        let [short, long] = self.round(tasks).await?;
        Ok(Figures::of(&long.since(&short), MORE))
    }

    async fn round(&self, tasks: u64) -> Result<[Counters; 2], Failure> {
        let [short, long] = PAIRS;
        Ok([self.run(short, tasks).await?, self.run(long, tasks).await?])
    }

    async fn run(&self, pairs: u64, tasks: u64) -> Result<Counters, Failure> {
        let (before, began) = (self.server().await?, Clock::Boot.now());
        let profile = self.program.run(&self.url(), pairs, tasks).await?;
        let is_late = Clock::Boot.now().since(began) > self.ttl / 3;
        let since = self.server().await?.since(&before);
        let late = [(LATE, u64::from(is_late))];
        Ok(profile.iter().chain(since.iter()).chain(late).collect())
    }

    /// With the TTL, so that a client has one session, which is never idle. A session of the default
    /// TTL, beside one of the locks' own, would send requests of its own once a second or so.
    fn url(&self) -> String {
        let server = self.store.server().zip(self.proxy.as_ref());
        let url = server.map_or_else(|| self.store.url(), |(server, proxy)| server.url_via(proxy));
        format!("{url}?ttl={}s", self.ttl.as_secs())
    }

    /// What the server has counted so far; nothing without a server.
    async fn server(&self) -> Result<Counters, Failure> {
        let Some((server, proxy)) = self.store.server().zip(self.proxy.as_ref()) else {
            return Ok(Counters::default());
        };
        let (counters, stats) = (server.counters().await?, proxy.stats());
        Ok(Counters::from_iter([
            (REQUESTS, requests(self.scheme, &counters)),
            (RENEWALS, counters.get("msg.LeaseKeepAlive")),
            (BYTES, stats.bytes_up + stats.bytes_down),
        ]))
    }
}

/// Requests of clients; in a database, statements.
fn requests(scheme: &str, counters: &Counters) -> u64 {
    let of_clients = |what: &str| match scheme {
        // The server also counts the commands of scripts. Only the scripts come from clients.
        "redis" => ["cmd.evalsha", "cmd.eval"].contains(&what),
        "etcd" => what.starts_with("msg."),
        "zookeeper" => what == "packets_received",
        _ => what.starts_with("cmd.") && what != "cmd.stmt_execute",
    };
    counters.iter().filter(|(what, _)| of_clients(what)).map(|(_, count)| count).sum()
}
