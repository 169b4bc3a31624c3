//! What a client of the caller's says about the way to the server.

use std::{fmt, time::Duration};

use redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo,
    RedisResult, io::tcp::TcpSettings,
};

/// How a connection is made, besides the host, the port, the login and the database.
#[derive(Clone)]
pub(crate) struct Transport {
    /// TLS or a Unix socket; `None` for plain TCP.
    addr: Option<ConnectionAddr>,
    tcp: TcpSettings,
    login: RedisConnectionInfo,
    /// What a connection starts from.
    pub(crate) options: AsyncConnectionConfig,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            addr: None,
            tcp: TcpSettings::default(),
            login: RedisConnectionInfo::default(),
            options: AsyncConnectionConfig::new(),
        }
    }
}

impl Transport {
    /// The transport of a client.
    pub(crate) fn of(info: &ConnectionInfo) -> Self {
        let plain = matches!(info.addr(), ConnectionAddr::Tcp(..));
        Self {
            addr: (!plain).then(|| info.addr().clone()),
            tcp: info.tcp_settings().clone(),
            login: info.redis_settings().clone(),
            ..Self::default()
        }
    }

    /// The host and the port of a client; a Unix socket's path has no port.
    pub(crate) fn host_of(info: &ConnectionInfo) -> (String, u16) {
        match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host.clone(), *port)
            }
            addr => (addr.to_string(), 0),
        }
    }

    /// The login of the client, to be completed.
    pub(super) fn login(&self) -> RedisConnectionInfo {
        self.login.clone()
    }

    /// What a connection for locks to this host is made with.
    ///
    /// # Errors
    ///
    /// What the client library does not like about it.
    pub(super) fn info(
        &self,
        host: String,
        port: u16,
        login: RedisConnectionInfo,
    ) -> RedisResult<ConnectionInfo> {
        // Without linger, closing a broken connection also forgets what it has not sent yet.
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
        let transport = match &self.addr {
            None => "tcp",
            Some(ConnectionAddr::TcpTls { .. }) => "tls",
            Some(_) => "unix",
        };
        f.write_str(transport)
    }
}
