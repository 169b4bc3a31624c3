//! C43: etcd 3.4's `Lock` does not check whether its own key still exists.

use crate::{Claim, Failure, Outcome, Stage};

pub(super) const CLAIM: Claim = Claim {
    number: 43,
    title: "A dead waiter believes that it holds",
    claimed: "Some printed versions of Lock skip the look at the own key after waiting: etcd 3.4's \
              `etcdctl lock` does, so a dead waiter can believe that it holds the lock.",
    done: "A holds the lock and B waits; B's lease is revoked, C queues up and A leaves. B is the \
           real `etcdctl lock` where it is installed, an imitation of Go's Lock without and with \
           the look, and distlock; all stand in the same queue.",
    measured: "Whether B believes that it holds the lock while C holds it.",
    threshold: "Breaks if each B without the look believes so, and no B with it.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    #[cfg(feature = "etcd")]
    if stage.store == crate::Store::Etcd {
        return etcd::run(stage).await;
    }
    let _ = stage;
    Ok(Outcome::cannot_be_asked("it is about the client of etcd 3.4"))
}

#[cfg(feature = "etcd")]
mod etcd {
    use std::{collections::BTreeSet, time::Duration};

    use async_trait::async_trait;
    use etcd_client::GetOptions;
    use tokio::{
        sync::Mutex,
        task::JoinHandle,
        time::{sleep, timeout},
    };

    use super::*;
    use crate::{
        Contestant, Distlock, Figure, Nature, Side,
        etcdctl::{Etcdctl, INSTALL},
        go_mutex::{GoMutex, connect},
        scenario::{Belief, Waiter, revoked_waiter},
    };

    const TTL: Duration = Duration::from_secs(8);
    const PATIENCE: Duration = Duration::from_secs(30);
    const PAUSE: Duration = Duration::from_millis(10);

    /// The kind of client that plays B.
    #[derive(Clone)]
    enum Kind {
        Program(Etcdctl),
        Imitation(GoMutex),
        Distlock(Distlock),
    }

    pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
        let url = stage.shared().await?.url();
        let program = Etcdctl::find(&url)?;
        let (blind, careful) = waiters(&url, program.clone());
        let (blind, careful) = stage.pick((&blind, &careful), (&careful, &blind));
        let all = blind.iter().chain(careful).cloned().enumerate();
        let played = all.map(|(number, kind)| play(stage, &url, kind, number));
        let played = futures_util::future::try_join_all(played).await?;
        let deluded = |played: &[(Side, usize)]| played.iter().filter(|it| it.1 > 0).count();
        let (first, second) = (deluded(&played[..blind.len()]), deluded(&played[blind.len()..]));
        let mut sentence = Side::summaries(played.iter().map(|(side, _)| side));
        if program.is_none() {
            sentence += &format!("; {INSTALL}");
        }
        let seen = first == blind.len() && second == 0;
        let (blind, careful) = (format_of(blind.len()), format_of(careful.len()));
        Ok(Outcome::breaks_if(seen, sentence)
            .figure(Figure::count("of the first, deluded", first as f64, blind))
            .figure(Figure::count("of the others, deluded", second as f64, careful))
            .sides(played.into_iter().map(|(side, _)| side)))
    }

    /// The waiters that take a grant for theirs unchecked, and the ones that check.
    fn waiters(url: &str, program: Option<Etcdctl>) -> (Vec<Kind>, Vec<Kind>) {
        let (go, native) = (GoMutex::new(url), Distlock::new(format!("{url}?layout=native")));
        let program = program.map(Kind::Program);
        let blind = program.into_iter().chain([Kind::Imitation(go.clone().unchecked())]);
        (blind.collect(), vec![Kind::Distlock(native), Kind::Imitation(go)])
    }

    fn format_of(all: usize) -> &'static str {
        ["of 0", "of 1", "of 2", "of 3"][all.min(3)]
    }

    impl Kind {
        async fn named(&self) -> Result<(String, Nature), Failure> {
            Ok(match self {
                Self::Program(program) => {
                    (format!("etcdctl lock {}", program.version().await?), Nature::Program)
                }
                Self::Imitation(lock) => (lock.label(), lock.nature()),
                Self::Distlock(lock) => (lock.label(), Nature::Distlock),
            })
        }
    }

    /// Also returns the number of pairs of holders.
    async fn play(
        stage: &Stage,
        url: &str,
        kind: Kind,
        number: usize,
    ) -> Result<(Side, usize), Failure> {
        let (label, nature) = kind.named().await?;
        // One level: distlock's native layout accepts no other names.
        let name = stage.name(&format!("b{number}")).replace('/', "-");
        let go = GoMutex::new(url);
        let (a, c) = (go.client().await?, go.client().await?);
        let client = connect(url).await?;
        let waiter = Revocable { client, kind, key: Mutex::default(), waits: Mutex::default() };
        let trace = stage.trace(&label);
        revoked_waiter((&*a, &*c), (&waiter, &label, nature), &trace, &name).await
    }

    /// A waiter whose lease can be revoked by its key.
    struct Revocable {
        client: etcd_client::Client,
        kind: Kind,
        key: Mutex<String>,
        waits: Mutex<Option<JoinHandle<Result<Belief, Failure>>>>,
    }

    impl Revocable {
        /// Waits until the queue has the wanted form.
        async fn until(
            &self,
            name: &str,
            wanted: impl Fn(&BTreeSet<String>) -> bool,
        ) -> Result<BTreeSet<String>, Failure> {
            let look = async {
                loop {
                    let options = Some(GetOptions::new().with_prefix().with_keys_only());
                    let keys = self.client.kv_client().get(format!("{name}/"), options).await?;
                    let keys = keys.kvs().iter();
                    let keys = keys.map(|key| String::from_utf8_lossy(key.key()).into_owned());
                    let keys: BTreeSet<_> = keys.collect();
                    if wanted(&keys) {
                        return Ok::<_, Failure>(keys);
                    }
                    sleep(PAUSE).await;
                }
            };
            timeout(PATIENCE, look).await.map_err(|_| "the queue is not as expected")?
        }
    }

    #[async_trait]
    impl Waiter for Revocable {
        async fn join(&self, name: &str) -> Result<(), Failure> {
            let before = self.until(name, |keys| keys.len() == 1).await?;
            let (kind, key) = (self.kind.clone(), name.to_owned());
            *self.waits.lock().await = Some(tokio::spawn(wait(kind, key)));
            let now = self.until(name, |keys| keys.len() == 2).await?;
            let own = now.difference(&before).next().ok_or("B has no key")?;
            own.clone_into(&mut *self.key.lock().await);
            Ok(())
        }

        async fn lose_place(&self, name: &str) -> Result<(), Failure> {
            let key = self.key.lock().await.clone();
            let lease = key.rsplit('/').next().and_then(|own| own.split('.').next());
            let lease = i64::from_str_radix(lease.ok_or("B's key has no lease")?, 16)?;
            self.client.lease_client().revoke(lease).await?;
            self.until(name, |keys| !keys.contains(&key)).await.map(drop)
        }

        async fn see_next(&self, name: &str) -> Result<(), Failure> {
            self.until(name, |keys| keys.len() == 2).await.map(drop)
        }

        async fn belief(&self) -> Result<Belief, Failure> {
            self.waits.lock().await.take().ok_or("nobody waits")?.await?
        }
    }

    async fn wait(kind: Kind, name: String) -> Result<Belief, Failure> {
        match kind {
            Kind::Program(program) => {
                let command = ["lock", &name, "printenv", "ETCD_LOCK_KEY"];
                let mut running = program.start(&command)?;
                Ok(match running.next_line().await? {
                    Some(line) => {
                        Belief::Holds(format!("it runs its command, with the key {line}"), None)
                    }
                    None => Belief::Told("it ends without running its command".into()),
                })
            }
            Kind::Imitation(lock) => told(lock.client().await?.acquire(&name, TTL, PATIENCE).await),
            Kind::Distlock(lock) => told(lock.client().await?.acquire(&name, TTL, PATIENCE).await),
        }
    }

    fn told(answer: crate::Granted) -> Result<Belief, Failure> {
        match answer {
            Ok(Some(hold)) => Ok(Belief::Holds("its Lock returned".into(), Some(hold))),
            Ok(None) => Err("B waits in vain".into()),
            Err(failure) => Ok(Belief::Told(failure.to_string())),
        }
    }
}
