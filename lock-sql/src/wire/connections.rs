//! A few connections to one database.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use lock_core::{Clock, Instant, keep::poison::lock};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{
    error::Refusal,
    wire::{
        failure::Failure,
        hosts::{Connected, Hosts, Link, Plans},
        turns::{GOODBYE, Limit, Rank},
    },
};

/// Shortest time limit for making a connection, even if the script that wants it waits for less.
const MAKING: Duration = Duration::from_secs(1);

/// How long a connection stays that no script needs. One stays for ever.
const IDLE: Duration = Duration::from_secs(20);

/// Connections that are made when they are needed, and used by one script at a time. Not the
/// library's pool: after each use it asks the server whether the connection is still there, which
/// would double the requests.
pub(crate) struct Connections<C: Link> {
    pub(super) hosts: Arc<Hosts<C>>,
    /// The one that came back last is the last one. `None` once all have been ended: a connection
    /// that comes back then is ended, too.
    idle: Mutex<Option<Vec<Made<C>>>>,
    /// Connections whose login began earlier are not used again: its user may be gone.
    logins_from: Mutex<Instant>,
    /// How many connections there are, used or not. Also tells when one comes back.
    alive: Arc<watch::Sender<usize>>,
    /// One seat for each connection, also while it is being made.
    seats: Arc<Semaphore>,
    /// When the server was asked whether commits hang, and whether they do.
    hang: tokio::sync::Mutex<(Instant, bool)>,
    /// Rings when a connection broke.
    pub(super) broken: Arc<Notify>,
    /// The task that ends what no script needs, while there is more than one connection.
    sweeper: Mutex<Option<AbortHandle>>,
    /// For scripts that the server still executes, though their callers have given up. They do not
    /// keep others from their turns, as long as there are few of them.
    pub(super) stragglers: Arc<Semaphore>,
}

/// A connection in its seat.
pub(super) struct Made<C> {
    pub(super) connection: C,
    /// `None` behind a pooler, where each message may meet another session.
    pub(super) plans: Option<Plans>,
    /// When its login began.
    began: Instant,
    /// Its login: see [`Connected`].
    login: u64,
    /// When it was last seen to work.
    pub(super) answered: Instant,
    pub(super) seat: OwnedSemaphorePermit,
    /// When another server had taken over last, as of its making.
    pub(super) moved: Option<Instant>,
    /// Whether the last script on it was a renewal.
    pub(super) renewed: bool,
    _alive: Alive,
}

/// Counts a connection, until this is dropped.
struct Alive(Arc<watch::Sender<usize>>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.send_modify(|alive| *alive -= 1);
    }
}

impl<C: Link> Connections<C> {
    /// `most`: how many scripts run at once. As many again may run whose callers have given up.
    pub(crate) fn new(hosts: Arc<Hosts<C>>, most: usize) -> Arc<Self> {
        Arc::new(Self {
            hosts,
            idle: Mutex::new(Some(Vec::new())),
            logins_from: Mutex::default(),
            alive: Arc::default(),
            seats: Arc::new(Semaphore::new(most)),
            hang: tokio::sync::Mutex::default(),
            broken: Arc::default(),
            sweeper: Mutex::default(),
            stragglers: Arc::new(Semaphore::new(most)),
        })
    }

    /// Takes an unused connection: often one comes back sooner than a new one is made.
    pub(super) async fn take(
        self: &Arc<Self>,
        rank: Rank,
        limit: &Limit,
    ) -> Result<Made<C>, Failure> {
        loop {
            let added = tokio::select! {
                biased;
                Some(made) = self.unused(rank, true) => return Ok(made),
                added = self.add(limit.whole.max(MAKING)) => added,
            };
            let Err(failure) = added else { continue };
            let rank = match &failure {
                // The server has no room for one more.
                Failure::Down(why) if Refusal::of(C::DIALECT, why) == Refusal::Passing => rank,
                // A password that is changed: any connection that there is will do.
                Failure::Login(_) => Rank::Renew,
                _ => return Err(failure),
            };
            return self.unused(rank, false).await.ok_or(failure);
        }
    }

    /// Makes one more connection as soon as there is a seat for it. Goes on if the caller stops
    /// waiting for it: MySQL blocks a host that leaves many connections half-made.
    async fn add(self: &Arc<Self>, limit: Duration) -> Result<(), Failure> {
        let seat = self.seats.clone().acquire_owned().await;
        let (connections, seat) = (self.clone(), seat.map_err(|_| Failure::Closed)?);
        let making = tokio::spawn(async move {
            let began = Clock::Boot.now();
            let (Connected { connection, login, .. }, moved) =
                connections.hosts.make(limit).await?;
            connections.alive.send_modify(|alive| *alive += 1);
            let _alive = Alive(connections.alive.clone());
            let answered = Clock::Boot.now();
            let renewed = false;
            let plans = (!connections.hosts.is_pooled).then(Plans::new);
            let made =
                Made { connection, plans, began, login, answered, seat, moved, renewed, _alive };
            connections.put_back(made);
            connections.sweep_later();
            Ok(())
        });
        making.await.unwrap_or_else(|gone| match gone.is_panic() {
            true => Err(Failure::down(&gone.to_string())),
            // The runtime ends.
            false => Err(Failure::Closed),
        })
    }

    /// Whether the server says that commits of this user wait for a standby. It is asked on a
    /// connection of its own, and not again for a while.
    pub(super) async fn commits_hang(&self, a_while: Duration) -> bool {
        let Some(ask) = C::HUNG_COMMITS else { return false };
        let mut known = self.hang.lock().await;
        if Clock::Boot.now().since(known.0) >= a_while {
            known.1 = false;
            if let Ok((Connected { mut connection, .. }, _)) = self.hosts.make(MAKING).await {
                let asked = timeout(MAKING, connection.fetch(ask.to_owned(), None)).await;
                let rows = asked.ok().and_then(Result::ok).and_then(Result::ok);
                known.1 = rows.is_some_and(|rows| rows.number(0) > Some(0));
                let _ = timeout(GOODBYE, connection.close()).await;
            }
            known.0 = Clock::Boot.now();
        }
        known.1
    }

    /// Starts the task that ends unused connections, unless it runs or there is one connection.
    fn sweep_later(self: &Arc<Self>) {
        let mut sweeper = lock(&self.sweeper);
        let runs = sweeper.as_ref().is_some_and(|task| !task.is_finished());
        if *self.alive.borrow() > 1 && !runs && !self.is_refusing() {
            *sweeper = Some(tokio::spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    /// Ends the connections that no script has used for [`IDLE`], but for one.
    fn sweep(&self) {
        let old = Clock::Boot.now() - IDLE;
        if let Some(idle) = &mut *lock(&self.idle) {
            // The one that came back last stays.
            let newest = idle.pop();
            idle.extract_if(.., |made| made.answered <= old).for_each(end);
            idle.extend(newest);
        }
    }

    /// Waits for an unused connection. Returns `None` if there is no connection at all, unless one
    /// is `expected`.
    async fn unused(&self, rank: Rank, expected: bool) -> Option<Made<C>> {
        let mut alive = self.alive.subscribe();
        loop {
            let are_there = *alive.borrow_and_update();
            if let Some(made) = self.take_idle(rank, are_there) {
                return Some(made);
            }
            if are_there == 0 && !expected {
                return None;
            }
            alive.changed().await.ok()?;
        }
    }

    /// An unused connection, of this many in all. Ends those that are not current any more.
    fn take_idle(&self, rank: Rank, alive: usize) -> Option<Made<C>> {
        let mut idle = lock(&self.idle);
        let idle = idle.as_mut()?;
        idle.extract_if(.., |made| !self.is_current(made)).for_each(end);
        let at = choose(idle, |made| made.renewed, rank, alive)?;
        Some(idle.remove(at))
    }

    /// Whether a connection leads to the primary, by a login that works as far as is known.
    fn is_current(&self, made: &Made<C>) -> bool {
        made.moved == self.hosts.moved_at() && made.began >= *lock(&self.logins_from)
    }

    /// Keeps a connection for the next script if it is current, and else ends it.
    pub(super) fn put_back(&self, made: Made<C>) {
        let is_current = self.is_current(&made);
        match &mut *lock(&self.idle) {
            Some(idle) if is_current => {
                if made.renewed {
                    // Two renewals at once have used two: one is left to them, not both.
                    idle.iter_mut().for_each(|other| other.renewed = false);
                }
                idle.push(made);
            }
            _ => end(made),
        }
        self.alive.send_modify(|_| {});
    }

    /// Whether there is another login now than that of a connection. The server may keep the
    /// connections of a user that it has removed: no connection is used again then whose login has
    /// begun until now.
    pub(super) fn leaves_login(&self, made: &Made<C>) -> bool {
        let is_former = self.hosts.is_former(made.login);
        let mut from = lock(&self.logins_from);
        if is_former && made.began >= *from {
            *from = Clock::Boot.now();
        }
        is_former
    }

    /// A connection broke, and so others may be broken: drops those that are not in use and have
    /// been silent since then.
    pub(super) fn broke(&self, then: Instant) {
        if let Some(idle) = &mut *lock(&self.idle) {
            idle.retain(|made| made.answered > then);
        }
        self.broken.notify_one();
    }

    /// Refuses all further scripts.
    pub(crate) fn refuse(&self) {
        self.seats.close();
        if let Some(task) = lock(&self.sweeper).take() {
            task.abort();
        }
    }

    pub(crate) fn is_refusing(&self) -> bool {
        self.seats.is_closed()
    }

    /// Ends all connections properly: MySQL and MariaDB complain in their logs of connections that
    /// are only cut off.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) async fn quit(&self) {
        self.refuse();
        let idle = lock(&self.idle).take();
        let quits = async {
            for Made { connection, seat: _seat, .. } in idle.into_iter().flatten() {
                let _ = connection.close().await;
            }
        };
        // A server that does not read in time finds them closed.
        let _ = timeout(GOODBYE, quits).await;
    }
}

/// Which of the `idle` connections a script of this rank takes, of this many in all.
///
/// One of several is left to renewals: the last one that there is, if a renewal has used it last. So
/// renewals do not wait for one to be made, or to come back. No second one is kept from the others
/// while a renewal is on its way, and none before the first renewal: releases and revokes must work
/// on the connections that there are, since a new one may be out of reach.
fn choose<T>(idle: &[T], renewed: impl Fn(&T) -> bool, rank: Rank, alive: usize) -> Option<usize> {
    let (renews, last) = (rank == Rank::Renew, idle.len().checked_sub(1)?);
    let fitting = idle.iter().rposition(|it| renewed(it) == renews);
    let is_left = !renews && last == 0 && alive > 1;
    fitting.or((!is_left).then_some(last))
}

/// Ends a connection properly.
fn end<C: Link>(made: Made<C>) {
    tokio::spawn(made.connection.close());
}

/// Ends unused connections until there is one.
async fn sweep<C: Link>(connections: Weak<Connections<C>>) {
    loop {
        sleep(IDLE).await;
        let Some(connections) = connections.upgrade() else { return };
        connections.sweep();
        if *connections.alive.borrow() <= 1 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a renewal has used each of the unused ones last.
    fn choose(idle: &[bool], rank: Rank, alive: usize) -> Option<usize> {
        super::choose(idle, |renewed| *renewed, rank, alive)
    }

    #[test]
    fn one_connection_of_several_is_left_to_renewals() {
        for rank in [Rank::HandOver, Rank::Ask] {
            assert_eq!(choose(&[true], rank, 2), None);
            assert_eq!(choose(&[false, true], rank, 2), Some(0));
            assert_eq!(choose(&[true, true], rank, 2), Some(1));
        }
        assert_eq!(choose(&[true, false], Rank::Renew, 2), Some(0));
        assert_eq!(choose(&[false, false], Rank::Renew, 2), Some(1));
    }

    #[test]
    fn no_second_connection_is_left_to_renewals() {
        for rank in [Rank::HandOver, Rank::Ask] {
            // A renewal is on its way on the other one, or there was none yet.
            assert_eq!(choose(&[false], rank, 2), Some(0));
            assert_eq!(choose(&[true], rank, 1), Some(0));
            assert_eq!(choose(&[], rank, 1), None);
        }
        assert_eq!(choose(&[], Rank::Renew, 2), None);
    }
}
