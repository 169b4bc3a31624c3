//! The connection to etcd: one member at a time, and the next one when it fails.
//!
//! The client crate can spread requests over all members, but it keeps dead ones in rotation: with
//! one of three down, a third of all requests fails for as long as it is down. So here each client
//! has one member, and we choose it, unless the caller has given its own client.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, Instant, Reach, keep::backoff::Backoff, trace};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    error::{Failure, FailureKind, STORE},
    wire::{
        dial::{Endpoints, Source},
        lanes::{Lanes, Room, unsent},
        member::{Answer, Health, Limits, Member},
        revisions::{Revisions, Stamped},
        tls_error,
    },
};

/// The pauses between tries: from 10 ms to the longest.
pub(crate) const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), LONGEST_PAUSE);

/// The longest pause between tries. It is the only pause before a retry of work that another task
/// repairs.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Shortest time between two logins for refused watches.
pub(crate) const WATCH_LOGINS: Duration = Duration::from_secs(1);

/// All members, and the one in use.
pub(crate) struct Connection {
    pub(super) endpoints: Endpoints,
    pub(crate) source: Source,
    pub(crate) limits: Limits,
    pub(super) member: watch::Sender<Arc<Member>>,
    /// When the last round of dialing ended, and why it put no connection into use, if it did not.
    pub(super) dialing: tokio::sync::Mutex<Option<(Instant, Failure)>>,
    /// When a new login was last requested because a watch was refused.
    pub(super) watch_login: tokio::sync::Mutex<Option<Instant>>,
    pub(super) down: AtomicBool,
    pub(crate) reach: Reach,
    pub(crate) health: Health,
    /// Whether no read-only transaction is sent: the servers may crash at one.
    pub(crate) reads_alone: bool,
    /// Cancelled when the client is closed: nothing is tried again, watched or observed.
    pub(crate) closed: CancellationToken,
    pub(crate) lanes: Lanes,
    pub(crate) revisions: Revisions,
}

/// The authority behind an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Word {
    /// It needs a leader: a member without one does not answer.
    Leader,
    /// The member in use answers alone, even if it is cut off from all others.
    Member,
}

/// Whether to stop sending a request again. Not generic: so that there is one copy of what sends.
pub(crate) type GiveUp<'a> = &'a (dyn Fn() -> bool + Sync);

impl Connection {
    /// Connects to the first member that answers `probe`.
    /// Returns the error of the last member, or of the first one that refused the login. It is
    /// [`Denied`](FailureKind::Denied) if no member's certificate was accepted, or the client's by
    /// none: trying again changes nothing. Later connections are tried again all the same, since
    /// the files may be replaced.
    pub(crate) async fn open<T, F: Future<Output = Answer<T>>>(
        source: Source,
        limits: Limits,
        probe: impl Fn(Arc<Member>) -> F,
    ) -> Result<(Self, T), Failure> {
        let endpoints = Endpoints::shuffled(&source.endpoints());
        let to_try = endpoints.to_try();
        let (limit, request) = (limits.of_each(to_try.len()), limits.request);
        let (mut failure, mut certificates) =
            (Failure::senseless("no endpoints"), !to_try.is_empty());
        for endpoint in to_try {
            let attempt = async {
                let member = source.dial(&endpoint, 0, true, limit.min(request)).await?;
                let member = Arc::new(member);
                let answer = Clock::Boot.timeout(request, probe(member.clone())).await;
                Ok((member, answer.ok_or_else(|| Failure::silent(request))??))
            };
            match Clock::Boot.timeout(limit, attempt).await {
                Some(Ok((member, answer))) => {
                    return Ok((Self::new(endpoints, source, limits, member), answer));
                }
                Some(Err(error)) => {
                    failure = source.explain(error, &endpoint, limit.min(request)).await;
                }
                None => failure = Failure::silent(limit),
            }
            if !failure.kind.is_passing() {
                return Err(failure);
            }
            certificates &= tls_error::is_about_a_certificate(&failure.to_string());
            endpoints.failed(&endpoint);
        }
        Err(if certificates { failure.denied() } else { failure })
    }

    fn new(endpoints: Endpoints, source: Source, limits: Limits, member: Arc<Member>) -> Self {
        Self {
            endpoints,
            source,
            limits,
            member: watch::Sender::new(member),
            dialing: tokio::sync::Mutex::new(None),
            watch_login: tokio::sync::Mutex::new(None),
            down: AtomicBool::new(false),
            reach: Reach::default(),
            health: Health::new(),
            reads_alone: false,
            closed: CancellationToken::new(),
            lanes: Lanes::new(),
            revisions: Revisions::default(),
        }
    }

    /// Returns the member in use.
    pub(crate) fn member(&self) -> Arc<Member> {
        self.member.borrow().clone()
    }

    /// Returns a receiver that changes when another member, or another connection to the same one,
    /// is in use from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Member>> {
        self.member.subscribe()
    }

    /// Returns until when a caller that asked at `asked` continues: until the store was silent for
    /// a TTL.
    pub(crate) fn patience(&self, asked: Instant, ttl: Duration) -> Instant {
        asked.max(self.health.heard()) + ttl
    }

    /// Sends a request that only reads, when there is room for a look; otherwise as
    /// [`call`](Self::call).
    pub(crate) async fn look<T: Stamped, F: Future<Output = Answer<T>>>(
        &self,
        word: Word,
        send: impl Fn(&Member) -> F,
    ) -> Result<T, Failure> {
        let _room = self.lanes.look().await;
        self.call(word, send).await
    }

    /// Sends a request, and again only if its login had expired: it was not carried out. The next
    /// login may have been under way when all became invalid, but not the one after that.
    pub(crate) async fn call<T: Stamped, F: Future<Output = Answer<T>>>(
        &self,
        word: Word,
        send: impl Fn(&Member) -> F,
    ) -> Result<T, Failure> {
        let mut logins = 0..2;
        loop {
            let room = self.lanes.request().await;
            match self.send(word, room, &send).await {
                Err(failure)
                    if failure.kind == FailureKind::LoggedOut && logins.next().is_some() => {}
                result => return result,
            }
        }
    }

    async fn send<T: Stamped, F: Future<Output = Answer<T>>>(
        &self,
        word: Word,
        room: Option<Room<'_>>,
        send: impl FnOnce(&Member) -> F,
    ) -> Result<T, Failure> {
        let (member, seen) = (self.member(), self.revisions.mark());
        // Boxed here and elsewhere: the crate's futures are large, and each level would copy them.
        let answer = self.wait(&member, Box::pin(send(&member))).await;
        drop(room);
        let failure = match answer {
            Ok(Ok(answer)) => {
                self.works(word);
                if let (Word::Leader, Some(revision)) = (word, answer.revision()) {
                    self.revisions.answered(seen, revision);
                }
                return Ok(answer);
            }
            Ok(Err(error)) => self.judge(member.generation, Failure::of_stream(error)),
            Err(asked) => return Err(Box::pin(self.silent(&member, asked)).await),
        };
        match Box::pin(self.failed(member.generation, &failure)).await {
            // The request was refused: only the login may be in doubt.
            Err(login) if failure.kind == FailureKind::LoggedOut => Err(login.without_effect()),
            _ => Err(failure),
        }
    }

    /// Waits for an answer until the limit is over or the member was left. In the middle of the time
    /// it has a keep-alive sent, whose answer shows that the member lives; if there is no answer, it
    /// returns when that was.
    async fn wait<T>(
        &self,
        member: &Member,
        mut answer: impl Future<Output = T> + Unpin,
    ) -> Result<T, Instant> {
        let mut asked = Instant::default();
        for is_late in [false, true] {
            if is_late {
                asked = Clock::Boot.now();
                self.health.late.notify_one();
            }
            tokio::select! {
                biased;
                answer = &mut answer => return Ok(answer),
                () = member.left.cancelled() => break,
                // On tokio's clock, since there may be thousands a second. After a suspend of the
                // machine it ends late by no more than this.
                () = tokio::time::sleep(self.limits.request / 2) => {}
            }
        }
        Err(asked)
    }

    /// Handles a request without an answer. A member that has answered others since `asked` is slow,
    /// and another one is hardly faster: a client that moves costs it a login, its streams and lists.
    async fn silent(&self, member: &Member, asked: Instant) -> Failure {
        if member.left.is_cancelled() {
            return Failure::new(FailureKind::Silent, "the member was left before it answered");
        }
        let failure = Failure::silent(self.limits.request);
        if self.health.lived() < asked || self.health.is_stuck(self.limits.request) {
            drop(self.failed(member.generation, &failure).await);
        }
        failure
    }

    /// Sends an idempotent request that needs the leader until the answer is definite or `give_up`
    /// returns true. Sets `in_doubt` if a sending was not answered, and may still be carried out.
    pub(crate) async fn insist<T: Stamped, F: Future<Output = Answer<T>>>(
        &self,
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
        send: impl Fn(&Member) -> F,
    ) -> Result<T, Failure> {
        let give_up = || give_up() || self.closed.is_cancelled();
        let mut pause = BACKOFF;
        loop {
            let mut room = self.lanes.try_request();
            if room.is_none() {
                room = self.lanes.request().await;
                if give_up() {
                    return Err(unsent("it waited for others until it was too late"));
                }
            }
            let result = self.send(Word::Leader, room, &send).await;
            *in_doubt |= result.as_ref().is_err_and(|failure| failure.kind.is_ambiguous());
            let may_pass = result.as_ref().is_err_and(|failure| failure.kind.is_passing());
            if !may_pass || give_up() {
                return result;
            }
            Box::pin(pause.wait()).await;
        }
    }

    /// Notes that a request was answered.
    pub(crate) fn works(&self, word: Word) {
        if word == Word::Leader {
            self.health.answered();
        }
        if self.down.load(Ordering::Relaxed) && self.down.swap(false, Ordering::Relaxed) {
            trace::connected(STORE);
            self.reach.works();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::{
        config::EtcdConfig,
        wire::member::{ANSWER_LIMIT, SILENT},
    };

    /// Longer than any test waits.
    const HOUR: Duration = Duration::from_secs(3600);

    async fn connection(etcd: &lock_lab::Etcd, limit: Duration) -> Connection {
        let (source, limits) = (EtcdConfig::new([etcd.addr().to_string()]).source(), limit);
        let probe =
            |member: Arc<Member>| async move { member.client.kv_client().get("a", None).await };
        let opened = Connection::open(source, Limits::new(None, Some(limits)), probe).await;
        opened.unwrap().0
    }

    async fn never_answered(connection: &Connection) -> Failure {
        let call = connection.call(Word::Leader, |_| pending::<Answer<()>>());
        let ended = Clock::Boot.timeout(Duration::from_secs(60), call).await;
        ended.expect("it goes on").unwrap_err()
    }

    #[tokio::test]
    async fn a_slow_answer_does_not_move_a_client_that_gets_others() {
        let etcd = lock_lab::Etcd::builder().in_memory().start().await.unwrap();
        let connection = connection(&etcd, ANSWER_LIMIT).await;
        let keep_alives = async {
            connection.health.late.notified().await;
            loop {
                connection.health.lives();
                Clock::Boot.sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            failure = never_answered(&connection) => assert_eq!(failure.kind, FailureKind::Silent),
            () = keep_alives => {}
        }
        assert_eq!(connection.member().generation, 0);
        never_answered(&connection).await;
        assert_eq!(connection.member().generation, 1, "nothing was answered");
    }

    #[tokio::test]
    async fn a_member_that_answers_nothing_but_keep_alives_is_left() {
        let etcd = lock_lab::Etcd::builder().in_memory().start().await.unwrap();
        let connection = connection(&etcd, Duration::from_millis(500)).await;
        let keep_alives = async {
            loop {
                connection.health.lives();
                Clock::Boot.sleep(Duration::from_millis(10)).await;
            }
        };
        let requests = async {
            while connection.member().generation == 0 {
                never_answered(&connection).await;
            }
        };
        let moved = async {
            tokio::select! {
                () = requests => {}
                () = keep_alives => {}
            }
        };
        let moved = Clock::Boot.timeout(Duration::from_secs(60), moved).await;
        moved.expect("it stays for ever");
    }

    #[tokio::test]
    async fn a_request_on_a_member_that_was_left_ends_at_once() {
        let etcd = lock_lab::Etcd::builder().in_memory().start().await.unwrap();
        let connection = connection(&etcd, HOUR).await;
        let left = async {
            Clock::Boot.sleep(SILENT * 2).await;
            connection.failed(0, &Failure::silent(HOUR)).await.unwrap();
        };
        let (failure, ()) = tokio::join!(never_answered(&connection), left);
        assert!(failure.kind.is_passing() && failure.kind.is_ambiguous());
        assert_eq!(connection.member().generation, 1);
    }
}
