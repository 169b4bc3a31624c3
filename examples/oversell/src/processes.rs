//! Workers that are processes. They share only the store and a file with the stock left.

use std::{
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    time::Duration,
};

use tokio::process::Command;

use crate::{args::Args, shop::Sale};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Variables that make this program a worker: the file, and the store if there is a lock.
const STOCK: &str = "OVERSELL_STOCK";
const STORE: &str = "OVERSELL_STORE";

/// Duration of a sale.
const THINK: Duration = Duration::from_millis(3);

/// Sells until nothing is left if this process is a worker. Returns `None` if it is not.
pub async fn work_if_asked() -> Option<ExitCode> {
    let stock = PathBuf::from(std::env::var_os(STOCK)?);
    match work(&stock, std::env::var(STORE).ok()).await {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("oversell: {error}");
            Some(ExitCode::FAILURE)
        }
    }
}

async fn work(stock: &Path, store: Option<String>) -> Result<(), Failure> {
    let Some(url) = store else {
        while sell(stock).await? {}
        return Ok(());
    };
    let locks = distlock::connect(url).await?;
    let lock = locks.lock("oversell/file")?;
    while lock.run_fallible(|_| sell(stock)).await? {}
    Ok(locks.close().await?)
}

/// Reads the stock, and writes it back some time later. Returns whether anything was left.
async fn sell(stock: &Path) -> Result<bool, Failure> {
    let left: u32 = std::fs::read_to_string(stock)?.trim().parse()?;
    if left == 0 {
        return Ok(false);
    }
    tokio::time::sleep(THINK).await;
    // The rename is one step, so that no process reads half a number.
    let new = stock.with_extension(std::process::id().to_string());
    std::fs::write(&new, (left - 1).to_string())?;
    std::fs::rename(&new, stock)?;
    println!("sold");
    Ok(true)
}

/// Sells everything with several processes, with a lock in `store`, or without a lock for `None`.
pub async fn play(args: &Args, store: Option<&str>) -> Result<Sale, Failure> {
    let directory = tempfile::tempdir()?;
    let stock = directory.path().join("stock");
    std::fs::write(&stock, args.stock.to_string())?;
    let workers = (0..args.processes).map(|_| {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(STOCK, &stock).env_remove(STORE).stdout(Stdio::piped()).kill_on_drop(true);
        if let Some(url) = store {
            command.env(STORE, url);
        }
        command.spawn()
    });
    let workers = workers.collect::<Result<Vec<_>, _>>()?;
    let mut sold = 0;
    for output in
        futures_util::future::join_all(workers.into_iter().map(|w| w.wait_with_output())).await
    {
        let output = output?;
        if !output.status.success() {
            return Err("a worker process failed".into());
        }
        sold += output.stdout.split(|byte| *byte == b'\n').filter(|line| *line == b"sold").count();
    }
    Ok(Sale { stock: args.stock, sold: u32::try_from(sold)?, rejected: 0 })
}
