//! A way to lock that is not distlock's: a floor, or the usual way.

use std::time::Duration;

use async_trait::async_trait;
use distlock::StoreUrl;
use futures_util::future::BoxFuture;

use super::{Client, Contender};
use crate::{Failure, Kind, Role, Workload};

/// The TTL of a URL that sets none.
const TTL: Duration = Duration::from_secs(15);
/// The most workers that get something of their own each.
pub(crate) const MOST_APART: u32 = 64;
/// The options of a URL with a login that is not in the URL.
const ELSEWHERE: [&str; 4] = ["user_file", "user_env", "password_file", "password_env"];

pub(super) type Opened = Result<Box<dyn Client>, Failure>;
/// Makes a client of one process, for locks with this TTL.
pub(super) type Open = fn(StoreUrl, Duration, Role) -> BoxFuture<'static, Opened>;

/// A way to lock that is not distlock's. It knows exclusive locks alone.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) role: Role,
    /// What each worker has of its own, where not many can have it.
    pub(super) each: Option<&'static str>,
    pub(super) open: Open,
}

/// Reads a URL, if the bare clients can do what it asks for.
pub(super) fn simple(url: &str) -> Result<StoreUrl, Failure> {
    let url = StoreUrl::parse(url)?;
    match obstacle(&url) {
        None => Ok(url),
        Some(what) => Err(format!("no floor and no usual way: they {what}").into()),
    }
}

fn obstacle(url: &StoreUrl) -> Option<&'static str> {
    let (scheme, mut options) = (url.scheme(), url.options());
    if scheme.starts_with("redis+") || scheme == "redlock" {
        Some("know one server alone")
    } else if options.text("tls") == Some("verify")
        || ["etcds", "rediss", "valkeys"].contains(&scheme)
    {
        Some("do not speak TLS (measure with tls=off where you may)")
    } else if ELSEWHERE.into_iter().any(|option| options.text(option).is_some()) {
        Some("need user and password in the URL")
    } else if options.text("failover").is_some() {
        Some("know no failover")
    } else {
        None
    }
}

#[async_trait]
impl Contender for Way {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn role(&self) -> Role {
        self.role
    }

    async fn open(&self, url: &str, workload: &Workload) -> Opened {
        if workload.kind != Kind::Exclusive {
            return Err(format!("{} has no {}", self.name, workload.kind).into());
        }
        let workers = workload.workers;
        if let Some(each) = self.each.filter(|_| workers > MOST_APART) {
            return Err(
                format!("{each} for each of {workers} workers: {MOST_APART} at most").into()
            );
        }
        let url = simple(url)?;
        let ttl = workload.ttl.or(url.options().duration("ttl")?).unwrap_or(TTL);
        (self.open)(url, ttl, self.role).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_bare_clients_cannot_follow_is_left_out_with_the_reason() {
        for (url, why) in [
            ("redis+sentinel://a,b/main", "one server"),
            ("redlock://a,b,c", "one server"),
            ("rediss://h", "TLS"),
            ("postgres://h/db?tls=verify", "TLS"),
            ("etcd://me@h?password_file=/p", "user and password"),
            ("mysql://a,b/db?failover=managed", "failover"),
        ] {
            let error = simple(url).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        assert_eq!(simple("redis://me:p%40@h/3?ttl=2s").unwrap().password(), Some("p@"));
    }
}
