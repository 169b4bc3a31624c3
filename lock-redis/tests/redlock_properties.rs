//! The executable properties of lock-core on a majority of five servers.

use std::{sync::Mutex, time::Duration};

use async_trait::async_trait;
use lock_core::{
    LockName,
    properties::{AS_MUTEX, Client, Failure, Harness, Outcome},
};
use lock_lab::Lent;

use crate::{
    lab::{
        checks::{self, Named},
        majority::{Far, Five},
    },
    remote::Remote,
};

/// How many checks run at the same time: they mostly wait.
const AT_ONCE: usize = 8;

/// Five servers for one check after the other, until a check restarts some of them.
struct Lab(Lent<Five>);

#[async_trait]
impl Harness for Lab {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let Far { locks, proxies } = Far::of(&self.0).await;
        Ok(Box::new(Remote { locks, proxies }))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(3)
    }

    /// Two of the five, which come back without their data.
    async fn restart(&self) -> Result<(), Failure> {
        self.0.spoil();
        let two = &self.0.nodes[1..3];
        two.iter().for_each(|node| node.kill());
        for node in two {
            node.restart().await?;
        }
        Ok(())
    }

    async fn delete(&self, _: &LockName) -> Result<(), Failure> {
        self.0.flush().await;
        Ok(())
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Ok(self.0.left_behind().await)
    }
}

/// Returns whether the check was kept, or the failure.
///
/// A runtime per check: tasks that a check leaves running end with it.
fn run(check: &Named) -> Result<bool, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().worker_threads(2).build().map_err(|e| e.to_string())?;
    let outcome = runtime.block_on(async { check.run(Lab(Five::lent().await)).await })?;
    Ok(!matches!(outcome, Outcome::Skipped(_)))
}

#[test]
fn a_majority_keeps_every_promise_of_a_lock_without_a_queue() {
    let all = checks::all(AS_MUTEX);
    let checks = Mutex::new(all.iter());
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
    let results = results.into_inner().unwrap();
    let failures: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let kept = results.iter().filter(|result| matches!(result, Ok(true))).count();
    println!("{kept} of {} checks kept, {} failed", results.len(), failures.len());
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(kept > 80 || std::env::var_os("ONLY").is_some(), "only {kept} checks apply");
}
