//! Who stands where, from the names of a lock directory's children. Pure.

use uuid::Uuid;

const PREFIX: &str = "_c_";
const MARK: &str = "-lock-";
/// What kazoo puts before its sequences.
const KAZOO: &str = "__lock__";

/// The part of an entry's name that the client chooses; the server appends the sequence.
pub(crate) fn stem(attempt: Uuid) -> String {
    format!("{PREFIX}{attempt}{MARK}")
}

/// The attempt that made an entry, if the name has our syntax (which is Curator's too).
pub(crate) fn attempt(child: &str) -> Option<Uuid> {
    let (id, _) = child.strip_prefix(PREFIX)?.split_once(MARK)?;
    Uuid::try_parse(id).ok()
}

/// The sequence at the end of a child's name. A child without one is no entry of the queue.
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

/// Where an entry stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place<'a> {
    /// How many are before it.
    pub(crate) ahead: usize,
    /// The one right before it. Every entry is exclusive so far, so this is the one to wait for.
    pub(crate) predecessor: Option<&'a str>,
}

/// Finds the place of the entry `own`; `None` if it is not there.
pub(crate) fn place<'a>(children: &'a [String], own: &str, mine: i32) -> Option<Place<'a>> {
    let mut found = false;
    let mut place = Place { ahead: 0, predecessor: None };
    let mut nearest = i32::MIN;
    for child in children {
        if child == own {
            found = true;
            continue;
        }
        // Wraps like the server's counter. A foreign entry with my number counts as before me.
        let Some(distance) = sequence(child).map(|s| s.wrapping_sub(mine)) else { continue };
        if distance > 0 {
            continue;
        }
        place.ahead += 1;
        if place.predecessor.is_none() || distance > nearest {
            nearest = distance;
            place.predecessor = Some(child);
        }
    }
    found.then_some(place)
}

/// The entries of a lock directory, first comer first.
pub(crate) fn in_order(children: Vec<String>) -> Vec<String> {
    let mut entries: Vec<_> =
        children.into_iter().filter_map(|child| Some((sequence(&child)?, child))).collect();
    entries.sort_by(|(a, _), (b, _)| a.wrapping_sub(*b).cmp(&0));
    entries.into_iter().map(|(_, child)| child).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn sequences_of_all_clients() {
        let id = Uuid::new_v4();
        for (child, expected) in [
            (format!("_c_{id}-lock-0000000007"), Some(7)),
            (format!("_c_{id}-lock--000000007"), Some(-7)),
            (format!("_c_{id}-lock--2147483648"), Some(i32::MIN)),
            (format!("_c_{id}-lock-2147483647"), Some(i32::MAX)),
            (format!("_c_{id}-r-lock-0000000003"), Some(3)),
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
    fn our_own_names_are_recognised() {
        let id = Uuid::new_v4();
        assert_eq!(attempt(&format!("{}0000000001", stem(id))), Some(id));
        assert_eq!(attempt(&format!("{}__lock__0000000012", id.simple())), None);
        assert_eq!(attempt("_c_nonsense-lock-0000000001"), None);
    }

    #[test]
    fn places_are_by_number_and_not_by_name() {
        let list =
            children(&["z-lock-0000000001", "a-lock-0000000003", "m-lock-0000000002", "dir"]);
        let place = |own: &str| super::place(&list, own, sequence(own).unwrap());
        assert_eq!(place("z-lock-0000000001"), Some(Place { ahead: 0, predecessor: None }));
        let last = place("a-lock-0000000003").unwrap();
        assert_eq!((last.ahead, last.predecessor), (2, Some("m-lock-0000000002")));
        assert_eq!(place("q-lock-0000000009"), None);
    }

    #[test]
    fn the_counter_may_wrap() {
        let list = children(&["a-lock-2147483647", "b-lock--2147483648", "c-lock--2147483647"]);
        let place = super::place(&list, &list[2], -2147483647).unwrap();
        assert_eq!((place.ahead, place.predecessor), (2, Some("b-lock--2147483648")));
        assert_eq!(in_order(children(&[&list[1], &list[2], &list[0]])), list);
    }

    #[test]
    fn a_foreign_entry_with_my_number_is_before_me() {
        let list = children(&["a-lock-0000000001", "b-lock-0000000001"]);
        assert_eq!(super::place(&list, "a-lock-0000000001", 1).unwrap().ahead, 1);
    }
}
