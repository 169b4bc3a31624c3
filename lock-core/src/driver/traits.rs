//! The traits that a driver implements.

use std::{any::Any, fmt::Debug, time::Duration};

use async_trait::async_trait;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::refusals::not_implemented;
use crate::{
    Attempt, Clock, Diagnosis, Entry, Facts, FencingToken, Guarantees, LockName, Mark, Observed,
    Reach, Request, Result, Ticket, TokenFloor, Validity, Wish,
};

/// A lock that several processes share through a store. This is the driver's side of the contract;
/// applications use [`Locks`](crate::Locks).
///
/// # Contract
///
/// Each promise is one of the executable [`properties`] (feature `properties`), with the same name.
///
/// - **mutual exclusion:** at most one attempt holds a name, unless its kind lets others in. The
///   [queue rule](crate::queue) says which attempts are admitted.
/// - **sharing**, **permits:** never a reader together with a writer, never more permits than the
///   limit, no attempt overtaken; a conversion leaves no gap.
/// - **sets:** several locks are taken together or not at all, and overlapping sets do not
///   deadlock.
/// - **election:** all observers get the present leader, and no older one after a newer one.
/// - **operators:** names in use are listed, and the owner of a revoked lock is notified at once.
/// - **liveness:** a holder that crashed or was cut off is gone after its TTL plus
///   [`Guarantees::expiry_slack`]; a dropped one at once.
/// - **symmetry:** release and renew act on the own attempt only, also when they are late or sent
///   twice.
/// - **fencing:** each later grant of a name carries a greater token, as [`Guarantees::fencing`]
///   grades it.
/// - **cancellation:** a cancelled attempt leaves nothing behind.
/// - **loss:** [`Validity`] ends before the store can grant the name to another attempt.
/// - **fairness:** waiters are served in order of arrival, if [`Guarantees::fairness`] says so.
/// - **detach:** a detached lock lives for one more TTL, is adopted once, and keeps its token.
/// - **once:** work is marked as done for a period by a living holder alone.
/// - **reconnect:** held locks and waiting attempts survive an outage shorter than the TTL.
///
/// # Cancel safety
///
/// lock-core polls the futures of [`acquire`](Self::acquire), [`try_all`](Self::try_all),
/// [`adopt`](Self::adopt) and of a [`Lease`] to their end while the runtime lives, even if the
/// caller does not poll: if it has left, lock-core cancels the attempt. A grant is released at once
/// if its caller has left, and after one TTL if its caller does not collect it.
///
/// lock-core may drop the other futures half-way. That must leave nothing behind; only the request
/// of a [`revoke`](Self::revoke) or a [`raise_token_floor`](Self::raise_token_floor) may still act
/// if it was sent. It drops [`diagnose`](Self::diagnose) and [`close`](Self::close) after 5 s; locks
/// that are still held then end with their TTL.
///
/// # Errors
///
/// Where a method names no others: [`Error::Unavailable`](crate::Error::Unavailable) and the like
/// if the store cannot tell.
///
/// # What is not promised
///
/// A holder can be paused past its TTL and write late. No client library can prevent that; see
/// [`FencingToken`].
///
/// # Dropping
///
/// When the driver is dropped (all of its leases are gone by then), it ends its sessions in the
/// background if the runtime lives, and its tasks end.
///
#[cfg_attr(feature = "properties", doc = "[`properties`]: crate::properties")]
#[cfg_attr(not(feature = "properties"), doc = "[`properties`]: crate#a-driver-in-nine-steps")]
#[async_trait]
pub trait DistributedLock: Debug + Send + Sync + 'static {
    /// The promises of this store, as deployed and configured. The driver asks the store when it
    /// connects, and builds the value from the answers; it stays the same afterwards.
    fn guarantees(&self) -> &Guarantees;

    /// The clock of all its deadlines.
    fn clock(&self) -> Clock;

    /// The driver's report of whether it reaches its store: always the same one. The driver needs
    /// no extra requests for it. Default: `None`, which counts as connected.
    fn reach(&self) -> Option<Reach> {
        None
    }

    /// Waits for the lock, then holds it until the lease ends. The request may have any of the
    /// [kinds](Guarantees::kinds) that the driver promises; lock-core sends no other.
    ///
    /// As soon as the store has answered that the attempt waits, the driver calls
    /// [`Attempt::queued`].
    ///
    /// When `attempt` is cancelled, the driver leaves the queue, removes everything that the
    /// attempt left in the store (also what an unanswered request may have left), and returns. The
    /// result is then ignored, except that a lease is released.
    ///
    /// # Errors
    ///
    /// - [`Error::Contended`](crate::Error::Contended) for [`Wait::Try`](crate::Wait::Try), if it
    ///   would have to wait.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) if the store could not be reached for
    ///   one TTL.
    /// - [`Error::PlaceLost`](crate::Error::PlaceLost) if the attempt's entry, or the session in
    ///   which it waited, is gone: a waiter gets this error, and is never re-queued silently. Its
    ///   reason is `Expired` if it was not confirmed for a TTL: lock-core may acquire again.
    ///   [`Error::place_lost`](crate::Error::place_lost) counts as revoked.
    /// - [`Error::InvalidOption`](crate::Error::InvalidOption) if others count with another number
    ///   of permits, also if it may wait. Its `option` is `permits`; lock-core asks again for it, as
    ///   another attempt.
    /// - [`Error::Denied`](crate::Error::Denied), [`Error::Rejected`](crate::Error::Rejected),
    ///   [`Error::Closed`](crate::Error::Closed).
    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>>;

    /// Takes several locks in one step if each is free and has no waiter: all, or `None` and
    /// nothing. Never waits, disturbs no waiter. The requests are for exclusive or shared locks
    /// with [`Wait::Try`](crate::Wait::Try), and differ in their names; there are at most
    /// [`Guarantees::names_at_once`]. The attempts belong to one caller, which cancels all of them
    /// or none. The leases come in the order of the wishes.
    ///
    /// No attempt waits while it holds a part of a set. So sets that are taken at once do not
    /// deadlock with sets that are taken in the order of their names, or with each other.
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire); an error leaves nothing behind, either.
    /// [`Error::Unsupported`](crate::Error::Unsupported) if these cannot be taken in one step, for
    /// example if one is shared and the driver takes only exclusive ones in one step. They are then
    /// taken one after the other.
    async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        let _ = wishes;
        Err(not_implemented("take several locks at once"))
    }

    /// Takes up a lock that [`Lease::detach`] has detached: gives its entry to this attempt, with a
    /// fresh TTL and the same token, in one step that succeeds for one attempt only. The request is
    /// for an exclusive lock, with the ticket's name, TTL and term.
    ///
    /// If `attempt` is cancelled, or fails with an unknown effect, the driver removes the entry if
    /// this attempt got it, and leaves it alone if another one got it.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`](crate::Error::Lost) with
    ///   [`LossReason::Adopted`](crate::LossReason::Adopted) if another attempt has the grant, and
    ///   with [`LossReason::TicketOver`](crate::LossReason::TicketOver) if no attempt has it, or if
    ///   its token is at or below the [floor](Self::token_floor).
    /// - [`Error::InvalidOption`](crate::Error::InvalidOption) for a [`Ticket::place`] that this
    ///   driver did not write.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) and the like, same as
    ///   [`acquire`](Self::acquire).
    async fn adopt(
        &self,
        request: Request,
        attempt: Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        let _ = (request, attempt, ticket);
        Err(not_implemented("take up a lock that another process has left"))
    }

    /// Returns the holders of a name, then its waiters, in order; empty if the lock is free.
    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>>;

    /// Returns `Ok` if the store would take a request of an acquire now; changes nothing. For
    /// [`Locks::ping`](crate::Locks::ping). The default reads the queue of `name`, which is right
    /// if the store answers reads only while it takes writes.
    async fn ping(&self, name: &LockName) -> Result<()> {
        self.inspect(name).await.map(drop)
    }

    /// Returns the rights that this client's login needs for the locks of a name and lacks, as the
    /// store's page writes them, as far as the store answers; changes nothing. For `distlock check`.
    /// The default returns none: it is for stores whose errors name the right that was missing.
    async fn lacking(&self, name: &LockName) -> Vec<String> {
        let _ = name;
        Vec::new()
    }

    /// Returns why waits for a name timed out: the holder, and the place of each of these attempts,
    /// which are this client's. The result is only for the text of an error, so it may be late or
    /// incomplete.
    ///
    /// lock-core calls this when the limit of a wait passes: one call at a time for each name and
    /// client, with all attempts that timed out since the last call. So the cost for the store
    /// should depend on these attempts, and not on the number of other waiters. The default reads
    /// the whole queue by [`inspect`](Self::inspect). A driver sends it behind renewals and
    /// releases.
    ///
    /// # Errors
    ///
    /// They are not passed on: the waits end all the same.
    async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        Ok(Diagnosis::of(&self.inspect(name).await?, attempts))
    }

    /// Reports the leader from now on: first the present leader, then the one after each change, with
    /// the newest value. It may leave out leaders and values that were replaced meanwhile, and
    /// reports none after a newer one. [`Observer`](crate::Observer) sorts out late and repeated
    /// reports. It ends when the receiver is dropped, and when the client is closed. Only
    /// called if [`Guarantees::kinds`] has elections.
    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        let _ = name;
        Err(not_implemented("observe an election"))
    }

    /// Returns the names that have a holder or a waiter and that start with `prefix`, in order. A
    /// name that comes or goes meanwhile may be missing.
    async fn names(&self, prefix: &str) -> Result<Vec<LockName>>;

    /// Removes the entry of an attempt, of any client, as if it had released or left; the next one
    /// in line is served. Its owner is notified at once, as [`LossSignal`](crate::LossSignal) says:
    /// a holder by [`LossReason::EntryGone`](crate::LossReason::EntryGone), a waiter by
    /// [`Error::PlaceLost`](crate::Error::PlaceLost). Returns whether there was such an entry.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) and the like; calling it again is safe.
    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool>;

    /// Reads the store's [token floor](TokenFloor).
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) if the store keeps none.
    async fn token_floor(&self) -> Result<TokenFloor> {
        Err(not_implemented("keep a token floor"))
    }

    /// Raises the token floor in one atomic step of the store, unless it is as high. Every later
    /// entry counts from it, for every client, whenever it connected. lock-core ends the entries
    /// that were made [before](Self::below_token_floor). `above` is at most half of
    /// [`Guarantees::greatest_token`].
    ///
    /// # Errors
    ///
    /// Same as [`token_floor`](Self::token_floor); calling it again is safe.
    async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        let _ = above;
        Err(not_implemented("keep a token floor"))
    }

    /// Returns the attempts, of all clients, that hold with a token at or below the floor, or that
    /// wait and would be granted with one; attempts of one name come in the order of their places.
    /// The default finds the holders, including holders with a token that the store has lost. It is
    /// for stores that make the token with the grant. `floor` is the result of
    /// [`raise_token_floor`](Self::raise_token_floor).
    ///
    /// lock-core calls this and [revokes](Self::revoke) the attempts until there are none, for 30 s
    /// at most. For that to end, a token at or below the floor must go to no other attempt:
    /// [`adopt`](Self::adopt) and [`Lease::detach`] refuse it in the same step.
    async fn below_token_floor(&self, floor: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
        let mut found = Vec::new();
        for name in self.names("").await? {
            let entries = self.inspect(&name).await?.into_iter();
            let below = |entry: &Entry| {
                entry.holder.token.map_or(entry.holds, |token| token <= floor.above)
            };
            let attempts = entries.filter(below).filter_map(|entry| entry.attempt);
            found.extend(attempts.map(|attempt| (name.clone(), attempt)));
        }
        Ok(found)
    }

    /// Returns the mark of a name, unless its period is over. "None" must count for the caller if
    /// it holds the lock: the mark is read where a later holder would have written it, such as by
    /// the primary, in the state that this client's last grant has seen, or a newer one.
    ///
    /// A mark is no entry: the queue, [`names`](Self::names), the
    /// [floor](Self::raise_token_floor) and [`close`](Self::close) do not know it, and
    /// [`revoke`](Self::revoke) leaves it. Only called if [`Guarantees::marks`] says so, as are the
    /// other methods about marks.
    async fn mark(&self, name: &LockName) -> Result<Option<Mark>> {
        let _ = name;
        Err(not_implemented("keep marks of work that is done"))
    }

    /// Returns the marks of the names that start with `prefix`, in the order of the names, without
    /// those whose period is over.
    async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        let _ = prefix;
        Err(not_implemented("keep marks of work that is done"))
    }

    /// Removes the mark of a name. Returns whether there was one.
    async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        let _ = name;
        Err(not_implemented("keep marks of work that is done"))
    }

    /// Ends the client's sessions: every lock that is still held is free, and later calls return
    /// [`Error::Closed`](crate::Error::Closed). Returns when the store has confirmed.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) if the store did not confirm; held locks
    /// are then free after their TTL.
    async fn close(&self) -> Result<()>;
}

/// A grant of a store.
///
/// # Cancel safety
///
/// lock-core polls all of these futures to their end.
///
/// # Errors
///
/// Where a method names no others: [`Error::Lost`](crate::Error::Lost) if the grant is over,
/// [`Error::Unavailable`](crate::Error::Unavailable) if the store did not answer.
#[async_trait]
pub trait Lease: Any + Debug + Send + Sync {
    /// The grant's fencing token; after [`try_upgrade`](Self::try_upgrade) the token of the
    /// upgrade.
    fn token(&self) -> FencingToken;

    /// The facts that the store reported when it made the entry. Only facts that are known without
    /// another request. Default: nothing.
    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// The deadline and the end of the grant. The driver extends it from the *send* time of each
    /// confirmed renewal, and loses it as soon as the store says that the grant is gone.
    fn validity(&self) -> &Validity;

    /// Turns an exclusive grant into a shared one that keeps its place in the queue: readers that
    /// wait right behind it may enter, and no writer gets in between. Calling it again does
    /// nothing.
    /// Only called where [`Guarantees::kinds`] has shared locks.
    async fn downgrade(&self) -> Result<()> {
        Err(not_implemented("downgrade a lock"))
    }

    /// Turns a shared grant into an exclusive one, with a new, greater token, if no other attempt
    /// holds the lock or waits for it. Otherwise changes nothing and returns `false`. Never waits,
    /// so two holders that try it cannot block each other.
    async fn try_upgrade(&self) -> Result<bool> {
        Err(not_implemented("upgrade a lock"))
    }

    /// Publishes a new value to all observers of the election that the holder leads.
    /// Only called if [`Guarantees::kinds`] has elections.
    async fn publish(&self, value: &[u8]) -> Result<()> {
        let _ = value;
        Err(not_implemented("publish a value"))
    }

    /// Detaches an exclusive grant, for another attempt to [adopt](DistributedLock::adopt) it:
    /// takes its entry away from this attempt, and lets it live for one more TTL, independent of
    /// this client and its sessions. Token and place in the queue stay. Returns a text, of at most
    /// 200 bytes, by which `adopt` finds the entry.
    ///
    /// The grant's [`Validity`] has ended before this call, so it is not renewed any more. After an
    /// error, lock-core calls [`release`](Self::release), which removes the entry if it is still
    /// this attempt's.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) with the reason;
    /// [`Error::Lost`](crate::Error::Lost) also if the token is at or below the
    /// [floor](DistributedLock::token_floor).
    async fn detach(&self) -> Result<String> {
        Err(not_implemented("leave a lock to another process"))
    }

    /// Marks the work of an exclusive grant as done on this host, for this long from now, in one
    /// atomic step of the store that also finds the grant's own living entry. It replaces the mark
    /// of the name, and removes marks of any names whose period is over. The step is idempotent:
    /// lock-core sends it again, with the time that is left then, until it is answered or the grant
    /// is over. Only called if [`Guarantees::marks`] says so.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`](crate::Error::Lost) if the entry is gone. There is no mark of this grant
    ///   then, unless an earlier call has written it.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) if the store did not answer.
    async fn mark(&self, host: &str, left: Duration) -> Result<()> {
        let _ = (host, left);
        Err(not_implemented("keep marks of work that is done"))
    }

    /// Renews the grant for one TTL now, whatever its term.
    async fn renew(&self) -> Result<()>;

    /// Whether the entry of a grant that is not renewed any more ends by itself within a TTL,
    /// independent of the client. lock-core then gives nothing back after
    /// [`LossReason::Expired`](crate::LossReason::Expired), so that a client that loses thousands
    /// of locks in an outage does not send thousands of requests after it.
    ///
    /// If entries live by a session, return false; [`release`](Self::release) then returns at once
    /// when the session has ended. Default: false.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Gives the lock back: removes this attempt's entry and nothing else. Tries again until the
    /// store has confirmed, or the entry has ended by itself, also with its session. "Not mine"
    /// means released. After a loss of many locks, lock-core calls it for all of them at the same
    /// time.
    ///
    /// # Errors
    ///
    /// The error that made further tries useless; the entry then ends with its TTL.
    async fn release(&self) -> Result<()>;
}
