//! One connection to one server.

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::{join, join_all, join3, try_join};
use redis::{
    Cmd, ErrorKind,
    ProtocolVersion::{RESP2, RESP3},
    PushInfo, RedisError, RedisResult, ServerErrorKind, Value, cmd,
};
use tokio::time::timeout;

use crate::{
    config::{Address, Mode},
    wire::{
        data::Data,
        dial::{Dial, Opened},
        hello,
        lua::{self, Lua},
        peer::Peer,
        sentinel::Place,
    },
};

/// The most requests that wait for the socket. Further callers wait to hand theirs over.
const BUFFER: usize = 1024;
/// Number of steps in which a caller's time limit is counted.
const STEPS: u32 = 4;
/// Number of steps after which a request fails, even if others are answered.
const MOST_STEPS: u32 = 3 * STEPS;

/// The receiver of a connection's pushes.
pub(crate) type OnPush = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// Makes connections to one server, or to the primary of a service.
#[derive(Debug)]
pub(crate) struct Connector {
    dial: Dial,
    pub(crate) place: Place,
    mode: Mode,
    channel: String,
}

/// A connection that is ready: server known, channel subscribed.
#[derive(Debug)]
pub(crate) struct Connection {
    opened: Opened,
    /// The server.
    pub(crate) address: Address,
    /// The server's data.
    pub(crate) data: Data,
    /// Number of answered requests.
    answers: AtomicU64,
    /// Number of this connection among the client's connections, from 1.
    pub(crate) number: u64,
    /// The server's name for this connection, if known.
    pub(crate) peer: Option<Peer>,
}

impl Connector {
    /// A connector of a client whose pushes come on this channel.
    pub(crate) fn new(dial: Dial, place: Place, mode: Mode, channel: String) -> Self {
        Self { dial, place, mode, channel }
    }

    /// Makes a connection and lets the server end the `previous` one. So no request that is still
    /// on its way there takes effect after a request on the new one.
    ///
    /// # Errors
    ///
    /// The reason why there is no connection.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub(crate) async fn connect(
        &self,
        number: u64,
        previous: Option<&Peer>,
        on_push: OnPush,
    ) -> RedisResult<Connection> {
        let attempt = async {
            let address = self.place.find().await?;
            match self.connect_to(&address, number, previous, &on_push).await {
                Err(error) if !crate::error::is_login_refused(&error) => {
                    let Some(other) = self.place.find_other(&address).await else {
                        return Err(error);
                    };
                    self.connect_to(&other, number, previous, &on_push).await
                }
                connected => connected,
            }
        };
        timeout(self.dial.limit, attempt).await.unwrap_or_else(|_| Err(timed_out()))
    }

    async fn connect_to(
        &self,
        address: &Address,
        number: u64,
        previous: Option<&Peer>,
        on_push: &OnPush,
    ) -> RedisResult<Connection> {
        let opened = self.open(address, on_push.clone()).await?;
        let (address, answers) = (address.clone(), AtomicU64::default());
        let data = Data::read(&address, None);
        let connection = Connection { opened, address, data, answers, number, peer: None };
        self.prepare(connection, previous).await
    }

    /// Pushes need RESP3.
    async fn open(&self, address: &Address, on_push: OnPush) -> RedisResult<Opened> {
        let options = self
            .dial
            .options()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(BUFFER);
        if self.mode == Mode::Simple {
            return self.dial.open(address, RESP2, options).await;
        }
        let pushing = options.set_push_sender(move |info| {
            on_push(info);
            Ok::<(), Infallible>(())
        });
        match self.dial.open(address, RESP3, pushing).await {
            // The server's text may show the password.
            Err(error) if crate::error::lacks_resp3(&error) => Err(crate::error::no_pushes()),
            opened => opened,
        }
    }

    async fn prepare(
        &self,
        mut connection: Connection,
        previous: Option<&Peer>,
    ) -> RedisResult<Connection> {
        let in_cluster = matches!(self.place, Place::Member(_));
        connection.check(self.mode, in_cluster).await?;
        connection.data = connection.own_data().await;
        if connection.data.is_replica && matches!(self.place, Place::Sentinel(_)) {
            return Err(crate::error::not_the_primary(&connection.address));
        }
        if self.mode == Mode::Queue {
            connection.can_push(self.channel.as_bytes()).await?;
        }
        connection.peer = connection.own_peer().await;
        if let Some(previous) = previous {
            connection.kill(previous).await?;
        }
        Ok(connection)
    }

    /// Makes another connection to the server of a node's connection, for one request at a time.
    ///
    /// # Errors
    ///
    /// The reason why there is no connection.
    pub(crate) async fn spare(&self, of: &Connection) -> RedisResult<Connection> {
        let attempt = async {
            let options =
                self.dial.options().set_connection_timeout(None).set_response_timeout(None);
            let opened = self.dial.open(&of.address, RESP2, options).await?;
            let (address, data, number) = (of.address.clone(), of.data.clone(), of.number);
            let answers = AtomicU64::default();
            let mut spare =
                Connection { opened, address, data, answers, number, peer: None };
            // In one flight.
            let (data, peer) = join(spare.own_data(), spare.own_peer()).await;
            if data.is_of_another_server_than(&of.data) {
                let why = format!("another server answers at {} now", of.address);
                return Err(io::Error::new(io::ErrorKind::ConnectionReset, why).into());
            }
            (spare.data, spare.peer) = (data, peer);
            Ok(spare)
        };
        timeout(self.dial.limit, attempt).await.unwrap_or_else(|_| Err(timed_out()))
    }
}

impl Connection {
    /// Sends one command and waits for its answer. If the server lacks the command's script, sends
    /// the script and the command again.
    ///
    /// # Errors
    ///
    /// The client library's error; a timeout if the server was silent for `limit`, or answered only
    /// others for three times as long.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped, the command may or may not be sent. If it is, then before every
    /// later one.
    pub(crate) async fn call(&self, command: &Cmd, limit: Duration) -> RedisResult<Value> {
        let lacks_script = ErrorKind::Server(ServerErrorKind::NoScript);
        let call = async {
            let answer = self.send(command).await;
            let lacks = answer.as_ref().is_err_and(|error| error.kind() == lacks_script);
            let Some(script) = lacks.then(|| lua::called(command)).flatten() else { return answer };
            let load = script.load();
            // In one flight.
            let (loaded, answer) = join(self.send(&load), self.send(command)).await;
            loaded.and(answer)
        };
        self.patiently(limit, call).await
    }

    /// Same as [`call`](Self::call), and waits for replicas in the same flight. Returns also how many
    /// of them have all writes of this connection. Nothing else may use the connection meanwhile.
    /// `asking`: same as [`call_asking`](Self::call_asking).
    ///
    /// # Errors
    ///
    /// Same as [`call`](Self::call).
    pub(crate) async fn call_and_wait(
        &self,
        command: &Cmd,
        replicas: u32,
        asking: bool,
        limit: Duration,
    ) -> RedisResult<(Value, u32)> {
        let mut wait = cmd("WAIT");
        wait.arg(replicas).arg(u64::try_from((limit / 2).as_millis()).unwrap_or(u64::MAX));
        let ask = cmd("ASKING");
        let both = async || {
            // In one flight, in this order.
            let asked = async { if asking { self.send(&ask).await.map(drop) } else { Ok(()) } };
            let (asked, answer, had) = join3(asked, self.send(command), self.send(&wait)).await;
            asked?;
            answer.and_then(|answer| Ok((answer, redis::from_redis_value(had?)?)))
        };
        let lacks_script = ErrorKind::Server(ServerErrorKind::NoScript);
        let call = async {
            let answer = both().await;
            let lacks = answer.as_ref().is_err_and(|error| error.kind() == lacks_script);
            let Some(script) = lacks.then(|| lua::called(command)).flatten() else { return answer };
            self.send(&script.load()).await?;
            both().await
        };
        self.patiently(limit, call).await
    }

    /// Number of answered requests.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Asks which data the server has. It may be forbidden.
    async fn own_data(&self) -> Data {
        let answer = self.send(cmd("INFO").arg("replication")).await;
        Data::read(&self.address, answer.ok().as_ref())
    }

    /// Asks how the server calls this connection.
    async fn own_peer(&self) -> Option<Peer> {
        self.send(&Peer::question()).await.ok().as_ref().and_then(Peer::read)
    }

    /// Lets the server end another connection, if it may be asked to.
    ///
    /// # Errors
    ///
    /// The client library's error if this connection is broken.
    pub(crate) async fn kill(&self, peer: &Peer) -> RedisResult<()> {
        match self.send(&peer.kill()).await {
            Err(error) if crate::error::is_broken(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits in steps. Gives up after [`STEPS`] steps in a row without any answer, or
    /// [`MOST_STEPS`] in all. Answers come in the order of the requests, so one behind many others
    /// is late, not lost. The same is true after this process stood still: a step that took too
    /// long counts as one.
    async fn patiently<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        let mut call = pin!(call);
        let (mut heard, mut silent) = (self.answers.load(Ordering::Relaxed), 0);
        for _ in 0..MOST_STEPS {
            if let Ok(answer) = timeout(limit / STEPS, &mut call).await {
                return answer;
            }
            let before = std::mem::replace(&mut heard, self.answers.load(Ordering::Relaxed));
            silent = if heard == before { silent + 1 } else { 0 };
            if silent == STEPS {
                break;
            }
        }
        Err(timed_out())
    }

    /// Subscribes to a channel, or unsubscribes. Doing it twice changes nothing. It fails, and may be
    /// dropped, as [`call`](Self::call).
    pub(crate) async fn listen(
        &self,
        channel: &[u8],
        listen: bool,
        limit: Duration,
    ) -> RedisResult<()> {
        let change = self.subscribe(channel, listen);
        timeout(limit, change).await.unwrap_or_else(|_| Err(timed_out()))
    }

    /// Subscribes to a channel, then sends a command, as [`call`](Self::call) does. Each change after
    /// the answer is pushed.
    ///
    /// # Errors
    ///
    /// The first error of both.
    pub(crate) async fn listen_and_call(
        &self,
        channel: &[u8],
        command: &Cmd,
        limit: Duration,
    ) -> RedisResult<Value> {
        let listen = self.listen(channel, true, limit);
        // In one flight, in this order.
        let (listens, answer) = join(listen, self.call(command, limit)).await;
        listens.and(answer)
    }

    async fn subscribe(&self, channel: &[u8], listen: bool) -> RedisResult<()> {
        let mut redis = self.opened.redis.clone();
        match listen {
            true => redis.subscribe(channel).await,
            false => redis.unsubscribe(channel).await,
        }
    }

    /// Subscribes to the channel of pushes, and sends an empty one: without the right to send them,
    /// each hand-over would wait for a renewal.
    async fn can_push(&self, channel: &[u8]) -> RedisResult<()> {
        let mut empty = cmd("PUBLISH");
        empty.arg(channel).arg("");
        // In one flight.
        try_join(self.subscribe(channel, true), self.send(&empty)).await.map(drop)
    }

    /// Sends one command to a node of a cluster to which its slot is being moved. Fails, and may be
    /// dropped, as [`call`](Self::call).
    pub(crate) async fn call_asking(&self, command: &Cmd, limit: Duration) -> RedisResult<Value> {
        let mut both = redis::pipe();
        both.cmd("ASKING").ignore().add_command(command.clone());
        let lacks_script = ErrorKind::Server(ServerErrorKind::NoScript);
        let ask = async || {
            let answers = self.opened.redis.clone().send_packed_commands(&both, 1, 1).await?;
            self.answers.fetch_add(1, Ordering::Relaxed);
            answers.into_iter().next().unwrap_or(Value::Nil).extract_error()
        };
        let call = async {
            let answer = ask().await;
            let lacks = answer.as_ref().is_err_and(|error| error.kind() == lacks_script);
            let Some(script) = lacks.then(|| lua::called(command)).flatten() else { return answer };
            self.send(&script.load()).await?;
            ask().await
        };
        self.patiently(limit, call).await
    }

    async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        // A clone is cheap (two counters), and the library needs one per call.
        let answer = self.opened.redis.clone().send_packed_command(command).await?;
        self.answers.fetch_add(1, Ordering::Relaxed);
        answer.extract_error()
    }

    /// Refuses a server that cannot keep locks. Loads the scripts of an uncontended lock unless the
    /// server has them. Other scripts are loaded when they are called first.
    async fn check(&self, mode: Mode, in_cluster: bool) -> RedisResult<()> {
        let scripts = lua::usual(mode);
        let mut exist = cmd("SCRIPT");
        exist.arg("EXISTS").arg(&scripts.map(Lua::hash));
        let hello = cmd("HELLO");
        let (hello, known) = join(self.send(&hello), self.send(&exist)).await;
        // HELLO may be forbidden.
        if let Ok(hello) = hello {
            if !in_cluster && hello::is_of_a_cluster(&hello) {
                return Err(crate::error::cluster());
            }
            if let Some(version) = hello::too_old(&hello) {
                return Err(crate::error::too_old(&version));
            }
        }
        let known: Vec<bool> = redis::from_redis_value(known?)?;
        let missing = scripts.into_iter().zip(known).filter(|(_, known)| !known);
        let load: Vec<_> = missing.map(|(script, _)| script.load()).collect();
        let answers = join_all(load.iter().map(|load| self.send(load))).await;
        answers.into_iter().collect::<RedisResult<Vec<_>>>().map(drop)
    }
}

fn timed_out() -> RedisError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}
