//! The documents' story: many workers sell a limited stock, and some of them stall for longer than
//! their lock's TTL.
//!
//! ```text
//! cargo run -p oversell                                   in memory, nothing installed
//! cargo run -p oversell --features sqlite -- sqlite:      with several processes, in a file
//! cargo run -p oversell --features distlock/redis -- redis://HOST
//! cargo run -p oversell --features lab -- --lab           on private servers of every store
//! ```
//!
//! Exit codes: 0 if distlock sold no more than the stock, 1 if it did, 2 for bad usage or an
//! unreachable store.

mod args;
#[cfg(feature = "lab")]
mod lab;
mod processes;
mod scenario;
mod shop;
mod table;

use std::process::ExitCode;

use clap::Parser;

use crate::{args::Args, scenario::Scenario, table::Table};

#[tokio::main]
async fn main() -> ExitCode {
    if let Some(code) = processes::work_if_asked().await {
        return code;
    }
    let args = Args::parse();
    if args.lab && !cfg!(feature = "lab") {
        eprintln!(
            "--lab needs all stores; run\n\n    cargo run -p oversell --features lab -- --lab\n"
        );
        return ExitCode::from(2);
    }
    match play(&args).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("oversell: {error}");
            let lost = matches!(error.downcast_ref(), Some(distlock::Error::Lost { .. }));
            ExitCode::from(if lost { 1 } else { 2 })
        }
    }
}

/// Plays every scenario on every store. Returns whether distlock kept its promise on all of them.
async fn play(args: &Args) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let mut kept = true;
    let urls = std::iter::once(args.url.clone());
    // The servers live until the last scenario is over.
    #[cfg(feature = "lab")]
    let servers = if args.lab { lab::start().await? } else { Vec::new() };
    #[cfg(feature = "lab")]
    let urls = urls.chain(servers.iter().map(|server| server.url()));
    for url in urls {
        let store = store_of(&url).await?;
        println!("\n{} workers, {} items in stock, on {store}", args.workers, args.stock);
        let mut table = Table::default();
        for scenario in Scenario::of(store) {
            let sale = scenario.play(args, &url).await?;
            kept &= !scenario.must_hold() || sale.is_right();
            table.add(scenario, &sale);
        }
        println!("{table}");
    }
    println!(
        "{}",
        if kept {
            "distlock sold what there was, and nothing twice."
        } else {
            "distlock did NOT sell what there was."
        }
    );
    Ok(kept)
}

/// The store's description. Connects once, so that a wrong URL is reported before the sale starts.
async fn store_of(url: &str) -> distlock::Result<&'static str> {
    Ok(distlock::connect(url).await?.guarantees().store)
}
