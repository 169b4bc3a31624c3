//! The executable properties of lock-core on a majority of five servers.

mod majority;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    LockName, Locks,
    properties::{self, AS_MUTEX, AsMutex, Check, Client, Failure, Guise, Harness, Outcome},
};
use majority::{Far, Five};

/// How many checks run at the same time: they mostly wait.
const AT_ONCE: usize = 8;
/// Longest time for a check.
const LIMIT: Duration = Duration::from_secs(60);

/// Five servers. They serve one check after the other until a check restarts some of them.
struct Lab {
    five: Option<Five>,
    is_as_new: std::sync::atomic::AtomicBool,
}

static IDLE: Mutex<Vec<Five>> = Mutex::new(Vec::new());

fn idle() -> std::sync::MutexGuard<'static, Vec<Five>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lab {
    async fn get() -> Self {
        let idle = idle().pop();
        let five = match idle {
            Some(five) => five,
            None => Five::start().await,
        };
        five.flush().await;
        Self { five: Some(five), is_as_new: true.into() }
    }

    fn five(&self) -> &Five {
        self.five.as_ref().expect("it is there until the drop")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.is_as_new.load(std::sync::atomic::Ordering::Relaxed) {
            idle().extend(self.five.take());
        }
    }
}

#[async_trait]
impl Harness for Lab {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        Ok(Box::new(Process(Far::of(self.five()).await)))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(3)
    }

    /// Two of the five, which come back without their data.
    async fn restart(&self) -> Result<(), Failure> {
        self.is_as_new.store(false, std::sync::atomic::Ordering::Relaxed);
        let two = &self.five().nodes[1..3];
        two.iter().for_each(|node| node.kill());
        for node in two {
            node.restart().await?;
        }
        Ok(())
    }

    async fn delete(&self, _: &LockName) -> Result<(), Failure> {
        self.five().flush().await;
        Ok(())
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Ok(self.five().left_behind().await)
    }
}

struct Process(Far);

#[async_trait]
impl Client for Process {
    fn locks(&self) -> &Locks {
        &self.0.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.0.proxies.iter().for_each(|proxy| proxy.cut());
        Ok(())
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        self.0.proxies.iter().for_each(|proxy| proxy.half_open());
        Ok(())
    }

    async fn heal(&self) -> Result<(), Failure> {
        self.0.proxies.iter().for_each(|proxy| proxy.heal());
        Ok(())
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.0.proxies.iter().for_each(|proxy| proxy.refuse());
        Ok(())
    }
}

/// A check by its name. `Guise`: the kind of lock that acts as an exclusive one.
type Named = (String, Check, Option<Guise>);

/// Every check. Checks of an exclusive lock also run with every other kind that acts like one.
fn checks() -> impl Iterator<Item = Named> + Send {
    let guises = || [None].into_iter().chain(AS_MUTEX.iter().copied().map(Some));
    properties::all().iter().flat_map(move |property| {
        let guises = guises().filter(|guise| guise.is_none() || property.of_exclusive);
        guises.flat_map(move |guise| {
            property.checks.iter().map(move |check| {
                let guised = guise.map_or("", |(name, _)| name);
                let name = format!("{guised}::{}::{}", property.name, check.name);
                (name, *check, guise.map(|(_, guise)| guise))
            })
        })
    })
}

/// Runs a check and returns whether it was kept, or the failure.
async fn play((name, check, guise): Named) -> Result<bool, String> {
    let harness: Box<dyn Harness> = Box::new(Lab::get().await);
    let harness = match guise {
        Some(guise) => Box::new(AsMutex { harness, guise }),
        None => harness,
    };
    match tokio::time::timeout(LIMIT, check.run(&*harness)).await {
        Ok(Ok(Outcome::Skipped(_))) => Ok(false),
        Ok(Ok(_)) => Ok(true),
        Ok(Err(failure)) => Err(format!("{name}: {failure}")),
        Err(_) => Err(format!("{name}: not done after {LIMIT:?}")),
    }
}

/// A runtime per check: tasks that a check leaves running end with it.
fn run(check: Named) -> Result<bool, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().worker_threads(2).build().map_err(|e| e.to_string())?;
    runtime.block_on(play(check))
}

#[test]
fn a_majority_keeps_every_promise_of_a_lock_without_a_queue() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let checks = Mutex::new(checks().filter(|(name, ..)| name.contains(&only)));
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = checks.lock().unwrap().next();
                    let Some(check) = next else { return };
                    let result = run(check);
                    results.lock().unwrap().push(result);
                }
            });
        }
    });
    idle().clear();
    let results = results.into_inner().unwrap();
    let failures: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let kept = results.iter().filter(|result| matches!(result, Ok(true))).count();
    println!("{kept} of {} checks kept, {} failed", results.len(), failures.len());
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(kept > 80 || !only.is_empty(), "only {kept} checks apply");
}
