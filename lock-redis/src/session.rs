//! One client: its connection, kept alive, and what it holds and waits for.

mod janitor;
mod reconnect;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use lock_core::{Attempt, Clock, Effect, Error, Instant, Reach, Result, trace};
use redis::{Cmd, PushInfo, PushKind, RedisError, Value, cmd};
use tokio::{
    sync::{Notify, Semaphore, SemaphorePermit, watch},
    time::{sleep, timeout},
};
use uuid::Uuid;

use self::janitor::Janitor;
use crate::{
    answer::{self, Push},
    config::{Mode, RedisConfig},
    connection::{Connection, Connector, Peer},
    entry::Entry,
    error::{self, STORE},
    key::client_key,
    observe::Observers,
    round::{self, Book},
    ticket::Ticket,
};

/// The clock of all deadlines.
pub(crate) const CLOCK: Clock = Clock::Boot;
/// Pauses between attempts to connect grow up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long `close` insists.
const CLOSE_LIMIT: Duration = Duration::from_secs(4);

/// How many acquires and looks are in flight. More wait in this process, in order: what is urgent
/// waits for those, here and at the server, and on a busy machine mostly here. Enough for 25,000
/// per second at 2.5 ms.
const TURNS: usize = 64;
const CANCELLED: &str = "cancelled before it was sent";

/// The permission to send; `None` if none is needed.
type Turn<'a> = Option<SemaphorePermit<'a>>;

/// What a request waits for before it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lane {
    /// Nothing: renewals, conversions, releases, revokes.
    First,
    /// A turn: acquires and looks.
    Turn,
}

/// What a client is to the server: one connection at a time, one renewal round.
pub(crate) struct Session {
    /// 16 hex digits that start every ticket of this client.
    pub(crate) id: String,
    pub(crate) mode: Mode,
    pub(crate) database: i64,
    connector: Connector,
    link: watch::Sender<Link>,
    pub(crate) reach: Reach,
    connections: AtomicU64,
    book: Mutex<Book>,
    janitor: Janitor,
    /// How many more requests may be in flight that are not urgent.
    turns: Semaphore,
    pub(crate) observers: Observers,
    /// Rings when the book has something due earlier than before, or the session ends.
    pub(crate) due: Arc<Notify>,
}

/// The present connection, or why there is none.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Up(Connection),
    /// Why, and what the server called the connection before.
    Down(Arc<RedisError>, Option<Peer>),
    Closed,
}

/// Why a request has no answer, for the caller to try again or not.
#[derive(Debug)]
pub(crate) enum Failure {
    Closed,
    /// Not sent: there is no connection now.
    Down(Arc<RedisError>),
    /// Sent perhaps, and perhaps executed.
    Lost(RedisError),
    /// The server refused it.
    Refused(RedisError),
}

impl Session {
    /// Connects, once.
    ///
    /// # Errors
    ///
    /// Why it was not possible, within 4 s.
    pub(crate) async fn start(config: &RedisConfig) -> Result<Arc<Self>> {
        let id = Uuid::new_v4().simple().to_string()[..Ticket::CLIENT].to_owned();
        let connect = |error| error::convert("connect", error);
        let connector = Connector::new(config, format!("distlock:{id}")).map_err(connect)?;
        let unused = std::io::Error::from(std::io::ErrorKind::NotConnected);
        let session = Arc::new(Self {
            id,
            mode: config.mode,
            database: config.database,
            connector,
            link: watch::Sender::new(Link::Down(Arc::new(unused.into()), None)),
            reach: Reach::default(),
            connections: AtomicU64::new(0),
            book: Mutex::new(Book::default()),
            janitor: Janitor::default(),
            turns: Semaphore::new(TURNS),
            observers: Observers::default(),
            due: Arc::new(Notify::new()),
        });
        session.connect(None).await.map_err(connect)?;
        tokio::spawn(reconnect::keep_connected(Arc::downgrade(&session), session.link.subscribe()));
        tokio::spawn(round::run(Arc::downgrade(&session), session.due.clone()));
        Ok(session)
    }

    /// The ticket of an attempt of this client.
    pub(crate) fn ticket(&self, attempt: Uuid) -> Ticket {
        match self.mode {
            Mode::Queue => Ticket::queued(&self.id, attempt),
            Mode::Simple => Ticket::simple(attempt),
        }
    }

    /// What is held and waited for. Never held across an await.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while it holds this.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the entry renewed, kept alive and told about pushes from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub(crate) fn enter(&self, entry: &Arc<Entry>) -> Result<()> {
        if self.book().enter(entry)? {
            self.due.notify_one();
        }
        Ok(())
    }

    pub(crate) fn forget(&self, entry: &Entry) {
        self.book().forget(entry);
    }

    /// Sends a command on the present connection.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    ///
    /// # Cancel safety
    ///
    /// As [`Connection::call`].
    pub(crate) async fn call(&self, command: &Cmd, limit: Duration) -> Result<Value, Failure> {
        let connection = self.connection()?;
        let answer = connection.call(command, limit).await;
        self.judge(&connection, answer)
    }

    /// The present connection.
    ///
    /// # Errors
    ///
    /// [`Failure::Down`] or [`Failure::Closed`].
    pub(crate) fn connection(&self) -> Result<Connection, Failure> {
        match &*self.link.borrow() {
            Link::Up(connection) => Ok(connection.clone()),
            Link::Down(error, _) => Err(Failure::Down(error.clone())),
            Link::Closed => Err(Failure::Closed),
        }
    }

    /// What an answer means for its caller, and for the connection.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub(crate) fn judge(
        &self,
        connection: &Connection,
        answer: Result<Value, RedisError>,
    ) -> Result<Value, Failure> {
        match answer {
            Ok(value) => Ok(value),
            Err(error) if error::is_broken(&error) => {
                self.lose(connection.number, error.clone());
                Err(Failure::Lost(error))
            }
            Err(error) => {
                if error::is_replica(&error) {
                    // It is a replica now. The address may lead to the new primary.
                    self.lose(connection.number, error.clone());
                }
                Err(Failure::Refused(error))
            }
        }
    }

    /// Sends a command that may be executed twice, again and again until it is answered. Answers
    /// also when the answered request was sent.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if nothing was answered until the deadline, or if the attempt was
    /// cancelled while there was no connection; its effect says whether the command may have been
    /// executed. What the server says to a command that it refuses for good.
    pub(crate) async fn insist(
        &self,
        lane: Lane,
        op: &'static str,
        command: &Cmd,
        limit: Duration,
        deadline: Instant,
        attempt: Option<&Attempt>,
    ) -> Result<(Instant, Value)> {
        self.insist_and_tell(lane, op, command, limit, deadline, attempt).await.1
    }

    /// As [`insist`](Self::insist). Tells also whether a request before the last one may have been
    /// executed, whatever became of that one.
    pub(crate) async fn insist_and_tell(
        &self,
        lane: Lane,
        op: &'static str,
        command: &Cmd,
        limit: Duration,
        mut deadline: Instant,
        attempt: Option<&Attempt>,
    ) -> (Effect, Result<(Instant, Value)>) {
        let mut effect = Effect::None;
        loop {
            let asked = CLOCK.now();
            let Some(turn) = self.turn(lane, attempt).await else {
                return (effect, Err(error::unavailable(op, effect, CANCELLED)));
            };
            let sent = CLOCK.now();
            // A burst of this process is no outage.
            deadline = deadline + sent.since(asked);
            let answer = self.call(command, limit).await;
            drop(turn);
            let error = match answer {
                Ok(value) => return (effect, Ok((sent, value))),
                Err(Failure::Closed) => return (effect, Err(error::closed())),
                Err(Failure::Refused(e)) if !error::is_passing(&e) => {
                    return (effect, Err(error::of_command(op, command, e)));
                }
                Err(Failure::Refused(e)) => {
                    if let Some(attempt) = attempt {
                        attempt.put_off(&e);
                    }
                    sleep(FIRST_PAUSE * 5).await;
                    e
                }
                Err(Failure::Lost(e)) => {
                    effect = Effect::Unknown;
                    e
                }
                Err(Failure::Down(e)) => RedisError::clone(&e),
            };
            let left = deadline.since(CLOCK.now());
            if left.is_zero() || !self.until_up(left, attempt).await {
                return (effect, Err(error::unavailable(op, effect, error)));
            }
        }
    }

    /// Waits for a turn; `None` if the attempt is cancelled.
    pub(crate) async fn turn(&self, lane: Lane, attempt: Option<&Attempt>) -> Option<Turn<'_>> {
        let turn = async {
            match lane {
                Lane::First => None,
                // It is never closed.
                Lane::Turn => self.turns.acquire().await.ok(),
            }
        };
        match attempt {
            None => Some(turn.await),
            Some(attempt) => tokio::select! {
                biased;
                turn = turn => Some(turn),
                () = attempt.cancelled() => None,
            },
        }
    }

    /// Waits for a connection; false if there is none in time, or the attempt is cancelled.
    async fn until_up(&self, limit: Duration, attempt: Option<&Attempt>) -> bool {
        let mut link = self.link.subscribe();
        let up = timeout(limit, link.wait_for(|link| !matches!(link, Link::Down(..))));
        match attempt {
            None => up.await.is_ok(),
            Some(attempt) => tokio::select! {
                up = up => up.is_ok(),
                () = attempt.cancelled() => false,
            },
        }
    }

    /// Where to see that the connection has changed.
    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    /// Gives up a connection, unless that was done already.
    fn lose(&self, number: u64, error: RedisError) {
        self.link.send_if_modified(|link| match link {
            Link::Up(connection) if connection.number == number => {
                trace::disconnected(STORE, &error);
                self.reach.broke(&error);
                *link = Link::Down(Arc::new(error), connection.peer.take());
                true
            }
            _ => false,
        });
    }

    /// Runs on the connection's own task, in order with the answers.
    fn pushed(self: &Arc<Self>, number: u64, info: PushInfo) {
        match info.kind {
            PushKind::Disconnection => {
                let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                self.lose(number, error.into());
            }
            PushKind::Message => {
                let [Value::BulkString(channel), Value::BulkString(payload)] = &info.data[..]
                else {
                    return;
                };
                if self.observers.tell(channel, payload) {
                    return;
                }
                let Some((push, attempt)) = answer::push(payload) else { return };
                let entry = self.book().find(attempt);
                match (entry, push) {
                    (Some(entry), Push::Granted(token)) => entry.pushed(token),
                    (Some(entry), Push::Gone) => entry.gone(),
                    (None, _) => {}
                }
            }
            _ => {}
        }
    }

    /// Gives everything back and ends.
    ///
    /// # Errors
    ///
    /// What was not given back, and why.
    pub(crate) async fn close(self: &Arc<Self>) -> Result<()> {
        let deadline = CLOCK.now() + CLOSE_LIMIT;
        let entries = self.book().close();
        entries.iter().for_each(|entry| entry.closed());
        let released = stream::iter(entries)
            .map(|entry| async move { self.withdraw(&entry, deadline).await })
            .buffer_unordered(256)
            .fold(Ok(()), |all, one| async { all.and(one) })
            .await;
        let mut delete = cmd("DEL");
        delete.arg(client_key(&self.id));
        let gone = self.insist(Lane::First, "close", &delete, LONGEST_PAUSE, deadline, None).await;
        self.link.send_replace(Link::Closed);
        self.due.notify_one();
        match released.and(gone.map(drop)) {
            // Closed before, perhaps by somebody else at the same time.
            Err(Error::Closed { .. }) => Ok(()),
            result => result,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.due.notify_one();
        let Link::Up(connection) = self.link.send_replace(Link::Closed) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut delete = cmd("DEL");
        delete.arg(client_key(&self.id));
        // Nobody waits for it; the description expires by itself as well.
        runtime.spawn(async move { drop(connection.call(&delete, LONGEST_PAUSE).await) });
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}
