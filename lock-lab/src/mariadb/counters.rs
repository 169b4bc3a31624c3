//! The numbers that a MariaDB counts.

use crate::{Counters, sql_account::NAME};

pub(super) const ASK: &str = "SHOW GLOBAL STATUS; SHOW PROCESSLIST;";
/// The names under which MariaDB counts these statements.
const OWN: [&str; 2] = ["show_processlist", "show_status"];

pub(super) fn read(answer: &str) -> Counters {
    answer.lines().filter_map(number).collect()
}

/// Reads one line, if its number is used: a name with a number, or a connection.
fn number(line: &str) -> Option<(String, u64)> {
    match line.split('\t').collect::<Vec<_>>()[..] {
        ["Innodb_row_lock_current_waits", value] => Some(("waiting".into(), value.parse().ok()?)),
        ["Innodb_deadlocks", value] => Some(("deadlocks".into(), value.parse().ok()?)),
        [name, value] => {
            let statement = name.strip_prefix("Com_").filter(|name| !OWN.contains(name))?;
            Some((format!("cmd.{statement}"), value.parse().ok()?))
        }
        // The lab asks without a database, so it does not count itself.
        [_id, _user, _host, NAME, ..] => Some(("connections".into(), 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_answer() {
        let of = |line| number(line).map(|(key, value)| format!("{key} {value}"));
        assert_eq!(of("Com_insert\t3").unwrap(), "cmd.insert 3");
        assert_eq!(of("Com_show_status\t3"), None);
        assert_eq!(of("Innodb_row_lock_current_waits\t2").unwrap(), "waiting 2");
        assert_eq!(of("Innodb_deadlocks\t4").unwrap(), "deadlocks 4");
        assert_eq!(of("Ssl_cipher\t"), None);
        let client = "7\tlab\t127.0.0.1:40000\tlab\tSleep\t0\t\tNULL\t0.000";
        assert_eq!(of(client).unwrap(), "connections 1");
        assert_eq!(of("8\tlab\t127.0.0.1:40001\tNULL\tQuery\t0\tx\tSHOW PROCESSLIST\t0.000"), None);
    }
}
