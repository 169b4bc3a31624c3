//! Acquire and release on each deployment of Redis: one server, Sentinel, Cluster, and Redlock on
//! five servers. A bare client takes turns with distlock on the same servers.
//!
//! `cargo bench --features redis --bench deployments`

#[cfg(feature = "redis")]
mod bench;
#[cfg(feature = "redis")]
mod deployed;

#[cfg(not(feature = "redis"))]
fn main() {
    println!("Redis is not compiled in: cargo bench --features redis --bench deployments");
}

#[cfg(feature = "redis")]
fn main() {
    bench::block_on(async {
        let servers = deployed::Servers::start().await;
        let mut all = servers.deployed().await;
        // The first turn warms all up.
        for turn in 0..=deployed::TURNS {
            for deployed in &mut all {
                deployed.turn(turn > 0).await;
            }
        }
        println!("{}", deployed::table(&all));
        println!(
            "one task and one name; medians of {} turns of {} pairs; cpu: of the client; beside: \
             distlock on the single server in the same turn; a bare Redlock waits for all servers",
            deployed::TURNS,
            deployed::PAIRS
        );
    });
}
