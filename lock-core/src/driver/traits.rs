//! What a driver implements.

use std::{any::Any, fmt::Debug};

use async_trait::async_trait;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::refusals::unsupported;
use crate::{
    Attempt, Clock, Diagnosis, Entry, Facts, FencingToken, Guarantees, LockName, Observed, Reach,
    Request, Result, Ticket, TokenFloor, Validity, Wish,
};

/// A lock that several processes share through a store. The driver's side of the contract; people
/// use [`Locks`](crate::Locks).
///
/// # Contract
///
/// Each promise is an executable property in `driver::properties` (feature `properties`), named like
/// it.
///
/// - **mutual exclusion:** at most one attempt holds a name, unless what it asked for lets others
///   in: who is admitted is said by the [queue rule](crate::queue).
/// - **sharing**, **permits:** never a reader beside a writer, never more than the permits, nobody
///   overtaken; a conversion leaves no gap.
/// - **sets:** several locks are taken together or not at all, and sets that overlap do not
///   dead-lock.
/// - **election:** who leads is told to all who observe, in order.
/// - **operators:** names in use are listed, and whose lock is revoked is told at once.
/// - **liveness:** a holder that crashed or was cut off is gone after its TTL plus
///   [`Guarantees::expiry_slack`]; a dropped one at once.
/// - **symmetry:** release and renew act on the own attempt only, also when they are late or sent
///   twice.
/// - **fencing:** each later grant of a name carries a greater token, as [`Guarantees::fencing`]
///   grades it.
/// - **cancellation:** a cancelled attempt leaves nothing behind.
/// - **loss:** [`Validity`] ends before the store can grant the name to anybody else.
/// - **fairness:** waiters are served in order of arrival, if [`Guarantees::fairness`] says so.
/// - **detach:** a lock that is left lives for one TTL more, is taken up once, and keeps its token.
/// - **reconnect:** held locks and waiting attempts survive an outage shorter than the TTL.
///
/// A driver may rely on lock-core for this: a future of [`acquire`](Self::acquire),
/// or a method of [`Lease`] is polled to its end and never dropped half-way while the
/// runtime lives, also if its caller does not poll; a grant whose caller has left is released at
/// once, and one that its caller does not collect after one TTL.
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
#[async_trait]
pub trait DistributedLock: Debug + Send + Sync + 'static {
    /// What this store, as deployed and configured, promises. The driver asks the store when it
    /// connects, and builds the value from its answers; it stays the same afterwards.
    fn guarantees(&self) -> &Guarantees;

    /// The clock of all its deadlines.
    fn clock(&self) -> Clock;

    /// Where the driver says whether it reaches its store: always the same one. It needs no requests of
    /// its own for that. Default: `None`, which counts as connected.
    fn reach(&self) -> Option<Reach> {
        None
    }

    /// Waits for the lock, then holds it until the lease ends. What is asked for may be any of the
    /// [kinds](Guarantees::kinds) that the driver promises; lock-core asks for no other.
    ///
    /// As soon as the store has answered that the attempt waits, the driver calls
    /// [`Attempt::queued`].
    ///
    /// When `attempt` is cancelled, the driver leaves the queue, removes whatever the attempt left
    /// in the store (also what an unanswered request may have left), and returns. The answer is
    /// then of no interest, except that a lease is released.
    ///
    /// # Errors
    ///
    /// - [`Error::Contended`](crate::Error::Contended) for [`Wait::Try`](crate::Wait::Try), if it
    ///   would have to wait.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) if the store could not be reached for
    ///   one TTL.
    /// - [`Error::PlaceLost`](crate::Error::PlaceLost) if the attempt's entry, or the session in
    ///   which it waited, is gone: a waiter is told, and never re-queued in silence.
    /// - [`Error::InvalidOption`](crate::Error::InvalidOption) if others count with another number
    ///   of permits: [`limit_conflict`](crate::limit_conflict).
    /// - [`Error::Denied`](crate::Error::Denied), [`Error::Rejected`](crate::Error::Rejected),
    ///   [`Error::Closed`](crate::Error::Closed).
    ///
    /// # Cancel safety
    ///
    /// lock-core polls the future to its end. It cancels `attempt` where the caller has left.
    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>>;

    /// Takes several locks in one step if each is free and nobody waits for it: all, or `None` and
    /// nothing. Never waits, disturbs no waiter. The requests are for exclusive or shared locks with
    /// [`Wait::Try`](crate::Wait::Try), and differ in their names; there are at most
    /// [`Guarantees::names_at_once`]. The attempts are one caller's, who cancels all of them or
    /// none. The leases come in the order of the wishes.
    ///
    /// Nobody waits with a part of a set in hand, so sets that are taken at once do not dead-lock
    /// with those whose names are taken in order, or with each other.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); nothing is left behind then, either.
    /// [`Error::Unsupported`](crate::Error::Unsupported) if these cannot be taken in one step, as
    /// where one is shared and the driver takes only exclusive ones so: they are then taken one after
    /// the other.
    ///
    /// # Cancel safety
    ///
    /// lock-core polls the future to its end. It cancels the attempts where the caller has left.
    async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        let _ = wishes;
        Err(unsupported("take several locks at once"))
    }

    /// Takes up a lock that [`Lease::detach`] has left: gives its entry to this attempt, with a fresh
    /// TTL and the same token, in one step that succeeds for one attempt only. The request is for an
    /// exclusive lock, with the ticket's name, TTL and term.
    ///
    /// When `attempt` is cancelled, or it fails in a way that leaves its effect unknown, the driver
    /// removes the entry if this attempt got it, and leaves it alone if another one did.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`](crate::Error::Lost) with
    ///   [`LossReason::Adopted`](crate::LossReason::Adopted) if another attempt has the grant, and
    ///   with [`LossReason::TicketOver`](crate::LossReason::TicketOver) if nobody has it, or its
    ///   token is at or below the [floor](Self::token_floor).
    /// - [`Error::InvalidOption`](crate::Error::InvalidOption) for a [`Ticket::place`] that this driver
    ///   did not write.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) and the like, as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// lock-core polls the future to its end. It cancels `attempt` where the caller has left.
    async fn adopt(
        &self,
        request: Request,
        attempt: Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        let _ = (request, attempt, ticket);
        Err(unsupported("take up a lock that another process has left"))
    }

    /// Holders and waiters of a name in order, the holders first; empty if the lock is free.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) and the like if the store cannot tell.
    ///
    /// # Cancel safety
    ///
    /// lock-core may drop the future half-way. That must leave nothing behind.
    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>>;

    /// Whether the store would take a request of an acquire now; nothing is changed. For
    /// [`Locks::ping`](crate::Locks::ping). The default asks for the queue of `name`, which is right
    /// where the store answers reads only while it takes writes.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    ///
    /// lock-core may drop the future half-way. That must leave nothing behind.
    async fn ping(&self, name: &LockName) -> Result<()> {
        self.inspect(name).await.map(drop)
    }

    /// Tells why waits for a name were in vain: who is in the way, and the place of each of these
    /// attempts, which are this client's. Only for the text of an error, so it may be late or
    /// incomplete.
    ///
    /// lock-core asks when the limit of a wait passes: one call at a time for each name and client,
    /// with all attempts whose waits have ended since the call before. So the answer should cost
    /// the store what the attempts asked about cost, however many others wait. The default reads
    /// the whole queue by [`inspect`](Self::inspect). A driver sends it behind renewals and
    /// releases.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect). They are not passed on: the waits end all the same.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future must leave nothing behind: lock-core drops it after 5 s.
    async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        Ok(Diagnosis::of(&self.inspect(name).await?, attempts))
    }

    /// Tells who leads, from now on: first the leader of this moment, then each change, in order.
    /// After an outage it tells the leader of that moment. What is told too late, or twice, is
    /// sorted out by [`Observer`](crate::Observer). It ends when the receiver is dropped, and when
    /// the client is closed. Only called where [`Guarantees::kinds`] has elections.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    ///
    /// lock-core may drop the future half-way. That must leave nothing behind.
    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        let _ = name;
        Err(unsupported("observe an election"))
    }

    /// The names that somebody holds or waits for and that start with `prefix`, in order. What
    /// comes and goes meanwhile may be missing.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    ///
    /// lock-core may drop the future half-way. That must leave nothing behind.
    async fn names(&self, prefix: &str) -> Result<Vec<LockName>>;

    /// Removes the entry of an attempt, of whatever client, as if it had released or left; the next
    /// one in line is served. Its owner is told at once, as [`LossSignal`](crate::LossSignal) has
    /// it: a holder by [`LossReason::EntryGone`](crate::LossReason::EntryGone), a waiter by
    /// [`Error::PlaceLost`](crate::Error::PlaceLost). Answers whether there was such an entry.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) and the like; calling it again is safe.
    ///
    /// # Cancel safety
    ///
    /// lock-core may drop the future half-way. A request that was sent may then act.
    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool>;

    /// Reads the store's [token floor](TokenFloor).
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect); [`Error::Unsupported`](crate::Error::Unsupported) if the store
    /// keeps none.
    ///
    /// # Cancel safety
    ///
    /// lock-core may drop the future half-way. That must leave nothing behind.
    async fn token_floor(&self) -> Result<TokenFloor> {
        Err(unsupported("keep a token floor"))
    }

    /// Raises the token floor in one atomic step of the store, unless it is as high: every entry that
    /// is made after it counts from it, of whatever client, whenever that connected. lock-core ends
    /// those that were made [before](Self::below_token_floor). `above` is at most
    /// [`Guarantees::greatest_floor`].
    ///
    /// # Errors
    ///
    /// As [`token_floor`](Self::token_floor); calling it again is safe.
    ///
    /// # Cancel safety
    ///
    /// lock-core may drop the future half-way. The floor is raised then, or is not.
    async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        let _ = above;
        Err(unsupported("keep a token floor"))
    }

    /// The attempts, of whatever client, that hold with a token at or below the floor, or wait and
    /// would be granted with one; those of a name in the order of their places. The default finds the
    /// holders, those whose token the store has lost among them; it is for stores that make the token
    /// with the grant. `floor` is what [`raise_token_floor`](Self::raise_token_floor) answered.
    ///
    /// lock-core asks and [revokes](Self::revoke) until there are none, for 30 s at most. For that to
    /// end, a token at or below the floor goes to no other attempt: [`adopt`](Self::adopt) and
    /// [`Lease::detach`] refuse it in the step in which they would give it.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    ///
    /// lock-core may drop the future half-way. That must leave nothing behind.
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

    /// Ends the client's sessions: every lock that is still held is free, and later calls answer
    /// [`Error::Closed`](crate::Error::Closed). Returns when the store has confirmed.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) if the store did not confirm; what was
    /// held is then free after its TTL.
    ///
    /// # Cancel safety
    ///
    /// lock-core drops the future after 5 s. What is still held then ends with its TTL.
    async fn close(&self) -> Result<()>;
}

/// What a store granted.
#[async_trait]
pub trait Lease: Any + Debug + Send + Sync {
    /// The grant's fencing token; after [`try_upgrade`](Self::try_upgrade) that of the upgrade.
    fn token(&self) -> FencingToken;

    /// What the store said with the answer that made the entry. Only what is known without another
    /// request. Default: nothing.
    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// Until when the grant holds. The driver extends it from the *send* time of each confirmed
    /// renewal, and loses it as soon as the store says that the grant is gone.
    fn validity(&self) -> &Validity;

    /// Turns an exclusive grant into a shared one that keeps its place in the queue: readers that
    /// wait right behind it may enter, and no writer gets in between. Doing it twice does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) if the grant is over,
    /// [`Error::Unavailable`](crate::Error::Unavailable) if the store did not answer. Only called
    /// where [`Guarantees::kinds`] has shared locks.
    ///
    /// # Cancel safety
    ///
    /// lock-core polls the future to its end.
    async fn downgrade(&self) -> Result<()> {
        Err(unsupported("downgrade a lock"))
    }

    /// Turns a shared grant into an exclusive one, with a new, greater token, if nobody else holds
    /// the lock or waits for it; changes nothing and answers `false` otherwise. Never waits, so two
    /// holders that try it cannot block each other.
    ///
    /// # Errors
    ///
    /// As [`downgrade`](Self::downgrade).
    ///
    /// # Cancel safety
    ///
    /// lock-core polls the future to its end.
    async fn try_upgrade(&self) -> Result<bool> {
        Err(unsupported("upgrade a lock"))
    }

    /// Says a new value to everybody who observes the election that the holder leads.
    ///
    /// # Errors
    ///
    /// As [`downgrade`](Self::downgrade). Only called where [`Guarantees::kinds`] has elections.
    ///
    /// # Cancel safety
    ///
    /// lock-core polls the future to its end.
    async fn publish(&self, value: &[u8]) -> Result<()> {
        let _ = value;
        Err(unsupported("publish a value"))
    }

    /// Leaves an exclusive grant to whoever [adopts](DistributedLock::adopt) it: takes its entry away
    /// from this attempt, and lets it live for one more TTL, whatever becomes of this client and its
    /// sessions. Token and place in the queue stay. Answers what `adopt` finds the entry by, in at most
    /// 200 bytes.
    ///
    /// The grant's [`Validity`] has ended before this is called, so it is not renewed any more. After an
    /// error, lock-core calls [`release`](Self::release): that removes the entry if it is still this
    /// attempt's.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) with the reason,
    /// [`Error::Lost`](crate::Error::Lost) also if the token is at or below the
    /// [floor](DistributedLock::token_floor), and as [`downgrade`](Self::downgrade).
    ///
    /// # Cancel safety
    ///
    /// lock-core polls the future to its end.
    async fn detach(&self) -> Result<String> {
        Err(unsupported("leave a lock to another process"))
    }

    /// Renews the grant for one TTL now, whatever its term.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) if the grant is over,
    /// [`Error::Unavailable`](crate::Error::Unavailable) if the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// lock-core polls the future to its end.
    async fn renew(&self) -> Result<()>;

    /// Whether the entry of a grant that is not renewed any more ends by itself within a TTL,
    /// whatever becomes of the client. lock-core gives nothing back then after
    /// [`LossReason::Expired`](crate::LossReason::Expired), so that a client that loses thousands
    /// of locks in an outage does not send thousands of requests after it.
    ///
    /// Where entries live by a session, the answer is no, and [`release`](Self::release) returns at
    /// once when the session has ended. Default: no.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Gives the lock back: removes this attempt's entry and nothing else. Tries again until the
    /// store has confirmed, or the entry has gone by itself, also with its session. "Not mine"
    /// means released. After a loss of many, lock-core calls it for all of them at the same time.
    ///
    /// # Errors
    ///
    /// What made further tries useless; the entry then ends with its TTL.
    ///
    /// # Cancel safety
    ///
    /// lock-core polls the future to its end.
    async fn release(&self) -> Result<()>;
}
