//! Acquire and release on each deployment of Redis: one server, Sentinel, Cluster, and Redlock on
//! five servers. A bare client takes turns with distlock on the same servers.
//!
//! `cargo bench -p distlock-benches --features redis --bench deployments`

#[cfg(feature = "redis")]
mod deployed;

#[cfg(not(feature = "redis"))]
fn main() {
    println!("Redis is not compiled in: --features redis");
}

#[cfg(feature = "redis")]
fn main() {
    bench::block_on(async {
        let servers = deployed::Servers::start().await;
        let mut all = servers.deployed().await;
        servers.separate();
        // The first turn warms all up.
        for turn in 0..=deployed::TURNS {
            for deployed in &mut all {
                deployed.turn(turn > 0).await;
            }
        }
        println!("{}", deployed::table(&all));
        println!(
            "one task, three names, one on each primary of the cluster; clients on one core, servers \
             on the others; medians of {} turns of {} \
             pairs; cpu: of the client; ratio / control's: of the ratio and that of the control \
             in the same turn, with its interval of 95 %; both sides of Redlock go on with most",
            deployed::TURNS,
            deployed::PAIRS
        );
    });
}
