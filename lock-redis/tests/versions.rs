//! Which versions of the server are refused.

use lock_core::Error;

use crate::lab::*;

/// Debian's Redis 7.0 is not; `./test --long` has a 6.0 in its place.
#[tokio::test]
async fn a_redis_before_6_2_is_refused() {
    let server = server().await;
    let info = server.command(&[b"INFO", b"server"]).await.unwrap();
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    let version = version.unwrap().trim();
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap());
    let is_old = (numbers.next(), numbers.next()) < (Some(6), Some(2));
    for mode in ["queue", "simple"] {
        let connected = try_driver(&format!("{}?mode={mode}", server.url())).await;
        let Err(refused) = connected else {
            assert!(!is_old, "{mode}: {version}");
            continue;
        };
        assert!(is_old && matches!(refused, Error::Rejected { .. }), "{mode}: {refused}");
        let text = format!("the server is Redis {version}, and locks need 6.2 (SET .. GET)");
        assert!(refused.to_string().contains(&text), "{mode}: {refused}");
    }
}
