//! The scripts as they are sent to the server, each with the parts of the library that it uses.

use std::sync::LazyLock;

use redis::{Arg, Cmd};

use crate::{config::Mode, layout::key::FLOOR as FLOOR_KEY};

/// A script and the hash by which the server knows it.
pub(crate) struct Lua {
    code: String,
    hash: String,
}

/// Returns a part of the library. A line `--@PART ..` in a script stands for the parts that it
/// names. A script names only the parts that it uses, because each function in it costs time.
fn part(name: &str) -> &'static str {
    match name {
        "token" => include_str!("scripts/library/token.lua"),
        "record" => include_str!("scripts/library/record.lua"),
        "grant" => include_str!("scripts/library/grant.lua"),
        "leader" => include_str!("scripts/library/leader.lua"),
        "group" => include_str!("scripts/library/group.lua"),
        "rule" => include_str!("scripts/library/rule.lua"),
        "leave" => include_str!("scripts/library/leave.lua"),
        "wait" => include_str!("scripts/library/wait.lua"),
        // A script with an unknown part fails on the server, and in all tests.
        _ => "",
    }
}

impl Lua {
    fn new(text: &str) -> Self {
        let whole = |line| match str::strip_prefix(line, "--@") {
            Some(parts) => parts.split_whitespace().map(part).collect(),
            None => line.to_owned(),
        };
        let code: String = text.split_inclusive('\n').map(whole).collect();
        let hash = redis::Script::new(&code).get_hash().to_owned();
        Self { code, hash }
    }

    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the command that loads the script on the server.
    pub(crate) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(&self.code);
        command
    }
}

macro_rules! scripts {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) static $name: LazyLock<Lua> =
            LazyLock::new(|| Lua::new(include_str!(concat!("scripts/", $file))));)+

        static ALL: &[&LazyLock<Lua>] = &[$(&$name),+];
    };
}

// The most frequent scripts first.
scripts! {
    ACQUIRE = "acquire.lua",
    RELEASE = "release.lua",
    ROUND = "round.lua",
    KEEP = "keep.lua",
    ACQUIRE_ALL = "acquire_all.lua",
    CONVERT = "convert.lua",
    PUBLISH = "publish.lua",
    READ = "read.lua",
    REVOKE = "revoke.lua",
    HAND_OVER = "hand_over.lua",
    FLOOR = "floor.lua",
    SIMPLE_ACQUIRE = "simple_acquire.lua",
    SIMPLE_RELEASE = "simple_release.lua",
}

/// Returns the scripts of an uncontended lock. They are loaded when a connection is made.
pub(crate) fn usual(mode: Mode) -> [&'static Lua; 3] {
    match mode {
        Mode::Queue => [&ACQUIRE, &RELEASE, &ROUND],
        Mode::Simple => [&SIMPLE_ACQUIRE, &SIMPLE_RELEASE, &ROUND],
    }
}

/// Returns the script that a command calls.
pub(crate) fn called(command: &Cmd) -> Option<&'static Lua> {
    match command.args_iter().nth(1)? {
        Arg::Simple(hash) => {
            ALL.iter().map(|script| &***script).find(|script| script.hash.as_bytes() == hash)
        }
        _ => None,
    }
}

/// Whether a command may grant or renew a lock, or give it to another attempt.
pub(crate) fn takes(command: &Cmd) -> bool {
    let takes = [&*ACQUIRE, &ROUND, &KEEP, &ACQUIRE_ALL, &CONVERT, &HAND_OVER, &SIMPLE_ACQUIRE];
    called(command).is_some_and(|script| takes.iter().any(|takes| takes.hash == script.hash))
}

/// Returns the key of the token floor, if the command calls a script with this key.
pub(crate) fn floor_in(command: &Cmd) -> Option<&[u8]> {
    called(command)?;
    let simple = |arg| match arg {
        Arg::Simple(bytes) => Some(bytes),
        _ => None,
    };
    let keys = simple(command.args_iter().nth(2)?)?;
    let keys: usize = std::str::from_utf8(keys).ok()?.parse().ok()?;
    let last = simple(command.args_iter().nth(2 + keys)?)?;
    last.ends_with(FLOOR_KEY).then_some(last)
}
