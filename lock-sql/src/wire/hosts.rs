//! The hosts of one database, what a connection to one can do, and the way there: connections go to
//! the host that takes writes.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{Clock, Instant, Timeouts, keep::poison::lock, trace};
use sqlx::Connection;
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    layout::{dialect::Dialect, row::Rows},
    wire::{
        failure::Failure,
        given_client::Way,
        logins::{Logins, hash},
        turns::Limit,
        verdict::{Origin, judge},
    },
};

/// Time limit for a connection to one of several hosts.
const EACH: Duration = Duration::from_secs(1);
/// How long the other hosts may take to show that they take writes, too, once one does.
const OTHERS: Duration = Duration::from_millis(300);

/// The statements that a session plans once and has planned, by their hashes.
pub(crate) type Plans = HashSet<u64>;

/// The rows of all statements of a script. The inner error is about an answer that makes no sense.
pub(crate) type Fetched = sqlx::Result<sqlx::Result<Rows>>;

/// A connection to a database of one kind.
pub(crate) trait Link: Connection + Sized + 'static {
    const DIALECT: Dialect;

    /// Asks how many commits wait for a standby, where no time limit of the server ends that.
    const HUNG_COMMITS: Option<&str> = None;

    /// What goes before and after each script behind a pooler: its settings, and where it is.
    const POOLED: [&str; 2] = [""; 2];

    /// Makes a connection with the settings that scripts need. Returns it, and where the server's
    /// data comes from, if the server tells.
    fn make(
        options: &Self::Options,
    ) -> impl Future<Output = Result<(Self, Option<Origin>), Failure>> + Send;

    /// Sends a script. Its statements are planned once for this connection, unless `plans` is
    /// `None`: for what is sent seldom, and if the next script may meet another session.
    fn fetch(
        &mut self,
        script: String,
        plans: Option<&mut Plans>,
    ) -> impl Future<Output = Fetched> + Send;
}

/// One host of a database, and the way to it.
pub(crate) struct Host<C: Link> {
    /// Its name and port, for people.
    name: String,
    way: Way<C>,
    pub(super) logins: Logins<C::Options>,
}

/// A connection to a host that takes writes.
pub(super) struct Connected<C> {
    pub(super) connection: C,
    /// Where the server's data comes from, if it tells.
    pub(super) origin: Option<Origin>,
    /// The hash of the options that the host has accepted.
    pub(super) login: u64,
}

impl<C: Link> Host<C> {
    pub(crate) fn new(name: String, way: Way<C>) -> Arc<Self> {
        Arc::new(Self { name, way, logins: Logins::default() })
    }

    /// Whether a login was one with other options than the current ones.
    fn is_former(&self, login: u64) -> bool {
        (self.way)().is_ok_and(|current| hash(&current) != login)
    }

    /// Connects with the options that are current now, and with those that the host accepted last
    /// if it refuses the login. A login that was refused a moment ago is not sent again.
    async fn connect(&self, limit: Duration) -> Result<Connected<C>, Failure> {
        let limit = Limit::new(limit);
        limit.within(self.try_logins(&limit)).await.map_err(Failure::Down)?
    }

    /// Current options that are tried first leave half of the time to the others: a server may
    /// delay a refusal for longer than the limit.
    async fn try_logins(&self, limit: &Limit) -> Result<Connected<C>, Failure> {
        let login = self.logins.begin(|| (self.way)()).await.map_err(Failure::Barred)?;
        let list = login.options().map_err(|why| Failure::Login(why.into()))?;
        let mut part = (list.len() == 3).then(|| limit.half());
        let mut last = Failure::down("no login to try");
        for options in list {
            let connected = match part.take() {
                Some(part) => Clock::Boot.timeout(part, C::make(&options)).await,
                None => Some(C::make(&options).await),
            };
            last = match connected {
                Some(Ok((connection, origin))) => {
                    login.accepted(&options);
                    return Ok(Connected { connection, origin, login: hash(&options) });
                }
                Some(Err(failure)) => failure,
                None => {
                    login.unanswered(limit.whole);
                    continue;
                }
            };
            let Failure::Login(why) = &last else { break };
            login.refused(&options, why.to_string());
        }
        Err(last)
    }
}

/// The hosts of one database. Of several, one takes writes at a time.
pub(crate) struct Hosts<C: Link> {
    hosts: Vec<Arc<Host<C>>>,
    pub(super) timeouts: Timeouts,
    /// Whether the host is a pooler.
    pub(super) is_pooled: bool,
    writer: Mutex<Writer>,
    /// Locked while the hosts are asked which of them takes writes.
    choosing: tokio::sync::Mutex<()>,
    /// Rings when another server has taken over.
    pub(super) moved: Arc<Notify>,
    /// What was told last of hosts that refuse for good.
    told: Mutex<Vec<String>>,
}

/// Which host takes writes, as far as this client knows.
#[derive(Clone, Copy, Debug, Default)]
struct Writer {
    primary: Option<usize>,
    /// The one that was found last.
    last: Option<usize>,
    origin: Option<Origin>,
    /// When it was seen last that another one has taken over.
    moved: Option<Instant>,
}

impl Writer {
    /// Whether this is another server than the last one, as far as both tell their origins.
    fn is_other(&self, origin: Option<Origin>) -> bool {
        origin.is_some() && self.origin.is_some() && origin != self.origin
    }
}

impl<C: Link> Hosts<C> {
    /// The only host there is.
    pub(crate) fn one(way: Way<C>) -> Self {
        Self::several(vec![Host::new(String::new(), way)], Timeouts::default())
    }

    /// The hosts of one deployment.
    pub(crate) fn several(hosts: Vec<Arc<Host<C>>>, timeouts: Timeouts) -> Self {
        Self {
            hosts,
            timeouts,
            is_pooled: false,
            writer: Mutex::default(),
            choosing: tokio::sync::Mutex::default(),
            moved: Arc::default(),
            told: Mutex::default(),
        }
    }

    /// The message of a script: behind a pooler, nothing is left of what others have set.
    pub(super) fn message<'a>(&self, script: &'a str) -> Cow<'a, str> {
        let [before, after] = C::POOLED;
        match self.is_pooled {
            true => Cow::Owned(format!("{before}{script}{after}")),
            false => Cow::Borrowed(script),
        }
    }

    /// When it was seen last that another server has taken over. A connection that was made when
    /// this was another time leads to the former one.
    pub(super) fn moved_at(&self) -> Option<Instant> {
        lock(&self.writer).moved
    }

    /// Makes a connection, and returns it with the time of the last move. `limit` counts where the
    /// configuration names no other one.
    pub(super) async fn make(
        &self,
        limit: Duration,
    ) -> Result<(Connected<C>, Option<Instant>), Failure> {
        if let [host] = self.hosts.as_slice() {
            let limit = self.timeouts.connect.unwrap_or(limit);
            let connected = host.connect(limit).await?;
            let moved = self.found(0, connected.origin);
            return Ok((connected, moved));
        }
        let each = self.timeouts.connect.unwrap_or(EACH);
        if let Some((host, moved)) = self.primary() {
            match host.connect(each).await {
                Ok(connected) if !lock(&self.writer).is_other(connected.origin) => {
                    return Ok((connected, moved));
                }
                // It fails, or its name leads to another server now.
                _ => self.doubt(moved),
            }
        }
        let _alone = self.choosing.lock().await;
        // Another connection may have found it meanwhile.
        if let Some((host, moved)) = self.primary() {
            return Ok((host.connect(each).await?, moved));
        }
        let (at, connected) = self.choose(each).await?;
        let moved = self.found(at, connected.origin);
        Ok((connected, moved))
    }

    /// Makes the next connection ask all hosts, if there are several, unless another one has taken
    /// over meanwhile.
    pub(super) fn doubt(&self, moved: Option<Instant>) {
        let mut writer = lock(&self.writer);
        if writer.moved == moved && self.hosts.len() > 1 {
            writer.primary = None;
        }
    }

    /// Whether the host has other options now than this login had.
    pub(super) fn is_former(&self, login: u64) -> bool {
        self.primary().is_some_and(|(host, _)| host.is_former(login))
    }

    /// The host that takes writes, if it is known, and the time of the last move.
    pub(super) fn primary(&self) -> Option<(&Host<C>, Option<Instant>)> {
        let writer = *lock(&self.writer);
        Some((self.hosts.get(writer.primary?)?, writer.moved))
    }

    /// Asks all hosts at once which of them takes writes.
    async fn choose(&self, each: Duration) -> Result<(usize, Connected<C>), Failure> {
        let mut probes = JoinSet::new();
        for (at, host) in self.hosts.iter().enumerate() {
            let host = host.clone();
            probes.spawn(async move { (at, host.connect(each).await) });
        }
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        let mut end = Clock::Boot.now() + each * 2;
        while let Some(probed) =
            Clock::Boot.timeout(end.since(Clock::Boot.now()), probes.join_next()).await.flatten()
        {
            match probed {
                Ok((at, Ok(made))) => {
                    end = end.min(Clock::Boot.now() + OTHERS);
                    found.push((at, made));
                }
                Ok((at, Err(failure))) => failed.push((self.hosts[at].name.clone(), failure)),
                Err(_) => {}
            }
        }
        self.tell(&failed);
        let takers: Vec<_> =
            found.iter().map(|(at, made)| (&*self.hosts[*at].name, made.origin)).collect();
        let known = lock(&self.writer).origin;
        judge(C::DIALECT, known, &takers, failed)?;
        found.pop().ok_or_else(|| Failure::down("no host takes writes"))
    }

    /// Tells of hosts that refuse for good, once: the others may hide that for long.
    fn tell(&self, failed: &[(String, Failure)]) {
        let barred = failed.iter().filter(|(_, failure)| failure.is_final());
        let barred: Vec<_> =
            barred.map(|(name, failure)| format!("{name}: {}", failure.why())).collect();
        let mut told = lock(&self.told);
        for why in barred.iter().filter(|why| !told.contains(why)) {
            trace::caution(C::DIALECT.store(), why);
        }
        *told = barred;
    }

    /// Notes which host takes writes. Returns the time of the last move. By its origin, a server
    /// that has taken over is another one also behind the same name.
    pub(super) fn found(&self, at: usize, origin: Option<Origin>) -> Option<Instant> {
        let mut writer = lock(&self.writer);
        if writer.is_other(origin) || writer.last.is_some_and(|last| last != at) {
            writer.moved = Some(Clock::Boot.now());
            self.moved.notify_one();
        }
        *writer = Writer {
            primary: Some(at),
            last: Some(at),
            origin: origin.or(writer.origin),
            ..*writer
        };
        writer.moved
    }
}
