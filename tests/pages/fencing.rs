//! The page and its statements.

/// The page under test.
const PAGE: &str = include_str!("../../docs/fencing.md");

/// The text of a statement, for the client library, which wants a mark that it is not user input.
pub struct Text(String);

impl Text {
    /// A statement that is not on the page.
    pub fn of_test(sql: String) -> Self {
        Self(sql)
    }

    pub fn safe(self) -> sqlx::AssertSqlSafe<String> {
        sqlx::AssertSqlSafe(self.0)
    }
}

/// Returns the block of the page with `-- <databases>: <label>` as its first line, without that
/// line.
///
/// # Panics
///
/// If there is no such block, or more than one.
pub fn statement(database: &str, label: &str) -> Text {
    let found = blocks().filter(|(databases, named, _)| {
        *named == label && (*databases == "All" || databases.split(", ").any(|d| d == database))
    });
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), 1, "{label:?} of {database} in docs/fencing.md");
    Text(found[0].2.to_owned())
}

/// Returns the statement in backticks that begins with this text.
///
/// # Panics
///
/// If there is no such statement.
pub fn inline(start: &str) -> Text {
    let page = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = page.split('`').find(|part| part.starts_with(start));
    Text(found.unwrap_or_else(|| panic!("{start:?} in docs/fencing.md")).to_owned())
}

fn blocks() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    PAGE.split("```sql\n").skip(1).map(|rest| {
        let block = rest.split("```").next().unwrap_or_default();
        let (head, sql) = block.split_once('\n').unwrap_or_default();
        let head = head.strip_prefix("-- ").and_then(|head| head.split_once(": "));
        let (databases, label) = head.unwrap_or_else(|| panic!("{block:?} says not what it is"));
        (databases, label, sql)
    })
}

/// The page contains no statement that the tests do not run.
#[test]
fn every_statement_is_one_that_the_tests_run() {
    let tested = [
        "table",
        "update",
        "upsert",
        "whose upsert stands",
        "fences",
        "pass the fence",
        "who has passed",
        "insert",
        "is the lock held",
    ];
    for (databases, label, _) in blocks() {
        assert!(tested.contains(&label), "{databases}: {label}");
    }
    assert!(blocks().count() >= tested.len());
}

/// The statement bound in the page's Rust equals the one above it.
#[test]
fn the_rust_has_the_same_statement() {
    let Text(update) = statement("PostgreSQL", "update");
    assert!(PAGE.contains(&format!("const WRITE: &str = \"{}\";", update.trim())));
    let short = include_str!("../../docs/questions.md");
    assert!(short.contains(&format!("`{}`", update.trim())), "docs/questions.md");
}
