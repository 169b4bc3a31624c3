//! Fencing: a resource that lets in the newest token only. A holder that is late (paused past its
//! TTL, or its lock revoked) still believes in its lock; the resource, which need not know of any lock
//! at all, refuses what it sends.
//!
//! `cargo run --example fenced`, or with the URL of a store: `-- etcd://127.0.0.1:2379`

mod http;
mod sql;

use std::process::ExitCode;

use distlock::{FencingToken, Locks};

/// Whatever goes wrong, for `main` to say.
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
    // It looked at its lock before it was revoked, and writes now.
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

/// As an operator does, or as time does whose TTL has passed.
async fn revoke_all(locks: &Locks) -> Result<(), Failure> {
    for attempt in locks.inspect(NAME).await?.iter().filter_map(|entry| entry.attempt) {
        locks.revoke(NAME, attempt).await?;
    }
    Ok(())
}
