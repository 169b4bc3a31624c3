//! The deployments, and what distlock and a bare client cost on each.

mod servers;

use std::{fs, time::Duration};

use lock_core::Clock;
use lock_lab::Redis;

pub use self::servers::Servers;
use crate::bench::{Pair, Table, median};

/// Number of turns of each side, and of pairs in each.
pub const TURNS: usize = 60;
pub const PAIRS: u64 = 400;

/// One deployment.
pub struct Deployed<'a> {
    what: &'static str,
    nodes: Vec<&'a Redis>,
    ours: Pair,
    bare: Pair,
    /// The costs of both in each turn.
    turns: Vec<[Cost; 2]>,
}

/// The cost of a pair.
#[derive(Clone, Copy)]
struct Cost {
    time: f64,
    cpu: f64,
    requests: f64,
}

impl Deployed<'_> {
    /// Measures both sides once.
    pub async fn turn(&mut self, counts: bool) {
        let costs = [self.cost(&self.ours).await, self.cost(&self.bare).await];
        if counts {
            self.turns.push(costs);
        }
    }

    async fn cost(&self, pair: &Pair) -> Cost {
        let (counted, used, begun) = (self.requests().await, cpu(), Clock::Boot.now());
        for _ in 0..PAIRS {
            pair().await;
        }
        let (time, cpu) = (Clock::Boot.now().since(begun), cpu().saturating_sub(used));
        let requests = self.requests().await - counted;
        let each = |took: Duration| took.as_secs_f64() * 1e6 / PAIRS as f64;
        Cost { time: each(time), cpu: each(cpu), requests: requests as f64 / PAIRS as f64 }
    }

    /// Requests of the clients so far. No script of theirs calls one of these.
    async fn requests(&self) -> u64 {
        let mut requests = 0;
        for node in &self.nodes {
            let counters = node.counters().await.expect("counters");
            requests +=
                ["cmd.evalsha", "cmd.eval"].map(|what| counters.get(what)).iter().sum::<u64>();
        }
        requests
    }

    fn middle(&self, of: impl Fn(&[Cost; 2]) -> f64) -> f64 {
        median(self.turns.iter().map(of).collect())
    }

    fn row(&self, single: &Deployed<'_>) -> Vec<String> {
        let beside = |of: fn(&Cost) -> f64| {
            let turns = self.turns.iter().zip(&single.turns);
            median(turns.map(|([mine, _], [theirs, _])| of(mine) / of(theirs)).collect())
        };
        let (time, cpu) = (|cost: &Cost| cost.time, |cost: &Cost| cost.cpu);
        vec![
            self.what.to_owned(),
            format!("{:.2}", self.middle(|[ours, _]| ours.requests)),
            format!("{:.1}", self.middle(|[ours, _]| ours.time)),
            format!("{:.1}", self.middle(|[_, bare]| bare.time)),
            format!("{:.2}", self.middle(|[ours, bare]| ours.time / bare.time)),
            format!("{:.1}", self.middle(|[ours, _]| ours.cpu)),
            format!("{:.1}", self.middle(|[_, bare]| bare.cpu)),
            format!("{:.2}", self.middle(|[ours, bare]| ours.cpu / bare.cpu)),
            format!("{:.3}", beside(time)),
            format!("{:.3}", beside(cpu)),
        ]
    }
}

/// The results. The first deployment is the one that the others are compared with.
pub fn table(all: &[Deployed<'_>]) -> Table {
    let header = [
        "deployment",
        "requests",
        "us",
        "bare us",
        "ratio",
        "cpu us",
        "bare cpu us",
        "cpu ratio",
        "time beside single",
        "cpu beside single",
    ];
    let mut table = Table::with_header("acquire + release, uncontended", &header);
    for deployed in all {
        table.add_cells(deployed.row(&all[0]));
    }
    table
}

/// Processor time of the thread that runs all clients.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}
