//! What the commands wrote.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

pub struct Log(PathBuf);

/// One line.
struct Beat {
    token: u64,
    at: u128,
    pid: u32,
    role: String,
}

impl Log {
    pub fn new(folder: &Path) -> Self {
        let path = folder.join("log");
        std::fs::write(&path, "").expect("a log");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn beats(&self) -> Vec<Beat> {
        let text = std::fs::read_to_string(&self.0).expect("the log");
        let beats = text.lines().map(|line| {
            let fields: Vec<_> = line.split(' ').collect();
            Some(Beat {
                token: fields.first()?.parse().ok()?,
                at: fields.get(1)?.parse().ok()?,
                pid: fields.get(2)?.parse().ok()?,
                role: (*fields.get(3)?).to_owned(),
            })
        });
        // The last line may be on its way.
        beats.flatten().collect()
    }

    /// The newest token under which the whole family has written, if it is newer than this.
    pub fn family_after(&self, token: u64) -> Option<u64> {
        let mut roles: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for beat in self.beats() {
            roles.entry(beat.token).or_default().insert(beat.role);
        }
        let (newest, roles) = roles.pop_last()?;
        (newest > token && roles.len() == 3).then_some(newest)
    }

    /// The processes that wrote under this token.
    pub fn pids(&self, token: u64) -> BTreeSet<u32> {
        self.beats().iter().filter(|beat| beat.token == token).map(|beat| beat.pid).collect()
    }

    /// Lines that were written when somebody with a newer token had begun.
    pub fn overlap(&self) -> Vec<String> {
        let beats = self.beats();
        let mut began: BTreeMap<u64, u128> = BTreeMap::new();
        for beat in &beats {
            let first = began.entry(beat.token).or_insert(beat.at);
            *first = (*first).min(beat.at);
        }
        let late = |beat: &&Beat| began.range(beat.token + 1..).any(|(_, at)| *at <= beat.at);
        let show = |beat: &Beat| format!("{} {} {}", beat.token, beat.at, beat.role);
        beats.iter().filter(late).map(show).collect()
    }
}
