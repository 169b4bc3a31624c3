//! The line on the terminal while the program waits for a lock.

use std::{
    future::Future,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use distlock::{Entry, Locks};

use crate::{
    escape::Plain,
    fit,
    print::{self, who},
};

/// Delay of the first line: most grants come at once.
const FIRST: Duration = Duration::from_millis(300);
/// Time between two looks.
const NEXT: Duration = Duration::from_secs(1);
/// Longest request for the holder of a busy lock.
const BLAME_LIMIT: Duration = Duration::from_secs(1);
/// Clears the line.
const CLEAR: &str = "\r\x1b[2K";

/// Waits for a grant, and meanwhile shows the lock's holder on a terminal. `me` is the description
/// of this process in the queue.
pub(crate) async fn shown<T>(
    locks: &Locks,
    name: &str,
    me: &str,
    quiet: bool,
    grant: impl Future<Output = T>,
) -> T {
    tokio::pin!(grant);
    if quiet || !io::stderr().is_terminal() {
        return grant.await;
    }
    let show = async {
        let mut shown = Shown::default();
        tokio::time::sleep(FIRST).await;
        loop {
            // If no other client stands there, the store is slow and there is no holder to show.
            if let Ok(queue) = locks.inspect(name).await
                && queue.iter().any(|entry| who(entry) != me)
            {
                shown.draw(&line(name, me, &queue));
            }
            tokio::time::sleep(NEXT).await;
        }
    };
    tokio::select! {
        granted = &mut grant => granted,
        () = show => unreachable!("it shows for ever"),
    }
}

/// The line on the terminal. A drop clears it if it was drawn.
#[derive(Default)]
struct Shown {
    drawn: bool,
}

impl Shown {
    /// Replaces the line, cut to the terminal's width.
    fn draw(&mut self, line: &str) {
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0);
        let width = usize::from(width);
        // Text may stand on the line, as `printf 'deploying ..'` leaves it. Then a width of spaces
        // ends on the next line, else at the end of this one.
        let own_line = if self.drawn { String::new() } else { " ".repeat(width) };
        let line = fit::cut(&Plain(line).to_string(), width.saturating_sub(1));
        put(&format!("{own_line}{CLEAR}{line}"));
        self.drawn = true;
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if self.drawn {
            put(CLEAR);
        }
    }
}

fn put(text: &str) {
    let mut out = io::stderr();
    // The terminal may be gone.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Names the holder of a lock that this process did not wait for: `: held by ..`. Empty if there is
/// no holder any more, or if the store does not say.
pub(crate) async fn blame(locks: &Locks, name: &str) -> String {
    let queue = tokio::time::timeout(BLAME_LIMIT, locks.inspect(name)).await;
    let queue = queue.ok().and_then(Result::ok).unwrap_or_default();
    holders(&queue).map(|holders| format!(": {holders}")).unwrap_or_default()
}

/// The holder, its time of hold, and the number of other holders. `None` if there is no holder.
fn holders(queue: &[Entry]) -> Option<String> {
    let mut holders = queue.iter().filter(|entry| entry.holds);
    let first = holders.next()?;
    let mut text = format!("held by {}", who(first));
    match (first.holder.granted_at, first.holder.queued_at) {
        (Some(granted), _) => text += &format!(" for {}", print::age(granted)),
        (None, Some(queued)) => text += &format!(" (queued {} ago)", print::age(queued)),
        (None, None) => {}
    }
    match holders.count() {
        0 => {}
        others => text += &format!(" and {others} more"),
    }
    Some(text)
}

/// The line: the holders, and the place of this process in line.
fn line(name: &str, me: &str, queue: &[Entry]) -> String {
    let mut line = format!("waiting for {name}");
    if let Some(holders) = holders(queue) {
        line += &format!(": {holders}");
    }
    let waiters: Vec<_> = queue.iter().filter(|entry| !entry.holds).collect();
    if let Some(place) = waiters.iter().position(|entry| who(entry) == me) {
        line += &format!("; number {} of {} in line", place + 1, waiters.len());
    }
    line
}

#[cfg(test)]
mod tests {
    use distlock::Holder;
    use lock_core::wall_clock;
    use uuid::Uuid;

    use super::*;

    fn entry(who: &str) -> Entry {
        Entry::new(Some(Uuid::new_v4()), Holder::new(Some(who.to_owned()), None))
    }

    #[test]
    fn a_holder_without_a_grant_time_shows_its_queue_time() {
        let before = |hours: u64| Some(wall_clock() - Duration::from_secs(3600 * hours));
        let mut holder = entry("a").holding();
        holder.holder.queued_at = before(4);
        let said = line("x", "me", std::slice::from_ref(&holder));
        assert!(said.starts_with("waiting for x: held by a (queued 4h"), "{said}");
        assert!(print::held_for(&holder).starts_with("queued 4h"));
        holder.holder.granted_at = before(1);
        let said = line("x", "me", std::slice::from_ref(&holder));
        assert!(said.starts_with("waiting for x: held by a for 1h"), "{said}");
        assert!(print::held_for(&holder).starts_with("1h"));
    }

    #[test]
    fn the_line_names_the_holder() {
        let queue = [entry("a").holding(), entry("b"), entry("me")];
        assert_eq!(line("x", "me", &queue), "waiting for x: held by a; number 2 of 2 in line");
        assert_eq!(line("x", "me", &[]), "waiting for x");
        let queue =
            [entry("a").holding(), entry("b").holding(), Entry::new(None, Holder::default())];
        assert_eq!(line("x", "me", &queue), "waiting for x: held by a and 1 more");
    }
}
