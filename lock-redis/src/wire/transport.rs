//! The transport settings of a client that the caller gives.

use std::{fmt, time::Duration};

use redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo,
    RedisResult, io::tcp::TcpSettings,
};

/// The settings of a connection, except host, port, login and database.
#[derive(Clone, Default)]
pub(crate) struct Transport {
    /// TLS or a Unix socket; `None` for plain TCP.
    addr: Option<ConnectionAddr>,
    tcp: TcpSettings,
    /// The options on which a connection is based.
    pub(crate) options: AsyncConnectionConfig,
    /// The same for connections to sentinels: a provider of passwords is not for both.
    pub(crate) sentinel_options: AsyncConnectionConfig,
}

impl Transport {
    /// Returns the transport of a client.
    pub(crate) fn of(info: &ConnectionInfo) -> Self {
        let plain = matches!(info.addr(), ConnectionAddr::Tcp(..));
        Self {
            addr: (!plain).then(|| info.addr().clone()),
            tcp: info.tcp_settings().clone(),
            ..Self::default()
        }
    }

    /// Returns the transport to sentinels.
    pub(super) fn of_sentinels(&self) -> Self {
        Self { options: self.sentinel_options.clone(), ..self.clone() }
    }

    /// Whether connections are plain TCP, which the caller may encrypt.
    pub(crate) fn is_plain(&self) -> bool {
        self.addr.is_none()
    }

    /// Returns the host and the port of a client. For a Unix socket: its path, and port 0.
    pub(crate) fn host_of(info: &ConnectionInfo) -> (String, u16) {
        match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host.clone(), *port)
            }
            addr => (addr.to_string(), 0),
        }
    }

    /// Returns the settings of a connection for locks to this host.
    pub(super) fn info(
        &self,
        host: String,
        port: u16,
        login: RedisConnectionInfo,
    ) -> RedisResult<ConnectionInfo> {
        // Without linger, closing a broken connection also discards data that is not sent yet.
        let tcp = self.tcp.clone().set_nodelay(true).set_linger_time(Duration::ZERO);
        let addr = match self.addr.clone() {
            None => ConnectionAddr::Tcp(host, port),
            Some(ConnectionAddr::TcpTls { insecure, tls_params, .. }) => {
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            Some(addr) => addr,
        };
        Ok(addr.into_connection_info()?.set_redis_settings(login).set_tcp_settings(tcp))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client library's settings show the password.
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}
