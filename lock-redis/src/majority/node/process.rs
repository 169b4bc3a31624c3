//! What a node says about its process.

use std::time::Duration;

use redis::{RedisResult, make_extension_error};

use super::super::fault::unfit;
use crate::wire::info::Info;

/// Returns the random number of the server's process, another one after each restart, and how long
/// that process runs, as it says: up to 1 s more than it does. Refuses a server that is not
/// independent.
pub(super) fn read(info: &Info) -> RedisResult<(&str, Duration)> {
    if info.is_empty() {
        let why = "INFO, by which a restart is noticed: the login needs +info".to_owned();
        return Err(make_extension_error("NOPERM".to_owned(), Some(why)));
    }
    // Also one that takes writes, and gives and gets those of others.
    if info.field("role").is_some_and(|role| role != "master") {
        return Err(unfit("it is a replica; each node must be independent".to_owned()));
    }
    // HELLO tells it, too, and may be forbidden.
    if info.field("redis_mode") == Some("cluster") {
        let why = "it has cluster-enabled yes; each node must be an independent server";
        return Err(unfit(why.to_owned()));
    }
    let uptime = info.field("uptime_in_seconds").and_then(|uptime| uptime.parse::<i64>().ok());
    let (Some(run), Some(uptime)) = (info.field("run_id"), uptime) else {
        return Err(unfit("INFO does not show run_id and uptime_in_seconds".to_owned()));
    };
    // Negative if its clock was set back.
    Ok((run, Duration::from_secs(u64::try_from(uptime).unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_independent_node_is_told_from_others() {
        let info =
            |role| Info::from(&*format!("run_id:abc\r\nuptime_in_seconds:34\r\nrole:{role}\r\n"));
        assert_eq!(read(&info("master")).unwrap(), ("abc", Duration::from_secs(34)));
        for (info, word) in [
            (info("slave"), "replica"),
            (info("active-replica"), "replica"),
            ("redis_mode:cluster\r\n".into(), "cluster"),
            ("run_id:abc\r\n".into(), "uptime_in_seconds"),
            (Info::default(), "+info"),
        ] {
            let refused = read(&info).unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn a_server_whose_clock_was_set_back_has_just_started() {
        let info = "run_id:abc\r\nuptime_in_seconds:-3599\r\n".into();
        assert_eq!(read(&info).unwrap().1, Duration::ZERO);
    }
}
