//! The table of errors, row by row.

use redis::{make_extension_error, parse_redis_value};

use super::*;

fn reply(line: &str) -> RedisError {
    let reply = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
    reply.extract_error().unwrap_err()
}

fn io(kind: io::ErrorKind) -> RedisError {
    io::Error::from(kind).into()
}

const MISCONF_6: &str = "MISCONF Redis is configured to save RDB snapshots, but it is currently \
    not able to persist on disk.";
const MISCONF_7: &str = "MISCONF Redis is configured to save RDB snapshots, but it's currently \
    unable to persist to disk.";
const MISCONF_AOF: &str = "MISCONF Errors writing to the AOF file: No space left on device";
const READONLY: &str = "READONLY You can't write against a read only replica.";
const MASTERDOWN: &str =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
const NOREPLICAS: &str = "NOREPLICAS Not enough good replicas to write.";
const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
const SCRIPT: &str = "f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791";

/// The error of 6.2 when a command inside a script is refused.
fn inside_6(what: &str) -> RedisError {
    reply(&format!(
        "ERR Error running script (call to {SCRIPT}): @user_script:4: @user_script: 4: {what} "
    ))
}

/// The same error of 7.0 and later.
fn inside_7(what: &str) -> RedisError {
    reply(&format!("{what} script: {SCRIPT}, on @user_script:4."))
}

fn check(rows: impl IntoIterator<Item = (RedisError, &'static str, Effect)>) {
    for (error, kind, effect) in rows {
        let shown = error.to_string();
        let ours = convert("acquire", error);
        let is = match &ours {
            Error::Unavailable { .. } => "unavailable",
            Error::Denied { .. } => "denied",
            Error::Rejected { .. } => "rejected",
            _ => "else",
        };
        assert_eq!((is, ours.effect()), (kind, effect), "{shown}");
    }
}

#[test]
fn every_row_of_the_table() {
    use Effect::{None, Unknown};
    check([
        (io(io::ErrorKind::ConnectionRefused), "unavailable", None),
        (io(io::ErrorKind::ConnectionReset), "unavailable", Unknown),
        (io(io::ErrorKind::BrokenPipe), "unavailable", Unknown),
        (io(io::ErrorKind::TimedOut), "unavailable", Unknown),
        (reply("LOADING Redis is loading the dataset in memory"), "unavailable", None),
        (reply(MASTERDOWN), "unavailable", None),
        (reply(READONLY), "unavailable", None),
        (reply("CLUSTERDOWN The cluster is down"), "unavailable", None),
        (reply("TRYAGAIN Multiple keys request during rehashing"), "unavailable", None),
        (reply("ASK 5 127.0.0.1:7"), "unavailable", None),
        (reply("BUSY Redis is busy running a script"), "unavailable", None),
        (reply(MISCONF_6), "unavailable", None),
        (reply(MISCONF_7), "unavailable", None),
        (reply(NOREPLICAS), "unavailable", None),
        (reply("NOAUTH Authentication required."), "denied", None),
        (reply("WRONGPASS invalid username-password pair"), "denied", None),
        (reply("NOPERM this user has no permissions"), "denied", None),
        (reply(OOM), "unavailable", None),
        (reply("ERR max number of clients reached"), "unavailable", None),
        (reply("DENIED Redis is running in protected mode because ..."), "denied", None),
        (reply("CROSSSLOT Keys in request don't hash to the same slot"), "rejected", None),
        (too_old("6.0.16"), "rejected", None),
        (reply("NOSCRIPT No matching script. Please use EVAL."), "rejected", None),
        (reply("ERR unknown command"), "rejected", Unknown),
        (make_extension_error("ODD".into(), Option::None), "rejected", Unknown),
    ]);
}

#[test]
fn a_refusal_inside_a_script_counts_like_one_outside() {
    use Effect::{None, Unknown};
    for (what, kind) in [
        (READONLY, "unavailable"),
        (MASTERDOWN, "unavailable"),
        (MISCONF_6, "unavailable"),
        (MISCONF_7, "unavailable"),
        (MISCONF_AOF, "unavailable"),
        (NOREPLICAS, "unavailable"),
        (OOM, "unavailable"),
    ] {
        check([(inside_6(&format!("-{what}")), kind, None), (inside_7(what), kind, None)]);
    }
    let no_command = "The user executing the script can't run this command or subcommand";
    let no_key = "The user executing the script can't access at least one of the keys \
                  mentioned in the command arguments";
    let later = "ERR ACL failure in script: User few has no permissions to run the 'set' command";
    let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
    check([
        (inside_6(no_command), "denied", None),
        (inside_6(no_key), "denied", None),
        (inside_7(&format!("ERR {no_command}")), "denied", None),
        (inside_7(later), "denied", None),
        (inside_6(wrong), "rejected", Unknown),
        (inside_7(wrong), "rejected", Unknown),
    ]);
}

#[test]
fn only_a_replica_sends_the_client_elsewhere() {
    for replica in [READONLY, MASTERDOWN] {
        assert!(is_replica(&reply(replica)), "{replica}");
        assert!(is_replica(&inside_6(&format!("-{replica}"))), "{replica}");
        assert!(is_replica(&inside_7(replica)), "{replica}");
    }
    for other in [MISCONF_7, NOREPLICAS, OOM] {
        assert!(!is_replica(&reply(other)), "{other}");
        assert!(!is_replica(&inside_6(&format!("-{other}"))), "{other}");
    }
}
