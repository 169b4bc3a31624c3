//! Opens a connection to a server, and logs in.

use std::{io, time::Duration};

use lock_core::{
    Encryption,
    keep::tls::{self, Handshake},
};
use redis::{
    AsyncConnectionConfig, Client, ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult,
    aio::{MultiplexedConnection, PubSub},
};
use tokio::{io::AsyncReadExt, net::TcpStream, task::JoinSet, time::timeout};

use crate::{
    config::{Address, RedisConfig},
    error,
};

/// How long a server may take to say why it has ended a connection.
const GREETING: Duration = Duration::from_millis(300);

/// The way to the servers of a deployment: transport and login are the same for all.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    pub(super) config: RedisConfig,
    /// What stands before the names of the login's options.
    of: &'static str,
    /// Time limit of making a connection.
    pub(crate) limit: Duration,
}

/// A connection that is logged in. It is closed when this and all clones of `redis` are dropped.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) redis: MultiplexedConnection,
    /// The task that moves data, if the client library has not started it. It ends when this is
    /// dropped: a broken connection must not wait for its last answers.
    _task: JoinSet<()>,
}

impl Dial {
    /// Time limit of making a connection, if none is configured.
    const LIMIT: Duration = Duration::from_secs(3);
    /// Time limit of one sentinel, at most: the others are to be heard as well.
    pub(super) const SENTINEL: Duration = Duration::from_millis(1500);

    /// The way that a configuration describes.
    pub(crate) fn new(config: &RedisConfig) -> lock_core::Result<Self> {
        let limit = config.timeouts.connect.unwrap_or(Self::LIMIT);
        Self { config: config.clone(), of: "", limit }.checked()
    }

    /// The way to the sentinels of a configuration, which have a login of their own.
    pub(crate) fn of_sentinels(config: &RedisConfig) -> lock_core::Result<Self> {
        let limit = config.timeouts.connect.unwrap_or(Self::LIMIT).min(Self::SENTINEL);
        let config = RedisConfig {
            transport: config.transport.of_sentinels(),
            user: config.sentinel_user.clone(),
            password: config.sentinel_password.clone(),
            database: 0,
            ..config.clone()
        };
        Self { config, of: "sentinel_", limit }.checked()
    }

    /// Fails before anything is sent.
    fn checked(self) -> lock_core::Result<Self> {
        tls::check(&self.config.tls)?;
        let login = self.login(ProtocolVersion::RESP3)?;
        let host = "127.0.0.1".to_owned();
        let client = self.config.transport.info(host, 1, login).and_then(Client::open);
        client.map(|_| self).map_err(|error| error::convert("connect", error))
    }

    fn encrypts(&self) -> bool {
        self.config.tls.mode != Encryption::Off
    }

    /// Returns the options on which a connection is based. Its callers have time limits of their own.
    pub(crate) fn options(&self) -> AsyncConnectionConfig {
        let options = self.config.transport.options.clone();
        options.set_connection_timeout(None).set_response_timeout(None)
    }

    /// Connects to a server and logs in, with certificates and login as they are now. Has no time
    /// limit of its own. `options`: see [`options`](Self::options).
    pub(crate) async fn open(
        &self,
        address: &Address,
        protocol: ProtocolVersion,
        options: AsyncConnectionConfig,
    ) -> RedisResult<Opened> {
        let login = self.login(protocol).map_err(of_option)?;
        if self.encrypts() {
            let stream = self.encrypted(address).await?;
            let opened = MultiplexedConnection::new_with_config(&login, stream, options);
            let (redis, driver) =
                Box::pin(opened).await.map_err(|failed| after_tls(address, failed))?;
            return Ok(Opened { redis, _task: JoinSet::from_iter([driver]) });
        }
        let client = self.client(address, login)?;
        match Box::pin(client.get_multiplexed_async_connection_with_config(&options)).await {
            Ok(redis) => Ok(Opened { redis, _task: JoinSet::new() }),
            Err(failed) => Err(self.explained(address, failed).await),
        }
    }

    /// Same as [`open`](Self::open), with RESP2, for pushes alone.
    pub(crate) async fn open_for_pushes(&self, address: &Address) -> RedisResult<PubSub> {
        let login = self.login(ProtocolVersion::RESP2).map_err(of_option)?;
        if self.encrypts() {
            let stream = self.encrypted(address).await?;
            let opened = Box::pin(PubSub::new(&login, stream)).await;
            return opened.map_err(|failed| after_tls(address, failed));
        }
        match Box::pin(self.client(address, login)?.get_async_pubsub()).await {
            Ok(opened) => Ok(opened),
            Err(failed) => Err(self.explained(address, failed).await),
        }
    }

    /// Finds out why a server has ended a connection that began without TLS.
    async fn explained(&self, address: &Address, failed: RedisError) -> RedisError {
        if !failed.is_connection_dropped() || failed.is_connection_refusal() {
            return failed;
        }
        let reason = match self.config.transport.is_plain() {
            true => timeout(GREETING, greeting(address)).await.ok().flatten(),
            false => None,
        };
        reason.unwrap_or_else(|| perhaps_encrypted(address, failed))
    }

    fn client(&self, address: &Address, login: RedisConnectionInfo) -> RedisResult<Client> {
        Client::open(self.config.transport.info(address.host.clone(), address.port, login)?)
    }

    async fn encrypted(&self, address: &Address) -> RedisResult<tls::Stream> {
        let handshake = Handshake::new(&self.config.tls, &address.host).map_err(of_option)?;
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        stream.set_nodelay(true)?;
        // Without linger, closing a broken connection also discards data that is not sent yet.
        stream.set_zero_linger()?;
        // A server without TLS may wait for the end of what it takes for a command.
        let handshake = timeout(self.limit * 9 / 10, handshake.with(stream)).await;
        let silent = || io::Error::new(io::ErrorKind::TimedOut, "no answer");
        handshake.unwrap_or_else(|_| Err(silent())).map_err(|failed| {
            let text = failed.to_string();
            let hint = match ["corrupt message", "eof", "no answer"]
                .iter()
                .any(|it| text.contains(it))
            {
                true => {
                    "; does the server speak TLS on this port, and has it room for more clients?"
                }
                false => "",
            };
            let what = format!("the TLS handshake with {address} failed: {text}{hint}");
            match is_of_certificates(&text) {
                true => error::of_certificate(what),
                false => io::Error::new(failed.kind(), what).into(),
            }
        })
    }

    /// The login, with user and password as they are now.
    fn login(&self, protocol: ProtocolVersion) -> lock_core::Result<RedisConnectionInfo> {
        let RedisConfig { user, password, database, .. } = &self.config;
        let login = RedisConnectionInfo::default().set_db(*database).set_protocol(protocol);
        let mut login = login.set_lib_name("distlock", env!("CARGO_PKG_VERSION"));
        if let Some(user) = user {
            login = login.set_username(user.read().map_err(|error| self.named(error))?);
        }
        if let Some(password) = password {
            login = login.set_password(password.read().map_err(|error| self.named(error))?);
        }
        Ok(login)
    }

    /// The error about a part of the login, with the name of its option.
    fn named(&self, mut error: lock_core::Error) -> lock_core::Error {
        if let lock_core::Error::InvalidOption { option, .. } = &mut error {
            option.insert_str(0, self.of);
        }
        error
    }
}

fn of_option(error: lock_core::Error) -> RedisError {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string()).into()
}

/// Whether a text of the TLS library is about a certificate: the server's, or this client's in an
/// alert of the server.
fn is_of_certificates(text: &str) -> bool {
    let alert = text.split_once("fatal alert: ").map(|(_, alert)| alert).unwrap_or_default();
    text.contains("invalid peer certificate")
        || alert.contains("Certificate")
        || alert.contains("UnknownCA")
}

/// A server that demands a certificate says so only after the handshake.
fn after_tls(address: &Address, failed: RedisError) -> RedisError {
    match is_of_certificates(&failed.to_string()) {
        true => {
            error::of_certificate(format!("{address} refuses the client's certificate: {failed}"))
        }
        false => failed,
    }
}

/// Listens to what a server says before it is asked anything: one that is full, or protected, says
/// so and ends the connection. A login that arrives after that has taken the words away.
async fn greeting(address: &Address) -> Option<RedisError> {
    let mut stream = TcpStream::connect((address.host.as_str(), address.port)).await.ok()?;
    let mut greeting = Vec::new();
    while !greeting.ends_with(b"\r\n") && greeting.len() < 4096 {
        if stream.read_buf(&mut greeting).await.ok()? == 0 {
            return None;
        }
    }
    redis::parse_redis_value(&greeting).ok()?.extract_error().err()
}

/// A server that expects TLS ends a connection that begins without it.
fn perhaps_encrypted(address: &Address, failed: RedisError) -> RedisError {
    let what = format!(
        "{address} closed the connection at the login: {failed}; does it expect TLS (tls=verify)?"
    );
    io::Error::new(io::ErrorKind::ConnectionAborted, what).into()
}

#[cfg(test)]
mod tests {
    use lock_core::{StoreUrl, Tls};

    use super::*;

    #[test]
    fn what_asks_for_no_certificate_is_refused() {
        let mut prefer = Tls::default();
        prefer.mode = Encryption::Prefer;
        let error = Dial::new(&RedisConfig::default().tls(prefer)).unwrap_err().to_string();
        assert!(error.contains("off or verify"), "{error}");
    }

    #[test]
    fn the_login_of_a_client_is_not_for_its_sentinels() {
        let client = Client::open("redis://me:secret@h/2?protocol=resp3").unwrap();
        let dial = Dial::of_sentinels(&RedisConfig::from_client(&client)).unwrap();
        let login = dial.login(ProtocolVersion::RESP2).unwrap();
        assert_eq!((login.username(), login.password(), login.db()), (None, None, 0));
        assert_eq!(login.protocol(), ProtocolVersion::RESP2);
    }

    #[test]
    fn an_unreadable_part_of_a_login_names_its_option() {
        type Way = fn(&RedisConfig) -> lock_core::Result<Dial>;
        for (option, way) in [
            ("user_file", Dial::new as Way),
            ("password_file", Dial::new),
            ("sentinel_user_file", Dial::of_sentinels),
            ("sentinel_password_file", Dial::of_sentinels),
        ] {
            let url = format!("redis+sentinel://h/s?{option}=/none/of/it");
            let config = RedisConfig::from_url(&StoreUrl::parse(&url).unwrap()).unwrap();
            let error = way(&config).unwrap_err();
            let lock_core::Error::InvalidOption { option: named, .. } = &error else {
                panic!("{error:?}");
            };
            assert_eq!(named, option);
        }
    }
}
