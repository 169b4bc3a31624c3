//! What the commands wrote.

use std::{
    cell::{RefCell, RefMut},
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

pub struct Log {
    path: PathBuf,
    seen: RefCell<Seen>,
}

/// What has been read: a long run looks often, and writes much.
#[derive(Default)]
struct Seen {
    bytes: u64,
    beats: Vec<Beat>,
    families: BTreeMap<u64, Family>,
}

/// One line.
struct Beat {
    token: u64,
    at: u128,
    pid: u32,
    role: String,
}

/// Who wrote under a token.
#[derive(Default)]
struct Family {
    roles: BTreeSet<String>,
    pids: BTreeSet<u32>,
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

    /// Reads what is new.
    fn seen(&self) -> RefMut<'_, Seen> {
        let mut seen = self.seen.borrow_mut();
        let mut file = File::open(&self.path).expect("the log");
        file.seek(SeekFrom::Start(seen.bytes)).expect("what is new");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("text");
        // The last line may be on its way.
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

    /// Lines that were written when somebody with a newer token had begun.
    pub fn overlap(&self) -> Vec<String> {
        let seen = self.seen();
        let beats = &seen.beats;
        let mut began: BTreeMap<u64, u128> = BTreeMap::new();
        for beat in beats {
            let first = began.entry(beat.token).or_insert(beat.at);
            *first = (*first).min(beat.at);
        }
        let late = |beat: &&Beat| began.range(beat.token + 1..).any(|(_, at)| *at <= beat.at);
        let show = |beat: &Beat| format!("{} {} {}", beat.token, beat.at, beat.role);
        beats.iter().filter(late).map(show).collect()
    }
}

impl Seen {
    fn add(&mut self, beat: Beat) {
        let family = self.families.entry(beat.token).or_default();
        family.pids.insert(beat.pid);
        if !family.roles.contains(&beat.role) {
            family.roles.insert(beat.role.clone());
        }
        self.beats.push(beat);
    }
}

impl Beat {
    /// Each line is one write.
    fn parse(line: &str) -> Self {
        let [token, at, pid, role] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a line of the log: {line:?}")
        };
        let number = |text: &str| text.parse().expect("a number");
        let pid = pid.parse().expect("a process id");
        let at = at.parse().expect("a time");
        Self { token: number(token), at, pid, role: role.to_owned() }
    }
}
