//! The options of `run`, `hold` and `elect`, with their help.

#[cfg(feature = "metrics")]
use std::net::SocketAddr;
use std::{ffi::OsString, time::Duration};

use clap::Args;
use clap_complete::engine::{ArgValueCompleter, PathCompleter};
use distlock::LockKind;

use crate::{
    on_lost::OnLost,
    values::{self, Policies},
};

/// Holds a lock while a command runs, and returns the command's exit code.
///
/// The command sees DISTLOCK_NAME, DISTLOCK_TOKEN (the fencing token), DISTLOCK_STORE (the URL
/// without its password) and DISTLOCK_DEADLINE_MS (the end of the lease at its start, in
/// milliseconds on the clock of /proc/uptime). When the command has ended, distlock ends the
/// processes that it left running, and then releases the lock. A distlock in the command refuses to
/// wait for the same lock: that would never end.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock run nightly --no-wait -- ./backup.sh     one host of many makes the backup
  distlock run nightly --once-per 20h -- ./backup.sh   .. and no other one, if it succeeds
  distlock run deploy --wait 10m -- ./deploy.sh     at most ten minutes in line
  distlock run uploads --permits 3 -- ./upload.sh   at most three at a time

`distlock hold` holds a lock without a command.

Exit codes, besides the command's: 75 busy (--no-wait), 124 wait timed out (--wait), 79 lost, 69 no
store. `distlock --help` lists all.")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    #[command(flatten)]
    pub(crate) losing: Losing,
    /// Holds the lock at least this long, also if the command is shorter. So a host whose clock is
    /// late skips a job that another host has done. A signal that ends the command ends this time,
    /// too.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) at_least: Option<Duration>,
    /// Runs the command once in this time, on one of the hosts. A command that succeeds leaves a
    /// mark in the store, and the time counts from its grant. If there is a mark, before the wait
    /// or after it, distlock says so and exits with 0. There is no mark of a command that failed,
    /// lost the lock, or was asked to end. After a crash, the command may run again.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    #[arg(conflicts_with_all = ["shared", "permits"])]
    pub(crate) once_per: Option<Duration>,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, add = ArgValueCompleter::new(PathCompleter::any()))]
    pub(crate) command: Vec<OsString>,
}

/// Holds a lock without a command, until a signal ends it.
///
/// Prints the line `holding NAME with token TOKEN` when it holds the lock. SIGINT, SIGTERM, SIGHUP
/// and SIGQUIT release the lock, and the exit code is 0. During the wait they end the wait and the
/// program. When the lock is lost, distlock says so on stderr and exits with 79.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock hold nightly                  until ctrl-c; a second terminal waits for this one
  distlock hold uploads --permits 3      one of three
  distlock hold deploy --json | jq .token

`distlock run` runs a command under a lock, and ends it before another client can get the lock.

Exit codes: 0 released after a signal, 75 busy (--no-wait), 124 wait timed out (--wait), 79 lost,
71 cannot write its line, 69 no store. `distlock --help` lists all.")]
pub(crate) struct Hold {
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    /// Prints an object with the name and the token.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Waits until it leads, publishes VALUE, and leads until a signal ends it.
///
/// With a command, it leads while the command runs, as `run` does. Without a command, SIGINT and
/// SIGTERM resign, and the exit code is 0.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  distlock elect scheduler \"$(hostname)\" -- ./scheduler      runs while this host leads
  distlock elect db http://10.0.0.5:5432                     leads until a signal
  distlock elect scheduler \"$(hostname)\" --no-wait           exits with 75 if another leads

Exit codes, besides the command's: 75 another leads (--no-wait), 124 wait timed out (--wait),
79 lost, 71 cannot write its line, 69 no store. `distlock --help` lists all.")]
pub(crate) struct Elect {
    /// The name of the election: any text of 1 to 512 bytes.
    pub(crate) name: String,
    /// Text that all clients can read, such as the address of the leader.
    pub(crate) value: String,
    #[command(flatten)]
    pub(crate) terms: Terms,
    #[command(flatten)]
    pub(crate) losing: Losing,
    /// Prints an object when it leads. Not together with a command.
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, add = ArgValueCompleter::new(PathCompleter::any()))]
    pub(crate) command: Vec<OsString>,
}

/// The lock, its kind, and how to get it.
#[derive(Args, Debug)]
pub(crate) struct Wanted {
    /// The name of the lock: any text of 1 to 512 bytes.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Shares the lock with others that share it, too.
    #[arg(long, conflicts_with = "permits")]
    pub(crate) shared: bool,
    /// Takes one of N permits. All clients of the name must use the same N: it waits until those with
    /// another N are gone.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) permits: Option<u32>,
}

impl Wanted {
    pub(crate) fn kind(&self) -> LockKind {
        match self.permits {
            Some(_) => LockKind::Permits,
            None if self.shared => LockKind::Shared,
            None => LockKind::Exclusive,
        }
    }
}

/// How to get a lock, and for how long.
#[derive(Args, Debug)]
pub(crate) struct Terms {
    /// Time until the lock ends without a renewal. Default: the default of the store, usually 15s.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) ttl: Option<Duration>,
    /// Longest wait for the lock. Default: no limit.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) wait: Option<Duration>,
    /// Does not wait, but exits with 75 if the lock is busy.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Longest hold. At its end, the command is ended as at a loss: SIGTERM comes earlier by the
    /// grace, which is at most a third of this time. Default: no limit.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) max_hold: Option<Duration>,
    /// Exits with this code if the lock is busy (75) or the wait timed out (124).
    #[arg(long, value_name = "N")]
    pub(crate) busy_code: Option<u8>,
    /// Serves metrics for Prometheus at http://ADDR/metrics, such as 127.0.0.1:9464. Port 0 takes a
    /// free one, and says which on stderr.
    #[cfg(feature = "metrics")]
    #[arg(long, value_name = "ADDR", value_parser = values::address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Prints nothing about the wait, a busy lock, work that is done already, and a store that
    /// nobody named.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What to do with the command when the lock is lost.
#[derive(Args, Debug)]
pub(crate) struct Losing {
    /// Ends the command when the lock is about to be lost. term:GRACE sends SIGTERM, and SIGKILL
    /// after GRACE, before another client can get the lock. kill sends SIGKILL alone. ignore lets
    /// the command run. Three times the grace and the margin (a twentieth of the TTL, at least
    /// 50ms) must fit into the TTL. Default: term, with 5s or the longest grace that fits, such as
    /// 4.25s for a TTL of 15s.
    #[arg(long, value_name = "POLICY", default_value = "term", value_parser = Policies)]
    #[arg(hide_possible_values = true)]
    pub(crate) on_lost: OnLost,
}
