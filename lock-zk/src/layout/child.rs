//! The meaning of the names of a lock directory's children. Pure.
//!
//! Everything but the sequence stands before `-lock-`. Curator sorts by the text after it, so it
//! sees an entry of every kind, and takes it for a lock of its own.

use lock_core::Kind;
use uuid::Uuid;

const PREFIX: &str = "_c_";
const MARK: &str = "-lock-";
/// Kazoo puts this before its sequences.
const KAZOO: &str = "__lock__";
/// The length of a UUID with its hyphens.
const ID: usize = 36;
/// An entry with this sequence, or a later one, is refused: at the end of the numbers the server
/// gives some of them twice, and others below zero. The numbers in between are for entries that
/// clients have made before they learnt that.
const LAST: i32 = i32::MAX - 1_000_000;
/// From here on one entry of so many tells that the numbers come to an end.
const LATE: i32 = i32::MAX - 100_000_000;
const TELL_EACH: i32 = 100_000;

/// The part of an entry's name that the client chooses; the server appends the sequence.
pub(crate) fn stem(attempt: Uuid, kind: Kind) -> String {
    match kind {
        Kind::Shared => format!("{PREFIX}{attempt}-r{MARK}"),
        Kind::Permit { weight, limit } => format!("{PREFIX}{attempt}-p{weight}.{limit}{MARK}"),
        // Also for kinds that lock-core may add later.
        _ => format!("{PREFIX}{attempt}{MARK}"),
    }
}

/// Returns the attempt that made an entry, if the name has our syntax (for exclusive locks
/// Curator's too).
pub(crate) fn attempt(child: &str) -> Option<Uuid> {
    Some(parse(child)?.0)
}

/// Returns what an entry asks for. A name in any other syntax counts as exclusive.
pub(crate) fn kind(child: &str) -> Kind {
    parse(child).map_or(Kind::Exclusive, |(_, kind)| kind)
}

fn parse(child: &str) -> Option<(Uuid, Kind)> {
    let (chosen, _) = child.strip_prefix(PREFIX)?.rsplit_once(MARK)?;
    let (id, kind) = chosen.split_at_checked(ID)?;
    Some((Uuid::try_parse(id).ok()?, parse_kind(kind)?))
}

fn parse_kind(text: &str) -> Option<Kind> {
    match text {
        "" => Some(Kind::Exclusive),
        "-r" => Some(Kind::Shared),
        _ => {
            let (weight, limit) = text.strip_prefix("-p")?.split_once('.')?;
            let (weight, limit) = (weight.parse().ok()?, limit.parse().ok()?);
            (1..=limit).contains(&weight).then_some(Kind::Permit { weight, limit })
        }
    }
}

/// Returns the sequence at the end of a child's name. A child without one is no entry of the queue.
///
/// The server counts in an `i32` and prints it as `%010d`, so after two thousand million entries
/// there is a minus in front of it.
pub(crate) fn sequence(child: &str) -> Option<i32> {
    let tail = [MARK, KAZOO].iter().find_map(|mark| Some(child.rsplit_once(mark)?.1));
    let tail = match tail {
        Some(tail) if tail.len() >= 10 => tail,
        Some(_) => return None,
        None => child.get(child.len().checked_sub(10)?..)?,
    };
    let digits = tail.strip_prefix('-').unwrap_or(tail);
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| tail.parse().ok())?
}

/// Whether an entry of ours must not have this sequence, since the numbers come to an end.
pub(crate) fn is_used_up(sequence: i32) -> bool {
    !(0..LAST).contains(&sequence)
}

/// Returns how many entries may follow one with this sequence, if its client must tell. Each number
/// is given once, so one client tells.
pub(crate) fn left_to_tell(sequence: i32) -> Option<i32> {
    (sequence >= LATE && sequence % TELL_EACH == 0).then(|| LAST.saturating_sub(sequence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As clients have left them in stores.
    #[test]
    fn names_of_layout_1_are_read() {
        let id = Uuid::from_u128(0x54c4_cafc_6f4e_4d0b_9a55_1c8d_3f0d_2c11);
        for (asks, kind) in [
            ("", Kind::Exclusive),
            ("-r", Kind::Shared),
            ("-p2.3", Kind::Permit { weight: 2, limit: 3 }),
        ] {
            let child = format!("_c_54c4cafc-6f4e-4d0b-9a55-1c8d3f0d2c11{asks}-lock-0000000007");
            assert_eq!((attempt(&child), super::kind(&child)), (Some(id), kind), "{child}");
            assert_eq!(sequence(&child), Some(7), "{child}");
            assert_eq!(format!("{}0000000007", stem(id, kind)), child);
        }
    }

    #[test]
    fn sequences_of_all_clients_are_read() {
        let id = Uuid::new_v4();
        for (child, expected) in [
            (format!("_c_{id}-lock-0000000007"), Some(7)),
            (format!("_c_{id}-lock--000000007"), Some(-7)),
            (format!("_c_{id}-lock--2147483648"), Some(i32::MIN)),
            (format!("_c_{id}-lock-2147483647"), Some(i32::MAX)),
            (format!("_c_{id}-r-lock-0000000003"), Some(3)),
            (format!("_c_{id}-p2.3-lock--000000003"), Some(-3)),
            (format!("{}__lock__0000000012", id.simple()), Some(12)),
            ("lock-0000000001".to_owned(), Some(1)),
            (format!("_c_{id}-__WRIT__0000000005"), Some(5)),
            ("x-000000005".to_owned(), Some(-5)),
            ("subdirectory".to_owned(), None),
            ("short".to_owned(), None),
            ("9999999999".to_owned(), None),
            ("-lock-7".to_owned(), None),
            ("ünïcödé".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(sequence(&child), expected, "{child}");
        }
    }

    #[test]
    fn the_end_of_the_numbers_is_told_now_and_then_before_it_comes() {
        for (sequence, used_up) in
            [(0, false), (LAST - 1, false), (LAST, true), (i32::MAX, true), (i32::MIN, true)]
        {
            assert_eq!(is_used_up(sequence), used_up, "{sequence}");
        }
        let told = (LATE..LATE + 1_000_000).filter(|number| left_to_tell(*number).is_some());
        assert_eq!(told.count(), 10);
        assert!((0..1_000_000).all(|number| left_to_tell(number).is_none()));
        assert_eq!(left_to_tell(2_100_000_000), Some(46_483_647));
    }

    #[test]
    fn our_own_names_are_recognised() {
        let id = Uuid::new_v4();
        let permit = Kind::Permit { weight: 2, limit: u32::MAX };
        for kind in [Kind::Exclusive, Kind::Shared, permit] {
            let child = format!("{}0000000001", stem(id, kind));
            assert_eq!((attempt(&child), super::kind(&child)), (Some(id), kind), "{child}");
            // Curator's rule.
            assert!(child.ends_with("-lock-0000000001"));
        }
    }

    #[test]
    fn names_of_other_clients_are_exclusive() {
        let id = Uuid::new_v4();
        for child in [
            format!("{}__lock__0000000012", id.simple()),
            "_c_nonsense-lock-0000000001".to_owned(),
            format!("_c_{id}-x-lock-0000000001"),
            format!("_c_{id}-p0.3-lock-0000000001"),
            format!("_c_{id}-p4.3-lock-0000000001"),
            format!("_c_{id}-p4-lock-0000000001"),
            format!("_c_{}é-r-lock-0000000001", &id.to_string()[..35]),
        ] {
            assert_eq!((attempt(&child), kind(&child)), (None, Kind::Exclusive), "{child}");
        }
    }
}
