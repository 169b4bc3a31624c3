//! The scripts as they are sent to the server, each with the parts of the library that it uses.

use std::sync::LazyLock;

use redis::Cmd;

/// A script and the hash by which the server knows it.
#[derive(Debug)]
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
        "counter" => include_str!("scripts/library/counter.lua"),
        "leader" => include_str!("scripts/library/leader.lua"),
        "group" => include_str!("scripts/library/group.lua"),
        "queue" => include_str!("scripts/library/queue.lua"),
        "leave" => include_str!("scripts/library/leave.lua"),
        "wait" => include_str!("scripts/library/wait.lua"),
        // A script with an unknown part fails on the server, and in all tests.
        _ => "",
    }
}

impl Lua {
    pub(crate) fn new(text: &str) -> Self {
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
        redis::cmd("SCRIPT").arg("LOAD").arg(&self.code).take()
    }
}

macro_rules! scripts {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) static $name: LazyLock<Lua> =
            LazyLock::new(|| Lua::new(include_str!(concat!("scripts/", $file))));)+
    };
}

scripts! {
    ACQUIRE = "acquire.lua",
    ACQUIRE_ALL = "acquire_all.lua",
    ROUND = "round.lua",
    RENEW_KEY = "renew_key.lua",
    CONVERT = "convert.lua",
    DETACH = "detach.lua",
    RELEASE = "release.lua",
    PUBLISH = "publish.lua",
    READ = "read.lua",
    REVOKE = "revoke.lua",
    FLOOR = "floor.lua",
    MARK = "mark.lua",
}

/// Returns the scripts of an uncontended lock. They are loaded when a connection is made.
pub(crate) fn usual() -> [&'static Lua; 3] {
    [&ACQUIRE, &RELEASE, &ROUND]
}
