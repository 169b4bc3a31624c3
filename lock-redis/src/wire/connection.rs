//! The connections of a client to one server.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures_util::future::{join, join_all, join3, try_join};
use redis::{
    ProtocolVersion::{RESP2, RESP3},
    PushInfo, RedisResult, Value, cmd,
};
use tokio::time::timeout;

use crate::{
    config::Address,
    error,
    wire::{
        call::Call,
        client_id::ClientId,
        data::ID,
        dial::{Dial, Opened},
        hello,
        info::Info,
        lua::Lua,
        pipe::Pipe,
        sentinel::Server,
        waited::Waited,
    },
};

/// The most requests that wait for the socket. Further callers wait to hand theirs over.
const BUFFER: usize = 1024;

/// The receiver of a connection's pushes.
pub(crate) type OnPush = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// Makes connections to one server, or to the primary of a service.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) dial: Dial,
    pub(crate) server: Server,
    /// The scripts of an uncontended lock.
    pub(crate) scripts: [&'static Lua; 3],
    /// The channel of the client's pushes, if it wants any.
    pub(crate) channel: Option<String>,
}

/// A connection that is ready: server known, channel subscribed.
#[derive(Debug)]
pub(crate) struct Connection {
    pipe: Pipe,
    /// For calls that replicas must have: renewals, which do not wait behind others, and the rest.
    waited: Option<[Waited; 2]>,
    /// The server.
    pub(crate) address: Address,
    /// What the server said about itself.
    pub(crate) info: Info,
    /// Number of this connection among the client's connections, from 1.
    pub(crate) number: u64,
    /// The server's names for it, as far as they are known.
    pub(crate) peers: Vec<ClientId>,
}

impl Connector {
    /// Makes a connection and lets the server end the `previous` one. So no request that is still
    /// on its way there takes effect after a request on the new one.
    pub(crate) async fn connect(
        &self,
        number: u64,
        previous: &[ClientId],
        on_push: OnPush,
    ) -> RedisResult<Connection> {
        let attempt = async {
            let address = self.server.find().await?;
            match Box::pin(self.connect_to(&address, number, previous, &on_push)).await {
                Err(error) if !error::is_login_refused(&error) => {
                    let Some(other) = self.server.find_other(&address).await else {
                        return Err(error);
                    };
                    Box::pin(self.connect_to(&other, number, previous, &on_push)).await
                }
                connected => connected,
            }
        };
        let limit = self.dial.limit;
        timeout(limit, attempt).await.unwrap_or_else(|_| Err(error::silent(limit)))
    }

    async fn connect_to(
        &self,
        address: &Address,
        number: u64,
        previous: &[ClientId],
        on_push: &OnPush,
    ) -> RedisResult<Connection> {
        let pipe = Pipe::new(self.open(address, on_push.clone()).await?);
        self.check(&pipe).await?;
        let info = pipe.info().await?;
        // Redis 5 has no HELLO.
        if let Some(version) = info.too_old() {
            return Err(error::too_old(version));
        }
        if info.is_replica() && matches!(self.server, Server::Sentinel(_)) {
            return Err(error::not_the_primary(address));
        }
        if let Some(channel) = &self.channel {
            // Subscribes, and sends an empty push: without the right to send them, each hand-over
            // would wait for a renewal.
            let empty = cmd("PUBLISH").arg(channel).arg("").take();
            // In one flight.
            try_join(pipe.listen(channel.as_bytes(), true), pipe.send(&empty)).await?;
        }
        let peers = pipe.peer().await.into_iter().collect();
        pipe.kill(previous).await?;
        let address = address.clone();
        let mut connection = Connection { pipe, waited: None, address, info, number, peers };
        if self.dial.config.wait_replicas > 0 {
            let (renewals, others) =
                Box::pin(try_join(self.open_waited(&connection), self.open_waited(&connection)))
                    .await?;
            connection.peers.extend([renewals.1, others.1].into_iter().flatten());
            connection.waited = Some([renewals.0, others.0]);
        }
        Ok(connection)
    }

    /// Pushes need RESP3.
    async fn open(&self, address: &Address, on_push: OnPush) -> RedisResult<Opened> {
        let options = self.dial.options().set_pipeline_buffer_size(BUFFER);
        if self.channel.is_none() {
            return self.dial.open(address, RESP2, options).await;
        }
        let pushing = options.set_push_sender(move |info| {
            on_push(info);
            Ok::<(), Infallible>(())
        });
        match self.dial.open(address, RESP3, pushing).await {
            // The server's text may show the password.
            Err(error) if error::lacks_resp3(&error) => Err(error::no_pushes()),
            opened => opened,
        }
    }

    /// Opens another connection to the same server, for calls that replicas must have.
    async fn open_waited(&self, of: &Connection) -> RedisResult<(Waited, Option<ClientId>)> {
        let opened = self.dial.open(&of.address, RESP2, self.dial.options()).await?;
        let pipe = Pipe::new(opened);
        // Refused if this user may not wait for replicas.
        let wait = cmd("WAIT").arg(0).arg(0).take();
        // In one flight.
        let (info, peer, may_wait) =
            Box::pin(join3(pipe.info(), pipe.peer(), pipe.send(&wait))).await;
        let info = info?;
        // A replica refuses `WAIT` to everybody. That it is one is told by `takes_writes`, or by
        // `MOVED`.
        if !info.is_replica() {
            may_wait?;
        }
        let (id, other) = (info.field(ID), of.info.field(ID));
        if id.is_some() && other.is_some() && id != other {
            let why = format!("another server answers at {} now", of.address);
            return Err(error::reset(&why));
        }
        Ok((Waited::start(pipe, self.dial.config.wait_replicas), peer))
    }

    /// Refuses a server that cannot keep locks. Loads the scripts of an uncontended lock unless the
    /// server has them. Other scripts are loaded when they are called first.
    async fn check(&self, pipe: &Pipe) -> RedisResult<()> {
        let in_cluster = matches!(self.server, Server::Member(_));
        let exist = cmd("SCRIPT").arg("EXISTS").arg(&self.scripts.map(Lua::hash)).take();
        // The protocol that it has already: Redis 6.0 does not answer without one.
        let hello = cmd("HELLO").arg(if self.channel.is_none() { 2 } else { 3 }).take();
        let (hello, known) = join(pipe.send(&hello), pipe.send(&exist)).await;
        // HELLO may be forbidden.
        if let Ok(hello) = hello {
            if !in_cluster && hello::is_of_a_cluster(&hello) {
                return Err(error::cluster());
            }
            if let Some(version) = hello::too_old(&hello) {
                return Err(error::too_old(&version));
            }
        }
        let known: Vec<bool> = redis::from_redis_value(known?)?;
        let missing = self.scripts.into_iter().zip(known).filter(|(_, known)| !known);
        let load: Vec<_> = missing.map(|(script, _)| script.load()).collect();
        let answers = join_all(load.iter().map(|load| pipe.send(load))).await;
        answers.into_iter().collect::<RedisResult<Vec<_>>>().map(drop)
    }
}

impl Connection {
    /// Sends a call and waits for its answer. Returns also how many replicas have its change, if
    /// that counts.
    pub(crate) async fn call(
        &self,
        call: &Call,
        limit: Duration,
    ) -> RedisResult<(Value, Option<u32>)> {
        match &self.waited {
            Some([renewals, others]) if call.may_gain() => {
                let waited = if call.renews() { renewals } else { others };
                let (value, had) = waited.call(call, limit).await?;
                Ok((value, Some(had)))
            }
            _ => Ok((self.pipe.call(call, limit).await?, None)),
        }
    }

    /// Sends a call, without a time limit. A server that lacks its script gets the script. Then the
    /// call is sent `again`, or is refused.
    pub(crate) async fn ask(&self, call: &Call, again: bool) -> RedisResult<Value> {
        if again {
            return self.pipe.ask(call).await;
        }
        let answer = self.pipe.send(&call.command).await;
        if let Some(script) = call.lacked(&answer) {
            self.pipe.send(&script.load()).await?;
        }
        answer
    }

    /// Number of answered requests.
    pub(crate) fn answers(&self) -> u64 {
        self.pipe.answers()
    }

    /// Subscribes to a channel, or unsubscribes. Doing it twice changes nothing. It fails, and may be
    /// dropped, as [`call`](Self::call).
    pub(crate) async fn listen(
        &self,
        channel: &[u8],
        listen: bool,
        limit: Duration,
    ) -> RedisResult<()> {
        let change = self.pipe.listen(channel, listen);
        timeout(limit, change).await.unwrap_or_else(|_| Err(error::silent(limit)))
    }

    /// Subscribes to a channel, then sends a call, as [`Pipe::call`] does. Each change after the
    /// answer is pushed.
    pub(crate) async fn listen_and_call(
        &self,
        channel: &[u8],
        call: &Call,
        limit: Duration,
    ) -> RedisResult<Value> {
        // In one flight, in this order.
        let listen = self.listen(channel, true, limit);
        let (listens, answer) = join(listen, self.pipe.call(call, limit)).await;
        listens.and(answer)
    }
}
