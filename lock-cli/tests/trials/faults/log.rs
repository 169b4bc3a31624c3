//! The lines that the commands wrote.

use std::{
    cell::{RefCell, RefMut},
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use lock_core::Instant;

pub struct Log {
    path: PathBuf,
    seen: RefCell<Seen>,
}

/// The lines that were read: a long run looks often, and writes much.
#[derive(Default)]
struct Seen {
    bytes: u64,
    families: BTreeMap<u64, Family>,
}

/// One line.
struct Beat {
    token: u64,
    at: Instant,
    pid: u32,
    role: String,
}

/// The processes that wrote under a token, and when.
struct Family {
    roles: BTreeSet<String>,
    pids: BTreeSet<u32>,
    first: Instant,
    last: Instant,
    last_role: String,
}

/// A process wrote after another one with a newer token had begun.
pub struct Overlap {
    pub token: u64,
    pub role: String,
    /// The time of the other one's first line.
    pub from: Instant,
    /// The last line.
    pub to: Instant,
}

impl Log {
    pub fn new(folder: &Path) -> Self {
        let path = folder.join("log");
        std::fs::write(&path, "").expect("a log");
        Self { path, seen: RefCell::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the new lines.
    fn seen(&self) -> RefMut<'_, Seen> {
        let mut seen = self.seen.borrow_mut();
        let mut file = File::open(&self.path).expect("the log");
        file.seek(SeekFrom::Start(seen.bytes)).expect("what is new");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("text");
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        seen.bytes += whole as u64;
        text[..whole].lines().for_each(|line| seen.add(Beat::parse(line)));
        seen
    }

    /// The newest token under which the whole family has written, if it is newer than this.
    pub fn family_after(&self, token: u64) -> Option<u64> {
        let seen = self.seen();
        let (newest, family) = seen.families.last_key_value()?;
        (*newest > token && family.roles.len() == 3).then_some(*newest)
    }

    /// The processes that wrote under this token.
    pub fn pids(&self, token: u64) -> BTreeSet<u32> {
        self.seen().families.get(&token).map(|family| family.pids.clone()).unwrap_or_default()
    }

    /// The newest token whose family wrote into another one's time.
    pub fn overlap(&self) -> Option<Overlap> {
        let seen = self.seen();
        let mut next = Instant::NEVER;
        for (token, family) in seen.families.iter().rev() {
            if family.last >= next {
                let (role, to) = (family.last_role.clone(), family.last);
                return Some(Overlap { token: *token, role, from: next, to });
            }
            next = next.min(family.first);
        }
        None
    }
}

impl Seen {
    fn add(&mut self, beat: Beat) {
        let family = self.families.entry(beat.token).or_insert_with(|| Family {
            roles: BTreeSet::new(),
            pids: BTreeSet::new(),
            first: beat.at,
            last: beat.at,
            last_role: String::new(),
        });
        family.pids.insert(beat.pid);
        family.first = family.first.min(beat.at);
        if beat.at >= family.last {
            family.last = beat.at;
            family.last_role.clone_from(&beat.role);
        }
        family.roles.insert(beat.role);
    }
}

impl Beat {
    /// Each line is one write.
    fn parse(line: &str) -> Self {
        let [token, at, pid, role] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a line of the log: {line:?}")
        };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let pid = pid.parse().expect("a process id");
        let at = Instant::default() + Duration::from_nanos(number(at));
        Self { token: number(token), at, pid, role: role.to_owned() }
    }
}
