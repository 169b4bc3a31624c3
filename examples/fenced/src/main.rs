//! Fencing: a resource that accepts only the newest token. A late holder (paused past its TTL, or
//! with a revoked lock) still believes in its lock. The resource refuses its writes, and need not
//! know about locks.
//!
//! `cargo run -p fenced`, or with the URL of a store:
//! `cargo run -p fenced --features distlock/etcd -- etcd://127.0.0.1:2379`

mod http;
mod sql;

use std::process::ExitCode;

use distlock::{FencingToken, Locks};

/// Any error, printed by `main`.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

const NAME: &str = "fenced-stock";

#[tokio::main]
async fn main() -> ExitCode {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:fenced".to_owned());
    match demonstrate(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn demonstrate(url: &str) -> Result<(), Failure> {
    let (here, there) = (distlock::connect(url).await?, distlock::connect(url).await?);
    let (table, service) = (sql::Stock::new().await?, http::Stock::serve().await?);

    let late = here.lock(NAME)?.acquire().await?;
    say("first holder", late.token(), &table, &service, 41).await?;
    revoke_all(&there).await?;
    let next = there.lock(NAME)?.acquire().await?;
    say("next holder", next.token(), &table, &service, 40).await?;
    // This holder checked its lock before the revoke, and writes now.
    say("late holder", late.token(), &table, &service, 39).await?;

    let left = (table.left().await?, service.left().await?);
    println!("left: {} by the table, {} by the service", left.0, left.1);
    next.release().await?;
    here.close().await?;
    there.close().await?;
    if left == (40, 40) { Ok(()) } else { Err("a late write went through".into()) }
}

async fn say(
    who: &str,
    token: FencingToken,
    table: &sql::Stock,
    service: &http::Stock,
    left: i64,
) -> Result<(), Failure> {
    let said = |written| if written { "written" } else { "refused" };
    let (in_table, in_service) =
        (table.write(token, left).await?, service.write(token, left).await?);
    println!("{who}, token {token}: SQL {}, HTTP {}", said(in_table), said(in_service));
    Ok(())
}

/// Revokes the holders, as an operator does. A TTL that has passed has the same effect.
async fn revoke_all(locks: &Locks) -> Result<(), Failure> {
    for attempt in locks.inspect(NAME).await?.iter().filter_map(|entry| entry.attempt) {
        locks.revoke(NAME, attempt).await?;
    }
    Ok(())
}
