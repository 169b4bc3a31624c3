//! The arguments of this program, without passwords where other users of the machine see them.
//!
//! All users can read the arguments of a process for as long as it runs, and only its own user and
//! root its environment. So the program starts itself again, in the same process, with the URLs in
//! a variable.

use std::{env, ffi::OsString, process};

use lock_core::StoreUrl;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// Variable with the hidden arguments. The launcher removes it for the command of `run`.
pub(crate) const VARIABLE: &str = "_DISTLOCK_ARGUMENTS";
/// The options whose value is the URL of a store.
const OPTIONS: [&str; 2] = ["--store", "--above"];

/// The hidden arguments of one process.
#[derive(Deserialize, Serialize)]
struct Hidden {
    /// Another process may inherit the variable.
    process: u32,
    /// Their places, and the arguments.
    arguments: Vec<(usize, String)>,
}

/// The arguments as they were given, the program's name first.
pub(crate) fn given() -> Vec<OsString> {
    let mut arguments: Vec<_> = env::args_os().collect();
    let hidden =
        env::var(VARIABLE).ok().and_then(|text| serde_json::from_str::<Hidden>(&text).ok());
    for (place, argument) in hidden.filter(Hidden::is_own).into_iter().flat_map(|h| h.arguments) {
        if let Some(shown) = arguments.get_mut(place)
            && without_password(&argument).is_some_and(|without| *shown == *without)
        {
            *shown = argument.into();
        }
    }
    arguments
}

/// The words of a command at the end of the line, as other users may see them. Read before a fork,
/// which writes over them in the new process.
#[cfg(target_os = "linux")]
pub(crate) fn shown(command: &[OsString]) -> Vec<OsString> {
    let mut arguments: Vec<_> = env::args_os().collect();
    arguments.split_off(arguments.len().saturating_sub(command.len()))
}

/// Starts this program again if there is a password in the URL of an option. Returns if there is
/// none. The process keeps its number, its terminal and its ignored signals.
pub(crate) fn hide() -> Result<(), Failure> {
    let mut arguments: Vec<_> = env::args_os().collect();
    let secret = secret(&arguments);
    if secret.is_empty() {
        return Ok(());
    }
    let mut hidden = Hidden { process: process::id(), arguments: Vec::new() };
    for (place, without) in secret {
        let argument = std::mem::replace(&mut arguments[place], without.into());
        hidden.arguments.extend(argument.into_string().map(|argument| (place, argument)));
    }
    restart(&arguments, &hidden)
}

impl Hidden {
    fn is_own(&self) -> bool {
        self.process == process::id()
    }
}

/// The arguments that have a password: their places, and what is shown in their stead. The options
/// of a command that is run count, too: the command gets them as they were given.
fn secret(arguments: &[OsString]) -> Vec<(usize, String)> {
    let is_value = |place: usize| {
        let before = place.checked_sub(1).and_then(|before| arguments[before].to_str());
        before.is_some_and(|before| OPTIONS.contains(&before))
    };
    let found = arguments.iter().enumerate().filter_map(|(place, argument)| {
        let argument = argument.to_str()?;
        let option = argument.split_once('=').is_some_and(|(name, _)| OPTIONS.contains(&name));
        let shown = (option || is_value(place)).then(|| without_password(argument))??;
        Some((place, shown))
    });
    found.collect()
}

/// `URL` or `--OPTION=URL` with stars for the password. `None` if it has none.
fn without_password(argument: &str) -> Option<String> {
    let (option, url) = match argument.starts_with("--").then(|| argument.split_once('=')) {
        Some(Some((option, url))) => (format!("{option}="), url),
        _ => (String::new(), argument),
    };
    // A wrong URL ends the program at once.
    let shown = StoreUrl::parse(url).ok()?.to_string();
    (shown != url).then(|| option + &shown)
}

#[cfg(unix)]
fn restart(arguments: &[OsString], hidden: &Hidden) -> Result<(), Failure> {
    use std::{io, os::unix::process::CommandExt, path::PathBuf, process::Command};

    let what = "hiding the password of --store from other users of this machine (DISTLOCK_STORE is \
                hidden)";
    let failed = || Failure::system(what);
    let text = serde_json::to_string(hidden).map_err(io::Error::from).map_err(failed())?;
    let start = |program: PathBuf| {
        let mut command = Command::new(program);
        command.arg0(&arguments[0]).args(&arguments[1..]).env(VARIABLE, &text).exec()
    };
    // By its path, which gives the process its name. An upgrade may have deleted the file.
    let own = env::current_exe().map_or_else(|error| error, start);
    let error = if cfg!(target_os = "linux") { start("/proc/self/exe".into()) } else { own };
    Err(failed()(error))
}

/// Other systems cannot start a program in the same process.
#[cfg(not(unix))]
fn restart(_: &[OsString], _: &Hidden) -> Result<(), Failure> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_options_with_a_password_are_hidden() {
        let hidden = |line: &str| {
            let mut arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            for (place, shown) in secret(&arguments.clone()) {
                arguments[place] = shown.into();
            }
            arguments.join(" ".as_ref()).into_string().expect("text")
        };
        for (line, shown) in [
            ("distlock --store redis://u:p@h ls", "distlock --store redis://u:***@h ls"),
            ("distlock ls --store=redis://:p@h/2", "distlock ls --store=redis://:***@h/2"),
            (
                "distlock token-floor --above=etcd://u:p@h",
                "distlock token-floor --above=etcd://u:***@h",
            ),
            ("distlock run x redis://u:p@h", "distlock run x redis://u:p@h"),
            ("distlock ls --store redis://u@h", "distlock ls --store redis://u@h"),
            ("distlock ls --store sqlite:/a=b", "distlock ls --store sqlite:/a=b"),
            ("--store", "--store"),
        ] {
            assert_eq!(hidden(line), shown);
        }
    }
}
