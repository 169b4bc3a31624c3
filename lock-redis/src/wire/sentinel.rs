//! Asks sentinels for the primary of their service.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::join, stream::FuturesUnordered};
use redis::{AsyncConnectionConfig, RedisError, RedisResult, cmd, make_extension_error};
use tokio::time::{sleep, timeout};

use super::dial::{Dial, Opened};
use crate::{
    config::{Address, Mode},
    error::is_denied,
};

/// Time limit of one sentinel.
const LIMIT: Duration = Duration::from_millis(1500);
/// After the first answer, the other sentinels have this long: some may know a newer primary.
const OTHERS: Duration = Duration::from_millis(50);

/// The sentinels of a service.
#[derive(Debug)]
pub(crate) struct Sentinels {
    dial: Dial,
    pub(crate) addresses: Vec<Address>,
    pub(crate) service: String,
}

/// A primary, and the number of the failover that made it the primary.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Named {
    epoch: u64,
    primary: Address,
    /// Number of replicas, dead ones included.
    replicas: usize,
}

impl Sentinels {
    pub(crate) fn new(dial: Dial, addresses: Vec<Address>, service: String) -> Self {
        Self { dial, addresses, service }
    }

    /// Returns the primary that the newest answer names. Asks all sentinels at the same time.
    ///
    /// # Errors
    ///
    /// The last error, if no sentinel names a primary.
    pub(crate) async fn primary(&self) -> RedisResult<Address> {
        self.newest().await.map(|named| named.primary)
    }

    /// Returns how many replicas the sentinels know, dead ones included.
    ///
    /// # Errors
    ///
    /// Same as [`primary`](Self::primary).
    pub(crate) async fn replicas(&self) -> RedisResult<usize> {
        self.newest().await.map(|named| named.replicas)
    }

    async fn newest(&self) -> RedisResult<Named> {
        let mut asked: FuturesUnordered<_> =
            self.addresses.iter().map(|address| self.ask(address)).collect();
        let mut newest = None::<Named>;
        let mut failed = None;
        let mut late = std::pin::pin!(sleep(Duration::MAX));
        loop {
            tokio::select! {
                answer = asked.next() => match answer {
                    Some(Ok(named)) => {
                        if newest.is_none() {
                            late.set(sleep(OTHERS));
                        }
                        newest = newest.max(Some(named));
                    }
                    Some(Err(error)) => failed = Some(error),
                    None => break,
                },
                () = &mut late => break,
            }
        }
        match (newest, failed) {
            (Some(named), _) => Ok(named),
            (None, Some(error)) => Err(error),
            (None, None) => Err(error("there are no sentinels to ask".to_owned())),
        }
    }

    async fn ask(&self, address: &Address) -> RedisResult<Named> {
        let question = async {
            let mut sentinel = self.open(address, Mode::Simple, self.dial.options()).await?;
            let about = |what: &str| cmd("SENTINEL").arg(what).arg(&self.service).to_owned();
            let (master, current) = (about("MASTER"), about("GET-MASTER-ADDR-BY-NAME"));
            let mut second = sentinel.redis.clone();
            // In one flight, in this order: the address is as new as the epoch at least.
            let (fields, at) =
                join(master.query_async(&mut sentinel.redis), current.query_async(&mut second))
                    .await;
            RedisResult::Ok((fields?, at?))
        };
        let (fields, at): (HashMap<String, String>, Option<(String, u16)>) =
            match timeout(LIMIT, question).await {
                Ok(Ok(answers)) => answers,
                Ok(Err(failed)) => return Err(self.explained(address, failed)),
                Err(_) => return Err(error(format!("the sentinel {address} does not answer"))),
            };
        Named::read(&fields, at)
            .ok_or_else(|| error(format!("the sentinel {address} names no address: {fields:?}")))
    }

    /// Connects to one sentinel.
    ///
    /// # Errors
    ///
    /// The client library's error.
    pub(crate) async fn open(
        &self,
        address: &Address,
        mode: Mode,
        options: AsyncConnectionConfig,
    ) -> RedisResult<Opened> {
        let options = options.set_connection_timeout(None).set_response_timeout(None);
        self.dial.open(address, mode, options).await
    }

    /// Names the sentinel in an error that does not.
    fn explained(&self, address: &Address, failed: RedisError) -> RedisError {
        let service = &self.service;
        if failed.detail().is_some_and(|said| said.contains("No such master")) {
            return error(format!("the sentinel {address} knows no service {service:?}"));
        }
        if is_denied(&failed) {
            let detail = failed.detail().unwrap_or_default();
            let why = format!("the sentinel {address} refuses the login (sentinel_user): {detail}");
            let code = failed.code().unwrap_or("WRONGPASS").to_owned();
            return make_extension_error(code, Some(why));
        }
        match failed.is_io_error() || failed.is_connection_dropped() || failed.is_timeout() {
            true => error(format!("the sentinel {address}: {failed}")),
            false => failed,
        }
    }
}

impl Named {
    /// Reads the fields of the service, and the primary's address. That is not the address among the
    /// fields: a sentinel that leads a failover shows the old primary there, with the new epoch,
    /// until it has told the last replica.
    fn read(fields: &HashMap<String, String>, at: Option<(String, u16)>) -> Option<Self> {
        let field = |name: &str| fields.get(name);
        let (host, port) = at?;
        let primary = Address::new(host, port);
        let replicas = field("num-slaves").and_then(|n| n.parse().ok()).unwrap_or_default();
        Some(Self { epoch: field("config-epoch")?.parse().ok()?, primary, replicas })
    }
}

fn error(what: String) -> RedisError {
    io::Error::new(io::ErrorKind::NotFound, what).into()
}

/// How the server of a connection is found.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// It is always the same one.
    Fixed(Address),
    /// It is the one that the sentinels name.
    Sentinel(Arc<Sentinels>),
    /// It is always this node of a cluster.
    Member(Address),
}

impl Place {
    /// Finds the server.
    ///
    /// # Errors
    ///
    /// Same as [`Sentinels::primary`].
    pub(crate) async fn find(&self) -> RedisResult<Address> {
        match self {
            Self::Fixed(address) | Self::Member(address) => Ok(address.clone()),
            Self::Sentinel(sentinels) => sentinels.primary().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_answer_counts() {
        let named = |epoch: &str, port: u16| {
            let fields = [("ip", "10.0.0.9"), ("port", "99"), ("config-epoch", epoch)];
            let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let at = Some(("10.0.0.1".to_owned(), port));
            Named::read(&fields.into_iter().collect(), at).unwrap()
        };
        let newest = [named("2", 7), named("10", 8), named("9", 9)].into_iter().max();
        assert_eq!(newest.unwrap().primary, Address::new("10.0.0.1", 8));
    }
}
