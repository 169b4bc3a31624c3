//! Texts below the help of the program and of each command, and in its man page.

pub(crate) const RUN: &str = "\
Examples:
  distlock run nightly --no-wait -- ./backup.sh     one host of many makes the backup
  distlock run deploy --wait 10m -- ./deploy.sh     at most ten minutes in line
  distlock run uploads --permits 3 -- ./upload.sh   at most three at a time

`distlock hold` holds a lock without a command.

Exit codes, besides the command's: 75 busy (--no-wait), 124 wait timed out (--wait), 79 lost, 69 no
store. `distlock --help` lists all.";

pub(crate) const HOLD: &str = "\
Examples:
  distlock hold nightly                  until ctrl-c; a second terminal waits for this one
  distlock hold uploads --permits 3      one of three
  distlock hold deploy --json | jq .token

`distlock run` runs a command under a lock, and ends it before another client can get the lock.

Exit codes: 0 released after a signal, 75 busy (--no-wait), 124 wait timed out (--wait), 79 lost,
71 cannot write its line, 69 no store. `distlock --help` lists all.";

pub(crate) const ELECT: &str = "\
Examples:
  distlock elect scheduler \"$(hostname)\" -- ./scheduler      runs while this host leads
  distlock elect db http://10.0.0.5:5432                     leads until a signal
  distlock elect scheduler \"$(hostname)\" --no-wait           exits with 75 if another leads

Exit codes, besides the command's: 75 another leads (--no-wait), 124 wait timed out (--wait),
79 lost, 71 cannot write its line, 69 no store. `distlock --help` lists all.";

pub(crate) const LEADER: &str = "\
Examples:
  curl \"$(distlock leader db)/health\"                      asks the leader
  distlock leader db --watch                               a line for each change
  distlock leader db --json | jq -r .holder.description    the leader's process";

pub(crate) const LS: &str = "\
Examples:
  distlock ls               all names in use
  distlock ls jobs/         those that start with jobs/
  distlock ls --json | jq -r '.[] | select(.waiters != []) | .name'";

pub(crate) const SHOW: &str = "\
Examples:
  distlock show nightly     holders, since when, waiters
  distlock show nightly --json | jq '.holders[0].token'";

pub(crate) const WATCH: &str = "\
Examples:
  distlock watch            all names, live
  distlock watch jobs/ >> locks.log
  distlock watch nightly --json | jq -r '\"\\(.at) \\(.waiters | length)\"'";

pub(crate) const REVOKE: &str = "\
Examples:
  distlock show nightly               prints the attempts
  distlock revoke nightly 3f2a        the start of an attempt is enough
  distlock revoke nightly 3f2a --yes  for scripts";

pub(crate) const TOKEN_FLOOR: &str = "\
Examples:
  distlock token-floor                             shows the floor
  distlock token-floor --above redis://10.0.0.2    this store takes the place of that one
  distlock token-floor --above 1765000000000000    after a restore: SELECT max(fence) FROM orders";

pub(crate) const STORES: &str = "\
Examples:
  distlock stores                                  all stores, with their URLs
  distlock stores --store redis://10.0.0.1         the promises of this one
  distlock stores --json | jq -r '.[] | select(.compiled_in) | .scheme'";

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) const SCHEMA: &str = "\
Examples:
  distlock schema --store postgres: | psql locks
  distlock schema --store mysql: | mysql locks";

pub(crate) const DISTLOCK: &str = "\
Examples:
  distlock run nightly --no-wait -- ./backup.sh     one host of many makes the backup
  distlock run uploads --permits 3 -- ./upload.sh   at most three at a time
  distlock hold deploy                              no deployment until ctrl-c
  distlock elect scheduler \"$(hostname)\" -- ./scheduler
  distlock show nightly                             holders and waiters

The store is the URL of --store, else of DISTLOCK_STORE, else of a config file (store = \"URL\" in
$XDG_CONFIG_HOME/distlock/config.toml or /etc/distlock/config.toml), else this user's own file
(sqlite:), which --require-store refuses. `distlock stores` lists the URLs. A password in --store is seen by all users
of this machine for a moment: write it into DISTLOCK_STORE or the config file.

Exit codes, besides those of the command that is run:
   64  wrong usage
   69  the store is out of reach, or does not answer
   70  the store sent an unexpected answer
   71  the operating system refused something
   75  the lock is busy (--no-wait)
   77  the store denied access
   78  wrong configuration, a request that this store cannot do, or a wrong number of permits
   79  the lock was lost, and its command ended; or the place in line was lost
   80  a store broke a promise (check)
  124  the wait timed out (--wait)
  126  the command cannot be executed
  127  the command was not found
  128+n  signal n ended the command, or the wait. If it is INT, TERM or HUP, and distlock got it,
         distlock ends by it, too. As the first process of a container it exits with the code

After --busy-code N, N takes the place of 75 and 124.";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  source <(distlock completions bash)                      in ~/.bashrc
  source <(distlock completions zsh)                       in ~/.zshrc, behind compinit
  distlock completions fish | source                       in ~/.config/fish/config.fish";

pub(crate) const CHECK: &str = "\
Examples:
  distlock check --store redis://10.0.0.1     all promises, usually in 30 to 60 s
  distlock check --property loss --json       one promise of the usual store
  distlock check --store etcd://10.0.0.1 --store redis://10.0.0.2";

#[cfg(all(feature = "compare", target_os = "linux"))]
pub(crate) const COMPARE: &str = "\
Examples:
  distlock compare --report report.html              all claims on all stores that are installed
  distlock compare --quick --stores sqlite,memory    in a minute, with nothing installed
  distlock compare --claims C7,C8 --stores redis     a late DEL, and a failover
  distlock compare --store redis://10.0.0.5          harmless experiments on a store in use";

#[cfg(all(feature = "bench", target_os = "linux"))]
pub(crate) const BENCH: &str = "\
Examples:
  distlock bench                                     memory and SQLite, in ten seconds
  distlock bench --lab --preset all --quick --report report.html
  distlock bench --store redis://10.0.0.5 --workers 16 --names 16 --rate 500
  distlock bench --lab --sweep workers=1,10,100      how the cost grows
  distlock bench --json > before.json                and after a change:
  distlock bench --against before.json

Exit codes: 0 measured, 1 a lock did not exclude, or a regression beyond noise (--against), 64 wrong
usage, or a load that needs --yes. `distlock --help` lists all.";
