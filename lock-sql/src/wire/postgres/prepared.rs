//! Statements that a session plans once, and then executes by their names.
//!
//! A message stays one transaction: `PREPARE`, `EXECUTE` and `DEALLOCATE` end none. Each `EXECUTE`
//! sees what was committed when it began, as the statement itself would: also what was committed
//! while the statement before it waited for a lock. But it looks before it waits for its tables: to
//! it, a table that an `ALTER TABLE` has rewritten meanwhile is empty. So the tables come first.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use crate::wire::{
    hosts::Plans,
    values::{MOST, split},
};

/// Locks as an `UPDATE` does, and asks for no other right.
const TABLES: &str = "LOCK TABLE distlock_v1_slots, distlock_v1_entries IN ROW EXCLUSIVE MODE; ";

/// The message that executes a script, and prepares what is not in `plans`. It fails as a whole if
/// the session has forgotten a statement.
///
/// A name follows from the statement's text: it is never that of another statement.
pub(super) fn message(script: &str, plans: &mut Plans) -> String {
    // After an error, the session may have some statements of the message.
    let mut message = String::from(if plans.is_empty() { "DEALLOCATE ALL; " } else { "" });
    let mut tables = Some(TABLES);
    // No value and no constant has a semicolon.
    for statement in script.split(';').map(str::trim).filter(|text| !text.is_empty()) {
        let (text, values) = parameters(statement);
        if values.is_empty() || values.len() > MOST {
            message.extend([statement, "; "]);
            continue;
        }
        let name = BuildHasherDefault::<DefaultHasher>::default().hash_one(&text);
        if plans.insert(name) {
            message.push_str(&format!("PREPARE distlock_{name:x} AS {text}; "));
        }
        message.push_str(tables.take().unwrap_or_default());
        message.push_str(&format!("EXECUTE distlock_{name:x} ({}); ", values.join(", ")));
    }
    message
}

/// Returns a statement with parameters in place of its values, and the values. A list after `IN` is
/// one array, whatever its length; a list of one stays a value, which has better plans.
fn parameters(statement: &str) -> (String, Vec<String>) {
    let (parts, rest) = split(statement);
    let (mut text, mut values) = (String::with_capacity(statement.len()), Vec::new());
    let mut parts = parts.into_iter().peekable();
    while let Some((before, value)) = parts.next() {
        let mut list = vec![value];
        let head = before.strip_suffix("IN (");
        while head.is_some()
            && let Some((_, next)) = parts.next_if(|part| part.0 == ", ")
        {
            list.push(next);
        }
        let kind = if value.starts_with('E') { "bytea" } else { "bigint" };
        let (before, array, value) = match head.filter(|_| list.len() > 1) {
            None => ([before, ""], "", value.to_owned()),
            Some(head) => {
                let not = head.strip_suffix("NOT ").map(|head| [head, "<> ALL ("]);
                (not.unwrap_or([head, "= ANY ("]), "[]", format!("ARRAY[{}]", list.join(", ")))
            }
        };
        values.push(value);
        text.extend(before);
        text.push_str(&format!("${}::{kind}{array}", values.len()));
    }
    text.push_str(rest);
    (text, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as scripts have them, from hexadecimal.
    fn bytes(hex: &str) -> String {
        format!(r"E'\\x{hex}'::bytea")
    }

    #[test]
    fn a_statement_is_prepared_once_for_all_values() {
        let (mut plans, nothing) = (Plans::new(), bytes(""));
        for (n, a, b) in [(0, bytes("0a"), bytes("0b")), (1, bytes("0c"), bytes("0d"))] {
            let script = format!(
                "UPDATE t SET n = {n} WHERE s IN ({n}, 7) AND i NOT IN ({a}, {nothing}) AND k IN ({b}); \
                 SELECT 'a' LIMIT 3;"
            );
            let message = message(&script, &mut plans);
            assert_eq!(plans.len(), 1);
            let name = format!("distlock_{:x}", plans.iter().next().unwrap());
            let first = format!(
                "DEALLOCATE ALL; PREPARE {name} AS UPDATE t SET n = $1::bigint \
                 WHERE s = ANY ($2::bigint[]) AND i <> ALL ($3::bytea[]) AND k IN ($4::bytea); "
            );
            let each = format!(
                "{TABLES}EXECUTE {name} ({n}, ARRAY[{n}, 7], ARRAY[{a}, {nothing}], {b}); \
                 SELECT 'a' LIMIT 3; "
            );
            assert_eq!(message, if n == 0 { first + &each } else { each });
        }
    }

    #[test]
    fn a_long_list_of_rows_is_not_prepared() {
        let rows: Vec<_> = (0..100).map(|n| format!("SELECT {n}")).collect();
        let (script, mut plans) = (rows.join(" UNION ALL "), Plans::new());
        assert_eq!(message(&script, &mut plans), format!("DEALLOCATE ALL; {script}; "));
        assert!(plans.is_empty());
    }
}
