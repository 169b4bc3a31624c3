//! The command line.

use clap::Parser;

/// Sell a limited stock through no lock, a broken lock, and distlock.
#[derive(Parser)]
pub struct Args {
    /// The store's URL.
    #[arg(default_value = "memory:")]
    pub url: String,
    /// Also on private etcd, Redis, ZooKeeper, PostgreSQL and MariaDB servers, which it starts.
    #[arg(long)]
    pub lab: bool,
    /// How many workers sell at the same time.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub workers: u32,
    /// How many processes sell at the same time, on a store that several processes can use.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub processes: u32,
    /// How many items there are.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(8..=10_000))]
    pub stock: u32,
}
