//! Keys: one for the lock itself, and its companions in the same cluster slot.

use std::sync::Mutex;

use lock_core::{Layout, LockName, keep::poison};
use redis::{RedisWrite, ToRedisArgs};

use crate::config::RedisConfig;

/// A byte that UTF-8 does not contain: a key with it is no lock's key.
const MARK: u8 = 0xFF;

/// The keys of one name. One allocation: `base` is the common start of the companions' names, and
/// contains the lock's key.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key {
    base: Box<[u8]>,
    start: usize,
    end: usize,
    /// Length of the client's prefix in the lock's key; `None` in a cluster.
    prefix: Option<usize>,
}

/// The names of companions.
macro_rules! companions {
    ($($name:ident),+) => {
        $(pub(crate) fn $name(&self) -> KeyName<'_> {
            KeyName(&self.base, stringify!($name).as_bytes())
        })+
    };
}

impl Key {
    pub(crate) fn new(config: &RedisConfig, name: &LockName) -> Self {
        let name = match config.layout {
            Layout::Escaped => name.escaped(),
            _ => name.as_str().into(),
        };
        Self::around(config, &[config.prefix.as_bytes(), name.as_bytes()].concat())
    }

    /// Returns the keys of the name with this lock's key, if it starts with the prefix.
    pub(crate) fn of_lock(config: &RedisConfig, lock: &[u8]) -> Option<Self> {
        let fits = lock.starts_with(config.prefix.as_bytes());
        fits.then(|| Self::around(config, lock))
    }

    /// Returns the name whose lock has this key; `None` if there is none.
    pub(crate) fn name_of(config: &RedisConfig, lock: &[u8]) -> Option<LockName> {
        let name = std::str::from_utf8(lock.strip_prefix(config.prefix.as_bytes())?).ok()?;
        match config.layout {
            Layout::Escaped => LockName::from_escaped(name),
            _ => LockName::new(name).ok(),
        }
    }

    /// Returns the start of the keys of all names that start with `prefix`.
    pub(crate) fn start_of(config: &RedisConfig, prefix: &str) -> Vec<u8> {
        let name = match config.layout {
            // They are escaped only as whole names.
            Layout::Escaped if ["", ".", ".."].contains(&prefix) => String::new(),
            // No name starts with a prefix that is too long for a name.
            Layout::Escaped => LockName::new(prefix).map_or(String::new(), |n| n.escaped().into()),
            _ => prefix.to_owned(),
        };
        [config.prefix.as_bytes(), name.as_bytes()].concat()
    }

    /// The three shapes differ after the first [`MARK`], so no two keys share a companion.
    fn around(config: &RedisConfig, lock: &[u8]) -> Self {
        let (before, after): (Vec<u8>, &[u8]) = if hash_tag(lock).is_some() {
            (Vec::new(), &[MARK, MARK])
        } else if !lock.contains(&b'}') {
            (b"{".to_vec(), &[b'}', MARK])
        } else {
            let tag = format!("{{{}}}", tag_for(slot(lock)));
            ([tag.as_bytes(), &[MARK]].concat(), &[MARK])
        };
        let (start, end) = (before.len(), before.len() + lock.len());
        let prefix = (!config.is_cluster()).then_some(config.prefix.len());
        Self { base: [&before, lock, after].concat().into(), start, end, prefix }
    }

    /// The lock's own key.
    pub(crate) fn lock(&self) -> &[u8] {
        &self.base[self.start..self.end]
    }

    pub(crate) fn lock_name(&self) -> KeyName<'_> {
        KeyName(self.lock(), b"")
    }

    companions!(queue, waiting, fence, holders, members, leader, done);

    /// The key of the token floor of all names with this prefix. See [`floor`].
    ///
    /// In a cluster it is a key in the lock's slot that never exists: the guard. A node refuses a
    /// command with several keys while their slot moves, unless it has all of them. So no script
    /// runs then, and none sees a part of a name's keys.
    pub(crate) fn floor(&self) -> KeyName<'_> {
        match self.prefix {
            Some(prefix) => KeyName(&self.lock()[..prefix], FLOOR),
            None => KeyName(&self.base[..self.base.len() - 1], FLOOR),
        }
    }
}

/// The name of a key, written straight into a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyName<'a>(&'a [u8], &'static [u8]);

impl KeyName<'_> {
    pub(crate) fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.0, self.1].concat()
    }
}

impl ToRedisArgs for KeyName<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        use std::io::Write;
        let mut writer = out.writer_for_next_arg();
        // Writing into a command's buffer cannot fail.
        let _ = writer.write_all(self.0).and_then(|()| writer.write_all(self.1));
    }
}

/// Suffix of the token floor's key, after the prefix. No companion's name has this suffix.
const FLOOR: &[u8] = b"\xFFfloor";

/// The key of the token floor of all names with this prefix.
pub(crate) fn floor(prefix: &str) -> KeyName<'_> {
    KeyName(prefix.as_bytes(), FLOOR)
}

/// Suffix of every queue's key.
pub(crate) const QUEUE: &[u8] = b"\xFFqueue";

/// Suffix of the key of every mark of work that is done.
pub(crate) const DONE: &[u8] = b"\xFFdone";

/// Returns the key of the lock to which a companion with this suffix belongs.
pub(crate) fn lock_of<'a>(companion: &'a [u8], suffix: &[u8]) -> Option<&'a [u8]> {
    let base = companion.strip_suffix(suffix)?;
    if let Some(lock) = base.strip_suffix(&[MARK]) {
        return Some(lock);
    }
    match base.iter().position(|b| *b == MARK) {
        Some(mark) => Some(&base[mark + 1..]),
        None => base.strip_prefix(b"{")?.strip_suffix(b"}"),
    }
}

/// The key of a client's description.
pub(crate) fn client_key(client: &str) -> Vec<u8> {
    [b"{distlock}\xFFclient:", client.as_bytes()].concat()
}

/// Returns the hash tag of a key, the part that decides its slot, if it has one.
fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|b| *b == b'{')?;
    let length = key[open + 1..].iter().position(|b| *b == b'}')?;
    (length > 0).then(|| &key[open + 1..open + 1 + length])
}

/// Returns a key's slot in a cluster.
pub(crate) fn slot(key: &[u8]) -> u16 {
    crc16(hash_tag(key).unwrap_or(key)) % 16384
}

/// How many numbers were tried, and the first of these in each slot.
static TAGS: Mutex<(u32, [Option<u32>; 16384])> = Mutex::new((0, [None; 16384]));

/// Returns the first number whose slot is this one. Needs some 16,000 tries, but only for rare
/// names, and each number is tried once, however many names there are.
fn tag_for(slot: u16) -> u32 {
    let mut tags = poison::lock(&TAGS);
    let (tried, first) = &mut *tags;
    // All slots are found well below a million (tested).
    while first[usize::from(slot)].is_none() {
        first[usize::from(crc16(tried.to_string().as_bytes()) % 16384)].get_or_insert(*tried);
        *tried += 1;
    }
    first[usize::from(slot)].unwrap_or_default()
}

/// CRC-16/XMODEM, as clusters use it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => (crc << 1) ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn companion(lock: &str) -> Vec<u8> {
        Key::around(&RedisConfig::default(), lock.as_bytes()).queue().to_redis_args().remove(0)
    }

    #[test]
    fn the_checksum_is_the_clusters() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
    }

    #[test]
    fn companions_are_in_the_slot_of_their_lock() {
        for lock in ["orders", "{u1}.lock", "a}b", "{}x", "x{", "}{", "{a}{b}", "{", "é"] {
            assert_eq!(slot(&companion(lock)), slot(lock.as_bytes()), "{lock}");
            let key = Key::around(&RedisConfig::default(), lock.as_bytes());
            assert_eq!(key.lock(), lock.as_bytes());
            let (fence, queue) = (key.fence().to_redis_args(), key.queue().to_redis_args());
            assert_eq!(lock_of(&queue[0], QUEUE), Some(lock.as_bytes()));
            assert_eq!(lock_of(&fence[0], QUEUE), None);
        }
    }

    #[test]
    fn no_two_names_share_a_companion() {
        let tag = tag_for(slot(b"a}b"));
        let twin = format!("{{{tag}}}a}}b");
        let names = ["u1", "{u1}", "{u1}u1", "a}b", &twin, "queue", "{queue}", "{}u1", "{u1"];
        let companions: HashSet<_> = names.iter().map(|name| companion(name)).collect();
        assert_eq!(companions.len(), names.len());
    }

    #[test]
    fn in_a_cluster_the_guard_is_in_the_slot_and_belongs_to_one_name() {
        let config = RedisConfig::of(crate::Target::Cluster { nodes: Vec::new() }).prefix("app:");
        let key = |name: &str| {
            Key::new(&config.clone().layout(Layout::Native), &LockName::new(name).unwrap())
        };
        for name in ["orders", "{u1}.lock", "a}b", "{}x"] {
            let key = key(name);
            let guard = key.floor().to_redis_args().remove(0);
            assert_eq!(slot(&guard), slot(key.lock()), "{name}");
            assert!(guard.ends_with(FLOOR));
            let others = [key.queue(), key.fence(), key.waiting()];
            assert!(others.iter().all(|other| other.to_redis_args()[0] != guard));
        }
        assert_eq!(key("orders").lock(), b"app:orders");
    }

    #[test]
    fn a_plain_name_keeps_its_key() {
        assert_eq!(companion("orders"), b"{orders}\xFFqueue");
    }

    #[test]
    fn every_slot_has_a_tag() {
        let met: HashSet<_> =
            (0..400_000u32).map(|tag| crc16(tag.to_string().as_bytes()) % 16384).collect();
        assert_eq!(met.len(), 16384);
    }

    #[test]
    fn the_tags_of_all_slots_cost_one_try_of_each_number() {
        let mut first = HashMap::new();
        for tag in 0..400_000u32 {
            first.entry(crc16(tag.to_string().as_bytes()) % 16384).or_insert(tag);
        }
        // The other tests ask for tags, too.
        assert!((0..16384).all(|slot| Some(&tag_for(slot)) == first.get(&slot)));
        assert_eq!(Some(poison::lock(&TAGS).0 - 1), first.into_values().max());
    }
}
