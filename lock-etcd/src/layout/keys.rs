//! The form of keys, and those that are in use. Layout version 1.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex},
};

use lock_core::{Error, Kind, LockName, Result, keep::poison::lock};

/// The keys of sessions begin with this, after the prefix. A raise of the token floor deletes them
/// all, so no name may begin with it. Escaped names have no `#`.
const SESSIONS: &str = "#session";

/// How names become keys: `<prefix><name>/<lease id in hex>.<slot in hex><role>`.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) prefix: String,
    pub(crate) native: bool,
}

impl Keys {
    /// Returns the start of the keys of a name's queue. No other name's keys start with it.
    /// Refuses a name that would collide in the native layout.
    pub(crate) fn queue(&self, name: &LockName) -> Result<Arc<str>> {
        if !self.native {
            return Ok([&self.prefix, &*name.escaped(), "/"].concat().into());
        }
        let collides = if name.as_str().contains('/') {
            "in etcd's native layout a name with '/' would stand in the queue of the name before \
             the '/'; put that part into ?prefix="
        } else if name.as_str().starts_with(SESSIONS) {
            "in etcd's native layout it would stand among the keys of sessions"
        } else {
            return Ok([&self.prefix, name.as_str(), "/"].concat().into());
        };
        let name = name.as_str().chars().take(64).collect();
        Err(Error::InvalidName { name, reason: collides.to_owned() })
    }

    /// The key of a session: `<prefix>#session<lease>`. It is in no queue, for the same reason as a
    /// [note], and it is no note: names do not begin like this.
    pub(crate) fn session(&self, lease: i64) -> String {
        format!("{}{SESSIONS}{lease:x}", self.prefix)
    }

    /// The start of the keys of all sessions. No other key begins with it.
    pub(crate) fn sessions(&self) -> String {
        [&self.prefix, SESSIONS].concat()
    }

    /// The key of the [token floor](super::floor): `<prefix>#floor`.
    pub(crate) fn floor(&self) -> String {
        format!("{}#floor", self.prefix)
    }

    /// The key of the mark of work that is done: `<prefix>#done<name>#`. It is in no queue, for the
    /// same reason as a [note]. No note, session or floor ends in `#`.
    pub(crate) fn done(&self, queue: &str) -> String {
        let name = queue.strip_prefix(&*self.prefix).and_then(|name| name.strip_suffix('/'));
        format!("{}{}#", self.dones(), name.unwrap_or(queue))
    }

    /// The start of the keys of all marks. Other keys may begin with it.
    pub(crate) fn dones(&self) -> String {
        format!("{}#done", self.prefix)
    }

    /// Returns the name whose mark has this key; `None` if it is the key of no mark.
    pub(crate) fn done_name(&self, key: &[u8]) -> Option<LockName> {
        let name = key.strip_prefix(self.dones().as_bytes())?.strip_suffix(b"#")?;
        self.name(&[self.prefix.as_bytes(), name, b"/"].concat())
    }

    /// Returns the name of a queue.
    pub(crate) fn name(&self, queue: &[u8]) -> Option<LockName> {
        let name = queue.strip_prefix(self.prefix.as_bytes())?.strip_suffix(b"/")?;
        let name = std::str::from_utf8(name).ok()?;
        match self.native {
            true => LockName::new(name).ok().filter(|name| !name.as_str().contains('/')),
            false => LockName::from_escaped(name),
        }
    }

    /// Returns the range of the keys of all names that start with `start`. It may have keys of
    /// other names, too. `None` if no name can be so long.
    pub(crate) fn names(&self, start: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let start = match start {
            // Names of dots only are escaped. Names that start with dots are not.
            "" | "." | ".." => Cow::Borrowed(""),
            native if self.native => native.into(),
            start => Cow::Owned(LockName::new(start).ok()?.escaped().into_owned()),
        };
        let from = [&self.prefix, &*start].concat().into_bytes();
        let to = end_of_prefix(&from);
        // For etcd an empty key is no key.
        Some((if from.is_empty() { vec![0] } else { from }, to))
    }
}

/// Returns the end of the keys with a prefix; for an empty one, etcd's sign for the end of all
/// keys.
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    match end.last_mut() {
        // It is UTF-8, which has no 0xFF.
        Some(last) => *last += 1,
        None => end.push(0),
    }
    end
}

/// The key of a client's slot in a queue; see [`Slots`]. It says what the entry is, so a list of a
/// queue does not need the values.
pub(crate) fn key(queue: &str, lease: i64, slot: u32, role: Role) -> String {
    let key = format!("{queue}{lease:x}.{slot:x}");
    match role {
        Role::Candidate => key + ".v",
        Role::Ours(Kind::Shared) => key + ".r",
        Role::Ours(Kind::Permit { weight, limit }) => format!("{key}.p{weight}.{limit}"),
        _ => key,
    }
}

/// Returns the part of an entry's key that all kinds of entries in its slot begin with.
pub(crate) fn slot(key: &str) -> &str {
    let entry = key.rfind('/').map_or(0, |at| at + 1);
    let kind = key[entry..].match_indices('.').nth(1);
    kind.map_or(key, |(at, _)| &key[..entry + at])
}

/// The key of the mark on an exclusive entry that it is a shared one now.
pub(crate) fn mark(key: &str) -> String {
    format!("{key}.s")
}

/// The key whose deletion tells all waiters that an entry was marked: watches report deletions
/// only.
pub(crate) fn signal(key: &str) -> String {
    format!("{key}.x")
}

/// The key of a [candidate](Role::Candidate)'s note: `<prefix><name>#<lease>.<slot>.v`.
///
/// It is in no queue. A queue is all keys that begin with a text that ends in `/`. This key has no
/// `/` after the prefix, because names in keys have none. So only a queue that holds all of the
/// prefix's own queues could hold it, too. No two entries share such a key, because the part after
/// the name has no `#`.
///
/// For a queue it is the start of the keys of its notes. Other keys may start with it, too.
pub(crate) fn note(key: &str) -> String {
    let (name, entry) = key.rsplit_once('/').unwrap_or_default();
    format!("{name}#{entry}")
}

/// Returns the end of the keys that belong to an entry: its own, and those beside it. These go on
/// with `.`, and the keys of other slots with a digit, which is greater than `/`.
pub(crate) fn end_of_entry(key: &str) -> String {
    format!("{key}/")
}

/// The role of a key in a queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// A client's entry, of this layout. Its value is its note.
    Ours(Kind),
    /// An exclusive entry of this layout with a value for observers. Its note stands
    /// [elsewhere](note).
    Candidate,
    /// A foreign client's entry: exclusive.
    Foreign,
    /// See [`mark`]: not an entry.
    Mark,
    /// See [`signal`]: not an entry.
    Signal,
}

impl Role {
    /// Returns the kind of the entry; `None` if it is no entry.
    pub(crate) fn kind(self) -> Option<Kind> {
        match self {
            Self::Ours(kind) => Some(kind),
            Self::Candidate | Self::Foreign => Some(Kind::Exclusive),
            Self::Mark | Self::Signal => None,
        }
    }
}

/// Returns the role of a key.
pub(crate) fn role(key: &[u8]) -> Role {
    let entry = std::str::from_utf8(&key[queue_of(key).len()..]).ok();
    entry.and_then(parse).unwrap_or(Role::Foreign)
}

fn parse(entry: &str) -> Option<Role> {
    let mut parts = entry.split('.').peekable();
    i64::from_str_radix(parts.next()?, 16).ok()?;
    u32::from_str_radix(parts.next()?, 16).ok()?;
    let candidate = parts.next_if_eq(&"v").is_some();
    let role = match parts.next() {
        None if candidate => Role::Candidate,
        None => Role::Ours(Kind::Exclusive),
        Some("s") => Role::Mark,
        Some("x") => Role::Signal,
        Some(_) if candidate => return None,
        Some("r") => Role::Ours(Kind::Shared),
        Some(weight) => {
            let weight = weight.strip_prefix('p')?.parse().ok()?;
            let limit = parts.next()?.parse().ok()?;
            (1..=limit).contains(&weight).then_some(Role::Ours(Kind::Permit { weight, limit }))?
        }
    };
    parts.next().is_none().then_some(role)
}

/// Returns the queue that a key belongs to.
pub(crate) fn queue_of(key: &[u8]) -> &[u8] {
    let end = key.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    &key[..end]
}

/// The slots of keys that this client uses, by queue.
///
/// etcd keeps a deleted key in its index until the history is compacted, and counting or listing a
/// queue walks over all of them: with 100,000 of them an acquire takes 18 ms instead of 0.7 (etcd
/// 3.4.23). So an attempt borrows the first key that no other attempt of this client is using. The
/// create revision identifies its entry: an entry with another one is never removed or changed. A
/// lock that was left to another process may still have the key; the attempt then takes the next.
#[derive(Default)]
pub(crate) struct Slots(Mutex<HashMap<Arc<str>, Vec<u32>>>);

/// A borrowed slot. Dropping it gives it back.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    queue: Arc<str>,
    pub(crate) number: u32,
}

impl Slots {
    /// Takes the lowest free slot. The slots in use are sorted.
    pub(crate) fn take(self: &Arc<Self>, queue: &Arc<str>) -> Slot {
        let mut queues = lock(&self.0);
        let used = queues.entry(queue.clone()).or_default();
        let at = (0..).zip(used.iter()).take_while(|(slot, used)| slot == *used).count();
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        used.insert(at, number);
        Slot { slots: self.clone(), queue: queue.clone(), number }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut queues = lock(&self.slots.0);
        let Some(used) = queues.get_mut(&self.queue) else { return };
        used.retain(|used| *used != self.number);
        if used.is_empty() {
            queues.remove(&self.queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(native: bool) -> Keys {
        Keys { prefix: "ns/".to_owned(), native }
    }

    #[test]
    fn no_queue_is_the_start_of_another() {
        let queue = |name: &str| layout(false).queue(&LockName::new(name).unwrap()).unwrap();
        assert_eq!(&*queue("a"), "ns/a/");
        assert_eq!(&*queue("a/b"), "ns/a%2Fb/");
        assert!(!queue("a/b").starts_with(&*queue("a")));
    }

    #[test]
    fn the_native_layout_takes_names_as_they_are_and_refuses_collisions() {
        let queue = |name: &str| layout(true).queue(&LockName::new(name).unwrap());
        assert_eq!(&*queue("a b%").unwrap(), "ns/a b%/");
        assert!(queue("a/b").unwrap_err().to_string().contains("prefix"));
        assert!(queue("#session1f").unwrap_err().to_string().contains("sessions"));
        assert_eq!(&*queue("#sessio").unwrap(), "ns/#sessio/");
    }

    #[test]
    fn the_range_of_names_has_all_that_start_so() {
        let names = ["a", "a/b", "a b", "a.b", ".", "..", "...", ".a", "%", "%25", "\u{540d}"];
        let starts = ["", "a", "a/", "a ", ".", "..", "...", "%", "%2", "\u{540d}"];
        for (native, prefix) in [(false, "ns/"), (true, "ns/"), (false, "")] {
            let layout = Keys { prefix: prefix.to_owned(), native };
            for name in names.iter().filter(|name| !native || !name.contains('/')) {
                let name = LockName::new(name).unwrap();
                let queue = layout.queue(&name).unwrap();
                assert_eq!(layout.name(queue.as_bytes()), Some(name.clone()));
                for start in starts.iter().filter(|start| name.as_str().starts_with(**start)) {
                    let (from, to) = layout.names(start).unwrap();
                    let key = key(&queue, 1, 0, Role::Ours(Kind::Exclusive)).into_bytes();
                    assert!(from <= key && (key < to || to == [0]), "{name} {start:?}");
                }
            }
        }
        assert_eq!(layout(true).name(b"ns/a/b/"), None);
        assert_eq!(layout(false).name(b"ns/a b/"), None);
        assert_eq!(layout(false).names(&"a".repeat(513)), None);
    }

    #[test]
    fn our_keys_are_told_from_foreign_ones() {
        let permit = Kind::Permit { weight: 2, limit: 30 };
        for (expected, written) in [
            (Role::Ours(Kind::Exclusive), "ns/a/1f.a"),
            (Role::Candidate, "ns/a/1f.a.v"),
            (Role::Ours(Kind::Shared), "ns/a/1f.a.r"),
            (Role::Ours(permit), "ns/a/1f.a.p2.30"),
        ] {
            let key = key("ns/a/", 0x1f, 10, expected);
            assert_eq!(key, written);
            assert_eq!((queue_of(key.as_bytes()), slot(&key)), (&b"ns/a/"[..], "ns/a/1f.a"));
            assert_eq!(role(key.as_bytes()), expected);
        }
        for foreign in [
            "694d8a5c3e7f",
            "",
            "x.y",
            "1f.y",
            "1f.-1",
            "1f.a.",
            "1f.a.q",
            "1f.a.r.r",
            "1f.a.v.r",
            "1f.a.v.v",
            "1f.a.p1",
            "1f.a.p0.2",
            "1f.a.p3.2",
            "1f.a.p1.2.x",
        ] {
            assert_eq!(role(format!("ns/a/{foreign}").as_bytes()), Role::Foreign, "{foreign}");
        }
    }

    #[test]
    fn the_belongings_of_an_entry_stand_right_behind_it() {
        let permit = Role::Ours(Kind::Permit { weight: 1, limit: 1 });
        let exclusive = [Role::Ours(Kind::Exclusive), Role::Candidate];
        for own in exclusive.map(|role| key("ns/a/", 0x1f, 1, role)) {
            assert_eq!(role(mark(&own).as_bytes()), Role::Mark);
            assert_eq!(role(signal(&own).as_bytes()), Role::Signal);
            let belongs = |key: &String| (own.clone()..end_of_entry(&own)).contains(key);
            assert!([own.clone(), mark(&own), signal(&own)].iter().all(belongs));
            for slot in (0..0x200).filter(|slot| *slot != 1) {
                for role in exclusive.into_iter().chain([Role::Ours(Kind::Shared), permit]) {
                    assert!(!belongs(&key("ns/a/", 0x1f, slot, role)));
                }
            }
        }
    }

    #[test]
    fn a_mark_stands_in_no_queue_and_is_one_names_only() {
        let names = ["a", "a#1.0.v", "#done", "#donea", "a#", "a/b", "%", "."];
        let names = names.map(|name| LockName::new(name).unwrap());
        for (native, prefix) in [(false, ""), (true, ""), (false, "ns/"), (true, "x#")] {
            let layout = Keys { prefix: prefix.to_owned(), native };
            let queues: Vec<_> = names.iter().filter_map(|name| layout.queue(name).ok()).collect();
            for queue in &queues {
                let done = layout.done(queue);
                assert!(done.starts_with(&layout.dones()) && !done.starts_with(&layout.sessions()));
                assert!(!queues.iter().any(|queue| done.starts_with(&**queue)), "{done}");
                assert_eq!(layout.name(queue_of(done.as_bytes())), None, "{done}");
                assert_eq!(layout.done_name(done.as_bytes()), layout.name(queue.as_bytes()));
                let entry = key(queue, 1, 0, Role::Candidate);
                for other in [note(&entry), entry, layout.session(1), layout.floor()] {
                    assert_eq!(layout.done_name(other.as_bytes()), None, "{other}");
                }
            }
        }
    }

    #[test]
    fn a_note_or_a_session_stands_in_no_queue_and_is_one_entrys_only() {
        let names = ["a", "a#1.0.v", "a#", "#", "#sessio", "a/b", "a/1.0.v", "%", "\0", "."];
        let names = names.map(|name| LockName::new(name).unwrap());
        for (native, prefix) in [(false, ""), (true, ""), (false, "ns/"), (true, "/"), (true, "x#")]
        {
            let layout = Keys { prefix: prefix.to_owned(), native };
            let queues: Vec<_> = names.iter().filter_map(|name| layout.queue(name).ok()).collect();
            let entries = [(1, 0), (1, 0x10), (0x11, 0)];
            let keys = queues.iter().flat_map(|queue| {
                entries.map(|(lease, slot)| key(queue, lease, slot, Role::Candidate))
            });
            let keys: Vec<_> = keys.collect();
            let all: std::collections::HashSet<_> = keys.iter().map(|key| note(key)).collect();
            assert_eq!(all.len(), keys.len());
            let (session, floor, sessions) = (layout.session(1), layout.floor(), layout.sessions());
            assert!(session.starts_with(&sessions) && !floor.starts_with(&sessions));
            assert!(!all.iter().chain(&keys).any(|key| key.starts_with(&sessions)));
            assert!(!all.contains(&floor));
            assert!(keys.iter().all(|key| note(key).starts_with(&note(&layout_queue(key)))));
            for note in all.iter().chain([&session, &floor]) {
                assert!(!queues.iter().any(|queue| note.starts_with(&**queue)), "{note}");
                assert_eq!(layout.name(queue_of(note.as_bytes())), None, "{note}");
            }
        }
    }

    fn layout_queue(key: &str) -> String {
        String::from_utf8(queue_of(key.as_bytes()).to_vec()).unwrap()
    }

    #[test]
    fn the_lowest_free_slot_is_taken_and_nothing_is_kept() {
        let (slots, queue) = (Arc::new(Slots::default()), Arc::from("a/"));
        let taken: Vec<_> = (0..3).map(|_| slots.take(&queue)).collect();
        assert_eq!(taken.iter().map(|slot| slot.number).collect::<Vec<_>>(), [0, 1, 2]);
        let mut taken = taken.into_iter();
        let first = taken.next().unwrap();
        drop(taken.next());
        let second = slots.take(&queue);
        assert_eq!(second.number, 1);
        drop((first, second, taken));
        assert!(lock(&slots.0).is_empty());
    }
}
