//! The deployments, and what distlock and a bare client cost on each.

mod cores;
mod servers;

use std::{fs, time::Duration};

use lock_core::Clock;
use lock_lab::Redis;

pub use self::servers::Servers;
use bench::{Pair, Table, median};

/// Number of turns of each side, and of pairs in each.
pub const TURNS: usize = 100;
pub const PAIRS: u64 = 400;

/// What distlock sends: its scripts call `SET` themselves, and none calls a script.
const OURS: &[&str] = &["cmd.evalsha", "cmd.eval"];
const BARE: &[&str] = &["cmd.evalsha", "cmd.eval", "cmd.set"];

/// One deployment.
pub struct Deployed<'a> {
    what: &'static str,
    /// The deployment whose ratio this one's is divided by.
    control: &'static str,
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

impl<'a> Deployed<'a> {
    /// `sides`: distlock, and the bare client.
    pub fn new(
        what: &'static str,
        nodes: Vec<&'a Redis>,
        (ours, bare): (Pair, Pair),
        control: &'static str,
    ) -> Self {
        Self { what, control, nodes, ours, bare, turns: Vec::new() }
    }

    /// Measures both sides once.
    pub async fn turn(&mut self, counts: bool) {
        let costs = [self.cost(&self.ours, OURS).await, self.cost(&self.bare, BARE).await];
        if counts {
            self.turns.push(costs);
        }
    }

    async fn cost(&self, pair: &Pair, commands: &[&str]) -> Cost {
        let counted = self.requests(commands).await;
        let (used, begun) = (cpu(), Clock::Boot.now());
        for _ in 0..PAIRS {
            pair().await;
        }
        let (time, cpu) = (Clock::Boot.now().since(begun), cpu().saturating_sub(used));
        let requests = self.requests(commands).await - counted;
        let each = |took: Duration| took.as_secs_f64() * 1e6 / PAIRS as f64;
        Cost { time: each(time), cpu: each(cpu), requests: requests as f64 / PAIRS as f64 }
    }

    /// How often the servers have got these commands.
    async fn requests(&self, commands: &[&str]) -> u64 {
        let mut requests = 0;
        for node in &self.nodes {
            let counters = node.counters().await.expect("counters");
            requests += commands.iter().map(|command| counters.get(command)).sum::<u64>();
        }
        requests
    }

    fn middle(&self, of: impl Fn(&[Cost; 2]) -> f64) -> f64 {
        median(self.turns.iter().map(of).collect())
    }

    fn row(&self, all: &[Deployed<'_>]) -> Vec<String> {
        let named = |other: &&Deployed<'_>| other.what == self.control;
        let control = all.iter().find(named).expect("a row for each control");
        let beside = |of: fn(&Cost) -> f64| {
            let ratio = |[ours, bare]: &[Cost; 2]| of(ours) / of(bare);
            let turns = self.turns.iter().zip(&control.turns);
            middle_of(turns.map(|(here, there)| ratio(here) / ratio(there)).collect())
        };
        vec![
            self.what.to_owned(),
            format!("{:.2}", self.middle(|[ours, _]| ours.requests)),
            format!("{:.2}", self.middle(|[_, bare]| bare.requests)),
            format!("{:.1}", self.middle(|[ours, _]| ours.time)),
            format!("{:.1}", self.middle(|[_, bare]| bare.time)),
            format!("{:.2}", self.middle(|[ours, bare]| ours.time / bare.time)),
            format!("{:.1}", self.middle(|[ours, _]| ours.cpu)),
            format!("{:.1}", self.middle(|[_, bare]| bare.cpu)),
            format!("{:.2}", self.middle(|[ours, bare]| ours.cpu / bare.cpu)),
            self.control.to_owned(),
            beside(|cost| cost.time),
            beside(|cost| cost.cpu),
        ]
    }
}

/// The median, and the interval that has the true one in 95 of 100 runs: by ranks, without an
/// assumption about how the values are spread.
fn middle_of(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (middle, reach) = (values.len() as f64 / 2.0, 0.98 * (values.len() as f64).sqrt());
    let at = |rank: f64| values[(rank.max(0.0) as usize).min(values.len() - 1)];
    format!("{:.3} ({:.3} to {:.3})", at(middle), at(middle - reach), at(middle + reach))
}

/// The results. Each deployment is compared with its control.
pub fn table(all: &[Deployed<'_>]) -> Table {
    let header = [
        "deployment",
        "requests",
        "bare requests",
        "us",
        "bare us",
        "ratio",
        "cpu us",
        "bare cpu us",
        "cpu ratio",
        "control",
        "ratio / control's",
        "cpu ratio / control's",
    ];
    let mut table = Table::with_header("acquire + release, uncontended", &header);
    for deployed in all {
        table.add_cells(deployed.row(all));
    }
    table
}

/// Processor time of the thread that runs all clients.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}
