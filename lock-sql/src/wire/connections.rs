//! A few connections to one database.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use lock_core::{Clock, Instant, keep::poison::lock};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{
    error::{is_passing, refused_login},
    wire::{
        failure::Failure,
        hosts::Hosts,
        limit::{GOODBYE, Limit},
        link::Link,
        turns::{Rank, Turns},
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
    hosts: Arc<Hosts<C>>,
    /// `None` once all have been ended: a connection that comes back then is ended, too.
    idle: Mutex<Option<Vec<Made<C>>>>,
    /// A connection that only renewals use, where several scripts run at once. So renewals do not
    /// wait for one to be made, or to come back.
    reserved: Mutex<Option<Made<C>>>,
    /// Connections whose login began earlier are not used again: its user may be gone.
    logins_from: Mutex<Instant>,
    /// Rings when a connection comes back, or is gone.
    back: Arc<Notify>,
    /// How many connections there are, used or not.
    alive: Arc<AtomicUsize>,
    /// One seat for each connection, also while it is being made.
    seats: Arc<Semaphore>,
    most: usize,
    /// When the server was asked whether commits hang, and whether they do.
    hang: tokio::sync::Mutex<(Instant, bool)>,
    /// The task that ends what no script needs, while there is more than one connection.
    sweeper: Mutex<Option<AbortHandle>>,
    /// For scripts that the server still executes, though their callers have given up. They do not
    /// keep others from their turns, as long as there are few of them.
    pub(super) stragglers: Turns,
}

/// A connection in its seat.
pub(super) struct Made<C> {
    pub(super) connection: C,
    /// When its login began.
    pub(super) began: Instant,
    /// When it was last seen to work.
    pub(super) answered: Instant,
    pub(super) seat: OwnedSemaphorePermit,
    /// How often another server had taken over when it was made.
    pub(super) moves: u64,
    _alive: Alive,
}

/// Counts a connection, until this is dropped.
struct Alive {
    count: Arc<AtomicUsize>,
    back: Arc<Notify>,
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Relaxed);
        self.back.notify_waiters();
    }
}

impl<C: Link> Connections<C> {
    /// Takes an unused connection: often one comes back sooner than a new one is made.
    pub(super) async fn take(self: &Arc<Self>, limit: &Limit) -> Result<Made<C>, Failure> {
        loop {
            tokio::select! {
                biased;
                made = self.unused() => return Ok(made),
                added = self.add(limit.whole().max(MAKING)) => match added {
                    // The server has no room for one more.
                    Err(Failure::Down(why)) if self.has_others() && is_passing(C::DIALECT, &why) => {
                        return Ok(self.unused().await);
                    }
                    // A password that is changed: the connections that there are work on.
                    Err(Failure::Barred(why)) if refused_login(C::DIALECT, &why).is_some() => {
                        return self.any().await.ok_or(Failure::Barred(why));
                    }
                    added => added?,
                },
            }
        }
    }

    /// Makes one more connection as soon as there is a seat for it. Goes on if the caller stops
    /// waiting for it: MySQL blocks a host that leaves many connections half-made.
    async fn add(self: &Arc<Self>, limit: Duration) -> Result<(), Failure> {
        let seat = self.seats.clone().acquire_owned().await;
        let (connections, seat) = (self.clone(), seat.map_err(|_| Failure::Closed)?);
        let making = tokio::spawn(async move {
            let (before, began) = (connections.hosts.moves(), Clock::Boot.now());
            let (connection, moves) = connections.hosts.make(limit).await?;
            if moves != before {
                connections.forget();
            }
            let answered = Clock::Boot.now();
            let _alive = connections.count();
            connections.put_back(Made { connection, began, answered, seat, moves, _alive });
            connections.sweep_later();
            Ok(())
        });
        match making.await {
            Ok(made) => made,
            Err(panic) if panic.is_panic() => {
                Err(Failure::Down(sqlx::Error::Io(std::io::Error::other(panic))))
            }
            // The runtime ends.
            Err(_) => Err(Failure::Closed),
        }
    }
}

impl<C: Link> Connections<C> {
    /// `seats`: how many scripts of each rank run at once, as in [`Turns::new`]. As many again may
    /// run whose callers have given up.
    pub(crate) fn new(hosts: Arc<Hosts<C>>, seats: [usize; 3]) -> Arc<Self> {
        let most = seats[0];
        Arc::new(Self {
            hosts,
            idle: Mutex::new(Some(Vec::new())),
            reserved: Mutex::new(None),
            logins_from: Mutex::default(),
            back: Arc::default(),
            alive: Arc::default(),
            seats: Arc::new(Semaphore::new(most)),
            most,
            hang: tokio::sync::Mutex::default(),
            sweeper: Mutex::default(),
            stragglers: Turns::new(seats),
        })
    }

    pub(super) fn hosts(&self) -> &Hosts<C> {
        &self.hosts
    }

    /// Whether the server says that commits of this user wait for a standby. It is asked on a
    /// connection of its own, and not again for a while.
    pub(super) async fn commits_hang(&self, a_while: Duration) -> bool {
        let Some(ask) = C::HUNG_COMMITS else { return false };
        let mut known = self.hang.lock().await;
        if Clock::Boot.now().since(known.0) >= a_while {
            known.1 = false;
            if let Ok((mut connection, _)) = self.hosts.make(MAKING).await {
                let asked = timeout(MAKING, connection.fetch(ask.to_owned())).await;
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
        if self.alive.load(Relaxed) > 1 && !runs && !self.is_refusing() {
            *sweeper = Some(tokio::spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    /// Ends the connections that no script has used for [`IDLE`], but for one.
    fn sweep(&self) {
        let old = Clock::Boot.now() - IDLE;
        let mut unneeded = Vec::new();
        if let Some(idle) = &mut *lock(&self.idle) {
            // The one that was used last is the next one to be used.
            let newest = idle.pop();
            unneeded.extend(idle.extract_if(.., |made| made.answered <= old));
            if newest.is_some() {
                unneeded.extend(self.reserved().take_if(|made| made.answered <= old));
            }
            idle.extend(newest);
        }
        for made in unneeded {
            tokio::spawn(made.connection.close());
        }
    }

    fn has_others(&self) -> bool {
        self.seats.available_permits() < self.most
    }

    /// The unused connection that was used last. Drops those that are not current any more: a
    /// connection for another purpose may have seen that another server has taken over.
    fn take_idle(&self) -> Option<Made<C>> {
        loop {
            let made = lock(&self.idle).as_mut().and_then(Vec::pop)?;
            if self.is_current(&made) {
                return Some(made);
            }
        }
    }

    /// The connection for renewals, if there is a current one.
    pub(super) fn take_reserved(&self) -> Option<Made<C>> {
        let made = self.reserved().take()?;
        self.is_current(&made).then_some(made)
    }

    async fn unused(&self) -> Made<C> {
        loop {
            match self.take_idle() {
                Some(made) => return made,
                None => self.back.notified().await,
            }
        }
    }

    /// Waits for any connection, also the one for renewals. Returns `None` if there is none.
    async fn any(&self) -> Option<Made<C>> {
        loop {
            let mut back = std::pin::pin!(self.back.notified());
            back.as_mut().enable();
            if let Some(made) = self.take_idle().or_else(|| self.take_reserved()) {
                return Some(made);
            }
            if self.alive.load(Relaxed) == 0 {
                return None;
            }
            back.await;
        }
    }

    fn count(&self) -> Alive {
        self.alive.fetch_add(1, Relaxed);
        Alive { count: self.alive.clone(), back: self.back.clone() }
    }

    /// Whether a connection leads to the primary, by a login that works as far as is known.
    fn is_current(&self, made: &Made<C>) -> bool {
        made.moves == self.hosts.moves() && made.began >= *lock(&self.logins_from)
    }

    /// Keeps a connection for the next script if it is current, and else ends it.
    fn put_back(&self, made: Made<C>) {
        let is_current = self.is_current(&made);
        match &mut *lock(&self.idle) {
            Some(idle) if is_current => idle.push(made),
            _ => drop(tokio::spawn(made.connection.close())),
        }
        self.back.notify_one();
    }

    pub(super) fn put_back_of(&self, rank: Rank, made: Made<C>) {
        let mut reserved = self.reserved();
        let are_several = self.most - self.seats.available_permits() > 1;
        let is_current = self.is_current(&made);
        let keeps = rank == Rank::Renew && are_several && is_current && !self.is_refusing();
        match &*reserved {
            None if keeps => {
                *reserved = Some(made);
                self.back.notify_waiters();
            }
            _ => {
                drop(reserved);
                self.put_back(made);
            }
        }
    }

    pub(super) fn reserved(&self) -> MutexGuard<'_, Option<Made<C>>> {
        lock(&self.reserved)
    }

    /// Drops the connections that are not in use.
    pub(crate) fn forget(&self) {
        *self.reserved() = None;
        if let Some(idle) = &mut *lock(&self.idle) {
            idle.clear();
        }
    }

    /// Ends the connections whose login has begun until now: at once, or when they come back. Does
    /// nothing if the login that began then was left before.
    pub(super) fn leave_login(&self, began: Instant) {
        let mut from = lock(&self.logins_from);
        if began < *from {
            return;
        }
        *from = Clock::Boot.now();
        drop(from);
        let idle = lock(&self.idle).as_mut().map(std::mem::take).unwrap_or_default();
        let unused = idle.into_iter().chain(self.reserved().take());
        unused.for_each(|made| self.put_back(made));
    }

    /// Drops the connections that are not in use and have been silent since then.
    pub(super) fn forget_since(&self, then: Instant) {
        self.reserved().take_if(|made| made.answered <= then);
        if let Some(idle) = &mut *lock(&self.idle) {
            idle.retain(|made| made.answered > then);
        }
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
        let (idle, reserved) = (lock(&self.idle).take(), self.reserved().take());
        let quits = async {
            for Made { connection, seat: _seat, .. } in idle.into_iter().flatten().chain(reserved) {
                let _ = connection.close().await;
            }
        };
        // A server that does not read in time finds them closed.
        let _ = timeout(GOODBYE, quits).await;
    }
}

/// Ends unused connections until there is one.
async fn sweep<C: Link>(connections: Weak<Connections<C>>) {
    loop {
        sleep(IDLE).await;
        let Some(connections) = connections.upgrade() else { return };
        connections.sweep();
        if connections.alive.load(Relaxed) <= 1 {
            return;
        }
    }
}
