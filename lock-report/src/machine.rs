//! The machine of a run.

use std::{collections::BTreeMap, fs, process::Command, thread};

use serde::{Deserialize, Serialize};

/// The parts of the machine that influence figures.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The operating system and its release.
    pub system: String,
    /// The processor's model.
    pub processor: String,
    /// The processors that this process may use.
    pub cores: usize,
    /// The memory, in GiB.
    pub memory: u64,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn this() -> Self {
        let uname = rustix::system::uname();
        let (name, release) =
            (uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
        Self {
            system: format!("{name} {release}"),
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory: memory().unwrap_or_default(),
        }
    }
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory() -> Option<u64> {
    let kib: u64 = field("/proc/meminfo", "MemTotal")?.split(' ').next()?.parse().ok()?;
    Some(kib.div_ceil(1024 * 1024))
}

/// The programs that print their versions, with their arguments.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("redis", "redis-server", "--version"),
    ("etcd", "etcd", "--version"),
    ("etcdctl", "etcdctl", "version"),
    ("mariadb (for MySQL)", "/usr/sbin/mariadbd", "--version"),
    ("postgres", "psql", "--version"),
];

/// Returns the versions of distlock and of the servers on this machine.
pub fn versions() -> BTreeMap<String, String> {
    let told = PROGRAMS.iter().filter_map(|(name, program, ask)| {
        let output = Command::new(program).arg(ask).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Some((name.to_string(), number(text.lines().next()?)?))
    });
    let ours = ("distlock".into(), env!("CARGO_PKG_VERSION").into());
    told.chain(zookeeper().map(|version| ("zookeeper".into(), version))).chain([ours]).collect()
}

/// ZooKeeper's version, from the name of its jar: no program prints it.
fn zookeeper() -> Option<String> {
    let jars = fs::read_dir("/usr/share/java").ok()?.flatten();
    let names = jars.filter_map(|jar| jar.file_name().into_string().ok());
    names
        .filter_map(|name| {
            let rest = name.strip_prefix("zookeeper-")?.strip_suffix(".jar")?;
            number(rest).filter(|version| version == rest)
        })
        .max()
}

/// Returns the first word with a digit and a dot.
fn number(line: &str) -> Option<String> {
    let mut words = line.split([' ', '=', ',', '-']).filter(|word| word.contains('.'));
    let word = words
        .find(|word| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()))?;
    Some(word.trim_start_matches('v').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_each_programs_line_is_found() {
        let lines = [
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0", "7.0.15"),
            ("etcd Version: 3.4.23", "3.4.23"),
            ("/usr/sbin/mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian", "10.11.14"),
            ("psql (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)", "15.14"),
        ];
        for (line, version) in lines {
            assert_eq!(number(line).as_deref(), Some(version), "{line}");
        }
    }
}
