//! The variables of the environment: those that the program reads, and those that it gives to the
//! command. `man` says what each means.

use std::env;

/// The URL of the store, for this program and for the command.
pub(crate) const STORE: &str = "DISTLOCK_STORE";
/// The command gets these. A `distlock` in it has them, too.
pub(crate) const NAME: &str = "DISTLOCK_NAME";
pub(crate) const TOKEN: &str = "DISTLOCK_TOKEN";
pub(crate) const DEADLINE: &str = "DISTLOCK_DEADLINE_MS";
/// The locks of the processes above: `nested` reads and writes it.
pub(crate) const HELD: &str = "DISTLOCK_HELD";
const KNOWN: [&str; 5] = [STORE, NAME, TOKEN, DEADLINE, HELD];
/// All variables of the program begin so.
const PREFIX: &str = "DISTLOCK_";

/// A variable that begins as ours and is none, such as a misspelt one. Kubernetes names the services
/// of a namespace in variables of each container: `DISTLOCK_ETCD_SERVICE_HOST`, `DISTLOCK_PORT`.
pub(crate) fn stray() -> Option<String> {
    let is_link = |name: &str| name.contains("_SERVICE_") || name.contains("_PORT");
    let mut names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.find(|name| name.starts_with(PREFIX) && !KNOWN.contains(&name.as_str()) && !is_link(name))
}
