//! The options of the comparison of stores.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::values;

/// Tests the claims of articles about distributed locks, on private servers.
///
/// 44 claims about Redis, etcd, ZooKeeper, MySQL and others. Each is an experiment on every store
/// that can take part. The command starts the servers that are installed, and stops them at its
/// end. For a missing server it names the package that installs it. With --store, it plays the
/// harmless experiments on a store in use instead. Exits with 1 if an experiment failed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock compare --report report.html              all claims on all stores that are installed
  distlock compare --quick --stores sqlite,memory    in a minute, with nothing installed
  distlock compare --claims C7,C8 --stores redis     a late DEL, and a failover
  distlock compare --store redis://10.0.0.5          harmless experiments on a store in use")]
pub(crate) struct Compare {
    /// Plays these claims alone, such as C7,C12.
    #[arg(long, value_name = "CLAIMS", value_delimiter = ',', value_parser = values::claim)]
    pub(crate) claims: Vec<u8>,
    /// Plays on these stores alone, such as redis,etcd.
    #[arg(long, value_name = "STORES", value_delimiter = ',')]
    pub(crate) stores: Vec<lock_compare::Store>,
    /// Repeats less and waits less. All claims take some minutes.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Writes the report to this file, as one page of HTML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Prints the report as an object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes what every client did and believed into this folder, as JSON lines. Creates the
    /// folder.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) traces: Option<PathBuf>,
    /// Seed of all random choices. Default: a new one each time, which the report names.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Control run: wrong and right locks are swapped, and each verdict must change.
    #[arg(long)]
    pub(crate) swap: bool,
}
