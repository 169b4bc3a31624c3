//! Asks sentinels for the primary of their service.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, future::try_join, stream::FuturesUnordered};
use redis::{ProtocolVersion::RESP2, RedisError, RedisResult, cmd, make_extension_error};
use tokio::time::timeout;

use super::dial::Dial;
use crate::{
    config::Address,
    error::{is_broken, is_login_refused},
};

/// Time limit of one sentinel.
const LIMIT: Duration = Dial::SENTINEL;
/// After each answer, the next sentinel has this long: it may know a newer primary. Only one that is
/// dead or slow makes anything wait for it.
const OTHERS: Duration = Duration::from_millis(300);

/// The sentinels of a service.
#[derive(Debug)]
pub(crate) struct Sentinels {
    pub(crate) dial: Dial,
    pub(crate) addresses: Vec<Address>,
    /// The number of the newest failover that is known.
    epoch: AtomicU64,
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
        Self { dial, addresses, epoch: AtomicU64::new(0), service }
    }

    /// Returns the primary that the newest answer names. Asks all sentinels at the same time.
    pub(crate) async fn primary(&self) -> RedisResult<Address> {
        let named = self.newest(OTHERS).await?;
        match self.is_behind(&named) {
            true => self.primary_of_all().await,
            false => self.accept(named),
        }
    }

    /// Whether a failover is known of which this answer knows nothing.
    fn is_behind(&self, named: &Named) -> bool {
        named.epoch < self.epoch.load(Ordering::Relaxed)
    }

    /// Refuses an answer that is behind: it names a primary that is none any more, and a second
    /// holder may get the lock there.
    fn accept(&self, named: Named) -> RedisResult<Address> {
        if self.is_behind(&named) {
            return Err(error(format!(
                "the sentinels name {} by failover {}, and this client knows of failover {}: they \
                 have not heard of it; if they were set up anew, start the client again",
                named.primary,
                named.epoch,
                self.epoch.load(Ordering::Relaxed)
            )));
        }
        self.epoch.fetch_max(named.epoch, Ordering::Relaxed);
        Ok(named.primary)
    }

    /// Same as [`primary`](Self::primary), with the answer of every sentinel that gives one in time.
    /// During a failover they change their minds one by one.
    async fn primary_of_all(&self) -> RedisResult<Address> {
        self.accept(self.newest(LIMIT).await?)
    }

    /// Returns how many replicas the sentinels know, dead ones included.
    pub(crate) async fn replicas(&self) -> RedisResult<usize> {
        self.newest(OTHERS).await.map(|named| named.replicas)
    }

    /// `others`: how long after an answer the next sentinel may answer.
    async fn newest(&self, others: Duration) -> RedisResult<Named> {
        let mut asked: FuturesUnordered<_> =
            self.addresses.iter().map(|address| self.ask(address)).collect();
        let (mut newest, mut failed, mut wait) = (None::<Named>, None, Duration::MAX);
        while let Ok(Some(answer)) = timeout(wait, asked.next()).await {
            match answer {
                Ok(named) => (newest, wait) = (newest.max(Some(named)), others),
                Err(error) => failed = Some(error),
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
            let mut sentinel = self.dial.open(address, RESP2, self.dial.options()).await?;
            let about = |what: &str| cmd("SENTINEL").arg(what).arg(&self.service).take();
            let (address, master) = (about("GET-MASTER-ADDR-BY-NAME"), about("MASTER"));
            let mut other = sentinel.redis.clone();
            // In one flight.
            try_join(
                address.query_async::<Option<(String, u16)>>(&mut other),
                master.query_async::<HashMap<String, String>>(&mut sentinel.redis),
            )
            .await
        };
        let (primary, fields) = match timeout(LIMIT, question).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(failed)) => return Err(self.explained(address, failed)),
            Err(_) => return Err(error(format!("the sentinel {address} does not answer"))),
        };
        Named::read(primary, &fields)
            .ok_or_else(|| error(format!("the sentinel {address} names no address: {fields:?}")))
    }

    /// Names the sentinel in an error that does not.
    fn explained(&self, address: &Address, failed: RedisError) -> RedisError {
        let service = &self.service;
        if failed.detail().is_some_and(|detail| detail.contains("No such master")) {
            return error(format!("the sentinel {address} knows no service {service:?}"));
        }
        if is_login_refused(&failed) {
            let detail = failed.detail().unwrap_or_default();
            let why = format!("the sentinel {address} refuses the login (sentinel_user): {detail}");
            let code = failed.code().unwrap_or("WRONGPASS").to_owned();
            return make_extension_error(code, Some(why));
        }
        match is_broken(&failed) {
            true => error(format!("the sentinel {address}: {failed}")),
            false => failed,
        }
    }
}

impl Named {
    /// The `fields` name the old primary, with the new epoch, until all replicas follow the new one.
    /// So the address is asked for by itself.
    fn read(primary: Option<(String, u16)>, fields: &HashMap<String, String>) -> Option<Self> {
        let field = |name: &str| fields.get(name);
        let primary = primary.map(|(host, port)| Address::new(host, port))?;
        let replicas = field("num-slaves").and_then(|n| n.parse().ok()).unwrap_or_default();
        Some(Self { epoch: field("config-epoch")?.parse().ok()?, primary, replicas })
    }
}

fn error(what: String) -> RedisError {
    io::Error::new(io::ErrorKind::NotFound, what).into()
}

/// How the server of a connection is found.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    /// It is always the same one.
    Fixed(Address),
    /// It is the one that the sentinels name.
    Sentinel(Arc<Sentinels>),
    /// It is always this node of a cluster.
    Member(Address),
}

impl Server {
    /// Finds the server.
    pub(crate) async fn find(&self) -> RedisResult<Address> {
        match self {
            Self::Fixed(address) | Self::Member(address) => Ok(address.clone()),
            Self::Sentinel(sentinels) => sentinels.primary().await,
        }
    }

    /// Finds another server after this one could not be used: the first sentinel to answer may not
    /// have heard of a failover yet. Returns `None` if there is no other.
    pub(crate) async fn find_other(&self, than: &Address) -> Option<Address> {
        let Self::Sentinel(sentinels) = self else { return None };
        let named = sentinels.primary_of_all().await.ok()?;
        (named != *than).then_some(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_answer_counts() {
        let named = |epoch: &str, port: u16| {
            let fields = HashMap::from([("config-epoch".to_owned(), epoch.to_owned())]);
            Named::read(Some(("10.0.0.1".to_owned(), port)), &fields).unwrap()
        };
        let newest = [named("2", 7), named("10", 8), named("9", 9)].into_iter().max();
        assert_eq!(newest.unwrap().primary, Address::new("10.0.0.1", 8));
    }
}
