//! The options of the benchmark.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueHint, value_parser};
use lock_bench::Kind;

use crate::values::{self, bench};

/// Measures locks on stores beside each other.
///
/// On each store distlock takes turns with the bare client, which promises nothing (two floors),
/// and with what people use there today. Every figure is a median of rounds, with a ratio to
/// distlock's of the same rounds. The first 20,000 grants of each round are checked for
/// exclusion: a violation ends the run with its timeline.
///
/// Without --store: the memory of this process and a SQLite file of its own, in ten seconds. On a
/// store in use, all names have a prefix of the run; what it costs the store is said before, and
/// above a harmless bound only --yes begins. Exits with 1 after a violation, and if --against finds
/// a regression.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock bench                                     memory and SQLite, in ten seconds
  distlock bench --lab --preset all --quick --report report.html
  distlock bench --store redis://10.0.0.5 --workers 16 --names 16 --rate 500
  distlock bench --lab --sweep workers=1,10,100      how the cost grows
  distlock bench --json > before.json                and after a change:
  distlock bench --against before.json

Exit codes: 0 measured, 1 a lock did not exclude, or a regression beyond noise (--against), 64 wrong
usage, or a load that needs --yes. `distlock --help` lists all.")]
pub(crate) struct Bench {
    /// Starts private servers of each store that is installed, or of one: --lab --store redis.
    #[arg(long)]
    pub(crate) lab: bool,
    /// The loads. Default: uncontended,many-names,hot-name.
    #[arg(long, value_name = "PRESETS", value_delimiter = ',', value_parser = bench::presets())]
    pub(crate) preset: Vec<String>,
    #[command(flatten)]
    pub(crate) custom: Custom,
    /// Length of a round. Default: 1, or 0.15 with --quick.
    #[arg(long, value_name = "NUMBER", value_parser = bench::seconds)]
    pub(crate) seconds: Option<f64>,
    /// Rounds of each contender, at least 3. Default: 5, or 3 with --quick.
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(3..=100))]
    pub(crate) rounds: Option<u32>,
    /// Fewer and shorter rounds. So is a run without --store and --lab.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How the cost grows with names, workers, processes, held or ttl, as in names=1,10,100.
    #[arg(long, value_name = "KEY=VALUES", value_parser = bench::sweep)]
    pub(crate) sweep: Option<(String, Vec<f64>)>,
    /// Measures distlock without anything beside it.
    #[arg(long)]
    pub(crate) alone: bool,
    /// Prints the report as an object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Says what has changed beyond noise since this report of --json.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) against: Option<PathBuf>,
    /// Writes the report to this file, as one page of HTML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Begins on a store in use, however many requests that may be.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// A load by hand. What is not given is the preset's, or that of `uncontended`.
#[derive(Args, Debug)]
pub(crate) struct Custom {
    /// Workers of all processes together. Default: as in --preset, or uncontended; so for all of
    /// these.
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) workers: Option<u32>,
    /// Names, which the workers take in turns.
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) names: Option<u32>,
    /// Processes that share the workers.
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=64))]
    pub(crate) processes: Option<u32>,
    /// How long a lock is held.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) hold: Option<Duration>,
    /// The kind of lock.
    #[arg(long, value_name = "KIND", value_parser = bench::kinds())]
    pub(crate) kind: Option<Kind>,
    /// Starts per second of all workers together, also while others wait (open loop): latency
    /// counts from the scheduled start. Without it, a worker starts again after its release.
    #[arg(long, value_name = "PER_SECOND", value_parser = bench::rate)]
    pub(crate) rate: Option<f64>,
    /// TTL of the locks. Default: the store's.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) ttl: Option<Duration>,
}

impl Custom {
    /// Whether nothing is given.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { workers, names, processes, hold, kind, rate, ttl } = self;
        let counts = [workers, names, processes].into_iter().all(Option::is_none);
        counts && hold.or(*ttl).is_none() && kind.is_none() && rate.is_none()
    }
}
