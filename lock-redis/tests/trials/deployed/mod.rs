//! The executable properties on a deployment of several servers, in a network of its own.
//!
//! Most checks share a deployment: each has a prefix of its own, and mostly waits. Those that
//! restart the servers have another deployment to themselves.

mod client;
mod lab;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use client::Remote;
use futures_util::{StreamExt, stream};
use lock_core::{
    LockName,
    properties::{AS_MUTEX, Client, Failure, Harness, NotHere, Outcome},
};
use lock_lab::Redis;
use tokio::sync::mpsc::{self, UnboundedReceiver};

pub use self::lab::{Lab, Servers};
use crate::checks::{self, Named};

/// Checks at a time on a shared deployment.
const AT_ONCE: usize = 32;
const TTL: Duration = Duration::from_secs(6);
const RESTARTS: &str = "restarts the servers";

/// The part of a deployment with a prefix.
struct Part {
    lab: Arc<Lab>,
    prefix: String,
}

impl Part {
    async fn keys(&self) -> Result<Vec<(&Redis, Vec<u8>)>, Failure> {
        let mut found = Vec::new();
        for node in self.lab.servers.primaries() {
            let keys = node.keys().await?.into_iter();
            let own = |key: &Vec<u8>| String::from_utf8_lossy(key).contains(&self.prefix);
            found.extend(keys.filter(own).map(|key| (node, key)));
        }
        Ok(found)
    }
}

#[async_trait]
impl Harness for Part {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let url = format!("{}?prefix={}", self.lab.servers.url(), self.prefix);
        Ok(Box::new(Remote::connect(&self.lab, url).await?))
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    async fn restart(&self) -> Result<(), Failure> {
        match self.lab.is_shared {
            true => Err(Box::new(NotHere(RESTARTS.to_owned()))),
            false => Ok(self.lab.servers.restart().await?),
        }
    }

    async fn delete(&self, _: &LockName) -> Result<(), Failure> {
        for (node, key) in self.keys().await? {
            node.command(&[b"DEL", &key]).await?;
        }
        Ok(())
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let keys = self.keys().await?.into_iter().map(|(_, key)| key);
        let keys = keys.filter(|key| !key.ends_with(b"\xFFfence"));
        Ok(keys.map(|key| String::from_utf8_lossy(&key).into_owned()).collect())
    }
}

/// A check by its number.
type Numbered = (usize, Named);

/// In a task of its own: a panic is the failure of this check.
async fn play(lab: Arc<Lab>, (number, check): Numbered) -> Result<Outcome, String> {
    let name = check.name.clone();
    let part = Part { lab, prefix: format!("check-{number}:") };
    let task = tokio::spawn(async move { check.run(part).await });
    task.await.unwrap_or_else(|panic| Err(format!("{name}: {panic}")))
}

/// Plays all checks. Returns those that were skipped, by the reason.
pub async fn skipped(
    shared: Lab,
    alone: Vec<Lab>,
) -> Result<BTreeMap<String, Vec<String>>, Box<dyn std::error::Error>> {
    let checks = checks::all(AS_MUTEX).into_iter().enumerate();
    let (again, restarts) = mpsc::unbounded_channel();
    let restarts = Arc::new(tokio::sync::Mutex::new(restarts));
    let lane = |lab| tokio::spawn(lane(lab, restarts.clone()));
    let lanes: Vec<_> = alone.into_iter().map(lane).collect();
    let shared = Arc::new(shared);
    let played = stream::iter(checks).map(|check| {
        let shared = shared.clone();
        async move { (check.clone(), play(shared, check).await) }
    });
    let mut played = played.buffer_unordered(AT_ONCE);
    let mut ended = Vec::new();
    while let Some((check, outcome)) = played.next().await {
        match outcome {
            Ok(Outcome::Skipped(why)) if why == RESTARTS => again.send(check)?,
            outcome => ended.push((check, outcome)),
        }
    }
    drop(again);
    for lane in lanes {
        ended.extend(lane.await?);
    }
    let failed: Vec<_> = ended.iter().filter_map(|(_, outcome)| outcome.as_ref().err()).collect();
    if !failed.is_empty() {
        return Err(format!("{} of {} failed: {failed:#?}", failed.len(), ended.len()).into());
    }
    println!("{} checks were played", ended.len());
    let mut skipped = BTreeMap::<_, Vec<_>>::new();
    for ((_, check), outcome) in ended {
        if let Ok(Outcome::Skipped(why)) = outcome {
            skipped.entry(why).or_default().push(check.name);
        }
    }
    skipped.values_mut().for_each(|names| names.sort());
    Ok(skipped)
}

type Ended = (Numbered, Result<Outcome, String>);

/// Plays one check after the other on a deployment, until there are no more.
async fn lane(
    lab: Lab,
    checks: Arc<tokio::sync::Mutex<UnboundedReceiver<Numbered>>>,
) -> Vec<Ended> {
    let (lab, mut ended) = (Arc::new(lab), Vec::new());
    loop {
        let next = checks.lock().await.recv().await;
        let Some(check) = next else { return ended };
        let outcome = play(lab.clone(), check.clone()).await;
        ended.push((check, outcome));
    }
}
