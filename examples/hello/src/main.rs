//! Connect, acquire, token, release: `cargo run -p hello` on the store in memory, or on another one,
//! `cargo run -p hello --features distlock/redis -- redis://127.0.0.1`.

#[tokio::main]
async fn main() -> distlock::Result<()> {
    let url = std::env::args().nth(1).unwrap_or("memory:".to_owned());
    let locks = distlock::connect(url).await?;
    let guard = locks.lock("orders/42")?.acquire().await?;
    println!("I hold orders/42; the fencing token is {}", guard.token());
    guard.release().await
}
