//! The pages: the statements of `docs/fencing.md` run unchanged on real databases, where a late
//! holder writes nothing. `docs/what-happens.md` has the names and limits of the code.

mod failures;
mod fencing;
mod servers;

use distlock::Locks;
use fencing::{Text, inline, statement};

/// A value of a statement.
#[derive(Clone, Copy)]
enum Value {
    Text(&'static str),
    Number(i64),
}

use Value::{Number, Text as Word};

/// The part of a database that the page needs. Each value is a separate program on one connection.
trait Program {
    /// Its name on the page.
    const NAME: &'static str;
    /// Runs a statement. Returns the number of changed rows.
    async fn change(&mut self, sql: Text, values: &[Value]) -> u64;
    /// Runs a statement. Returns whether it returns a row.
    async fn finds(&mut self, sql: Text, values: &[Value]) -> bool;
    /// Returns a number from the only row.
    async fn number(&mut self, sql: Text, values: &[Value]) -> i64;
    /// Begins, commits or rolls back.
    async fn say(&mut self, sql: &'static str);
}

/// The values of `$1, $2, $3`, or of each `?` in order.
fn values<P: Program>(numbered: &[Value], in_order: &[Value]) -> Vec<Value> {
    if P::NAME == "MySQL" { in_order.to_vec() } else { numbered.to_vec() }
}

async fn update<P: Program>(program: &mut P, state: &'static str, token: i64) -> bool {
    let (state, token, id) = (Word(state), Number(token), Number(42));
    let values = values::<P>(&[state, token, id], &[state, token, id, token]);
    program.change(statement(P::NAME, "update"), &values).await == 1
}

async fn upsert<P: Program>(program: &mut P, state: &'static str, token: i64) -> bool {
    let values = [Number(7), Word(state), Number(token)];
    let changed = program.change(statement(P::NAME, "upsert"), &values).await;
    if P::NAME != "MySQL" {
        return changed == 1;
    }
    program.number(statement(P::NAME, "whose upsert stands"), &[Number(7)]).await == token
}

/// A payment, in one transaction with its fence.
async fn pay<P: Program>(program: &mut P, amount: i64, token: i64) -> bool {
    program.say("BEGIN").await;
    let (name, token_seen) = (Word("payments"), Number(token));
    let statement_of = |label| statement(P::NAME, label);
    let changed = program.change(statement_of("pass the fence"), &[name, token_seen]).await;
    let passed = match P::NAME {
        "MySQL" => program.number(statement_of("who has passed"), &[name]).await == token,
        _ => changed == 1,
    };
    if passed {
        let values = [Number(42), Number(amount), token_seen];
        assert_eq!(program.change(statement_of("insert"), &values).await, 1);
    }
    program.say(if passed { "COMMIT" } else { "ROLLBACK" }).await;
    passed
}

/// Creates the page's tables, and one for its payments with an increasing `id`.
async fn tables<P: Program>(program: &mut P, id: &str) {
    program.change(statement(P::NAME, "table"), &[]).await;
    program.change(statement(P::NAME, "fences"), &[]).await;
    let columns = "order_id BIGINT, amount BIGINT, fence BIGINT";
    let payments = format!("CREATE TABLE payments (id {id}, {columns})");
    program.change(Text::of_test(payments), &[]).await;
}

async fn a_late_holder_writes_nothing<P: Program>(program: &mut P) {
    let row = "INSERT INTO orders (id, state) VALUES (42, 'new')";
    program.change(Text::of_test(row.to_owned()), &[]).await;
    assert!(update(program, "packed", 33).await);
    assert!(update(program, "packed", 33).await, "a holder writes as often as it likes");
    assert!(update(program, "shipped", 34).await);
    assert!(!update(program, "lost", 33).await, "an older token wrote");

    assert!(upsert(program, "new", 33).await);
    assert!(upsert(program, "packed", 33).await, "a holder writes as often as it likes");
    assert!(upsert(program, "packed", 33).await, "also the same");
    assert!(upsert(program, "shipped", 34).await);
    assert!(!upsert(program, "lost", 33).await, "an older token wrote");

    assert!(pay(program, 10, 33).await);
    assert!(pay(program, 11, 33).await, "a holder writes as often as it likes");
    assert!(pay(program, 12, 34).await);
    assert!(!pay(program, 13, 33).await, "an older token wrote");

    for (what, count) in [
        ("orders WHERE state = 'shipped' AND fence = 34", 2),
        ("payments", 3),
        ("payments WHERE amount = 13", 0),
        ("fences WHERE token = 34", 1),
    ] {
        let counted = Text::of_test(format!("SELECT count(*) FROM {what}"));
        assert_eq!(program.number(counted, &[]).await, count, "{what}");
    }
}

/// A holder that reads before it writes raises the fence first. The page has it for `$1` alone.
async fn a_raised_fence_stays<P: Program>(program: &mut P) {
    let row = "INSERT INTO orders (id, state) VALUES (43, 'read')";
    program.change(Text::of_test(row.to_owned()), &[]).await;
    for (token, changed) in [(35, 1), (35, 1), (34, 0)] {
        let values = [Number(token), Number(43)];
        let raise = inline("UPDATE orders SET fence = $1 ");
        assert_eq!(program.change(raise, &values).await, changed, "{token}");
    }
}

/// Each program of a crowd pays with its own token. After a later one has paid, no earlier one can.
async fn the_payments_of_a_crowd_are_in_order<P: Program>(crowd: Vec<P>) {
    let begin = tokio::sync::Barrier::new(crowd.len());
    let payments = crowd.into_iter().enumerate().map(async |(n, mut program)| {
        begin.wait().await;
        (pay(&mut program, 1, 100 + n as i64).await, program)
    });
    let mut done = futures_util::future::join_all(payments).await;
    let paid = done.iter().filter(|(paid, _)| *paid).count() as i64;
    assert!(done.last().unwrap().0, "the latest is refused by nobody");
    let (_, program) = &mut done[0];
    let rows = Text::of_test("SELECT count(*) FROM payments WHERE amount = 1".to_owned());
    assert_eq!(program.number(rows, &[]).await, paid, "who was refused has paid");
    let disorder = "SELECT count(*) FROM payments late JOIN payments early \
                    ON late.id > early.id AND late.fence < early.fence";
    assert_eq!(program.number(Text::of_test(disorder.to_owned()), &[]).await, 0);
}

/// The last statement of a transaction in the locks' own database.
async fn a_lost_lock_is_not_found<P: Program>(program: &mut P, locks: &Locks) {
    let guard = locks.lock("orders/42").unwrap().acquire().await.unwrap();
    let values = [Word("orders/42"), Number(guard.token().as_i64())];
    let mut is_held = async || {
        program.say("BEGIN").await;
        let found = program.finds(statement(P::NAME, "is the lock held"), &values).await;
        program.say(if found { "COMMIT" } else { "ROLLBACK" }).await;
        found
    };
    assert!(is_held().await);
    guard.release().await.unwrap();
    assert!(!is_held().await);
    let next = locks.lock("orders/42").unwrap().acquire().await.unwrap();
    assert!(!is_held().await, "another holder's");
    next.release().await.unwrap();
}

/// Runs everything on one database, which is that of the locks, too. `connect` opens a new
/// connection to it.
async fn all<P: Program>(id: &str, locks: &Locks, connect: impl AsyncFn() -> P) {
    let mut first = connect().await;
    a_lost_lock_is_not_found(&mut first, locks).await;
    tables(&mut first, id).await;
    a_late_holder_writes_nothing(&mut first).await;
    if P::NAME != "MySQL" {
        a_raised_fence_stays(&mut first).await;
    }
    let mut crowd = Vec::new();
    for _ in 0..16 {
        crowd.push(connect().await);
    }
    the_payments_of_a_crowd_are_in_order(crowd).await;
}
