//! A private store, and runs on it under valgrind.

use std::{env, process::Stdio, time::Duration};

use lock_core::Clock;
use lock_lab::{AnyServer, AnyStore, Counters, Proxy, ZooKeeper};
use tokio::process::Command;

use crate::{
    Failure, callgrind,
    figures::{Cost, Figures, Server},
    pairs::{COMMAND, URL},
};

/// Pairs of the shorter and of the longer run: the difference has no costs of start and end.
const PAIRS: [u64; 2] = [200, 600];
/// How many undisturbed rounds count, and how many there are at most.
const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 9;

pub struct Place {
    store: AnyStore,
    scheme: &'static str,
    /// Counts the bytes to the server.
    proxy: Option<Proxy>,
    /// So long that no renewal falls into a run.
    ttl: Duration,
}

impl Place {
    pub async fn open(scheme: &'static str) -> Result<Self, Failure> {
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
        let place = Self { store, scheme, proxy, ttl };
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
            let [short, long] = PAIRS;
            let (lower, upper) = (self.run(short, tasks).await?, self.run(long, tasks).await?);
            match Figures::between(&lower, &upper, long - short, tasks == 1) {
                Err(disturbed) => why = disturbed,
                Ok(figures) => {
                    let figures = least.map_or(figures, |least| least.least(figures));
                    (least, counted) = (Some(figures), counted + 1);
                    if counted == ROUNDS || is_enough(&figures) {
                        return Ok(figures);
                    }
                }
            }
        }
        Err(format!("{counted} of {MOST_ROUNDS} rounds were undisturbed; of the last one, {why}")
            .into())
    }

    async fn run(&self, pairs: u64, tasks: u64) -> Result<Cost, Failure> {
        let folder = tempfile::tempdir()?;
        let out = folder.path().join("callgrind.out");
        let numbers = [pairs, tasks].map(|number| number.to_string());
        let mut command = Command::new("valgrind");
        command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
        command.arg(env::current_exe()?).arg(COMMAND).args(numbers).env(URL, self.url());
        command.stdin(Stdio::null()).kill_on_drop(true);
        let (before, began) = (self.server().await?, Clock::Boot.now());
        let ended = command.output().await;
        let took = Clock::Boot.now().since(began);
        let ended =
            ended.map_err(|error| format!("valgrind: {error} (apt-get install valgrind)"))?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            return Err(
                format!("the run under valgrind ended with {}: {said}", ended.status).into()
            );
        }
        let since = |(now, before): (Server, Server)| Server {
            requests: now.requests - before.requests,
            renewals: now.renewals - before.renewals,
            bytes: now.bytes - before.bytes,
        };
        let server = self.server().await?.zip(before).map(since);
        Ok(Cost { profile: callgrind::read(&out)?, server, late: took > self.ttl / 3 })
    }

    /// With the TTL, so that a client has one session, which is never idle. A session of the default
    /// TTL, beside one of the locks' own, would send requests of its own once a second or so.
    fn url(&self) -> String {
        let server = self.store.server().zip(self.proxy.as_ref());
        let url = server.map_or_else(|| self.store.url(), |(server, proxy)| server.url_via(proxy));
        format!("{url}?ttl={}s", self.ttl.as_secs())
    }

    /// What the server has counted so far.
    async fn server(&self) -> Result<Option<Server>, Failure> {
        let Some((server, proxy)) = self.store.server().zip(self.proxy.as_ref()) else {
            return Ok(None);
        };
        let (counters, stats) = (server.counters().await?, proxy.stats());
        Ok(Some(Server {
            requests: requests(self.scheme, &counters),
            renewals: counters.get("msg.LeaseKeepAlive"),
            bytes: stats.bytes_up + stats.bytes_down,
        }))
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
