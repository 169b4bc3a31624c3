//! C14: a try returns at once when the lock is held, and leaves no key behind.

use std::time::Duration;

use distlock::Locks;

use crate::{
    Actor, Claim, Contestant, Distlock, Failure, Figure, Ground, Nature, Outcome, Side, Stage,
    residue,
    scenario::{has, joined, until_line_within},
    time::Time,
};

pub(super) const CLAIM: Claim = Claim {
    number: 14,
    title: "A try leaves nothing behind",
    claimed: "TryLock returns at once when the lock is held, and leaves no key behind.",
    done: "A holds the lock and B tries it 20 times; beside it a client queues up instead and its \
           process ends before it can leave. The keys, nodes or rows of the store are counted before \
           and after.",
    measured: "How many tries end while A still holds, how many keys are left, and how long a try \
               takes.",
    threshold: "Holds if all tries are refused while A holds the lock and the count is the same \
                afterwards, and if the client that died in line is counted.",
};

const TRIES: usize = 20;
/// Time for which a client that died in the queue keeps its place, unless it can leave.
const TTL: Duration = Duration::from_secs(8);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let ground = stage.own().await?;
    let scene = Scene {
        lock: Distlock::new(ground.url()),
        operator: crate::connect::connect(ground.url()).await?,
        ground,
        stage,
    };
    let (first, second) = match stage.is_swapped() {
        true => (scene.queue_and_die().await?, scene.try_often().await?),
        false => (scene.try_often().await?, scene.queue_and_die().await?),
    };
    let clean = first.at_once && first.left == 0 && second.left > 0;
    let sentence = Side::summaries([&first.side, &second.side]);
    let what = residue::what(stage.store);
    Ok(Outcome::holds_if(clean, sentence)
        .figure(Figure::count("left by the first", first.left as f64, what))
        .figure(Figure::count("left by the second", second.left as f64, what))
        .figure(Figure::time("the median try", first.median.max(second.median)))
        .sides([first.side, second.side]))
}

struct Scene<'a> {
    stage: &'a Stage,
    ground: Ground,
    lock: Distlock,
    operator: Locks,
}

struct Played {
    side: Side,
    /// Whether each reply came while the lock was held, and reported it as held.
    at_once: bool,
    left: i64,
    median: Duration,
}

impl Scene<'_> {
    async fn count(&self) -> Result<i64, Failure> {
        Ok(i64::try_from(residue::count(self.stage.store, &self.ground, &self.operator).await?)?)
    }

    async fn try_often(&self) -> Result<Played, Failure> {
        let (name, b) = (self.stage.name("tried"), self.lock.client().await?);
        let guard = self.operator.lock(&name)?.ttl(TTL).acquire().await?;
        let (before, mut times) = (self.count().await?, Vec::new());
        let mut refused = 0;
        for _ in 0..TRIES {
            let time = Time::start();
            let tried = b.acquire(&name, TTL, Duration::ZERO).await?;
            times.push(time.since());
            refused += usize::from(tried.is_none());
        }
        let (held, left) = (guard.is_valid(), self.count().await? - before);
        guard.release().await?;
        times.sort();
        let median = times[TRIES / 2];
        let happened = format!(
            "{refused} of {TRIES} tries are refused while the lock is held, {:.1} ms each, {}",
            median.as_secs_f64() * 1e3,
            self.said(left)
        );
        let at_once = held && refused == TRIES;
        let side = Side::new("distlock, try", Nature::Distlock, at_once && left == 0, happened)
            .evidence(format!("{before} {} before", residue::what(self.stage.store)));
        Ok(Played { side, at_once, left, median })
    }

    /// Lets a client die in a queue that only the client itself can leave.
    async fn queue_and_die(&self) -> Result<Played, Failure> {
        let name = self.stage.name("queued");
        let guard = self.operator.lock(&name)?.ttl(TTL).acquire().await?;
        let (before, home) = (self.count().await?, Actor::start("B")?);
        let b = self.lock.client_in(&home).await?;
        let waits = async { b.acquire_in(&home, &name, TTL, TTL).await.map(|_| ()) };
        let place = tokio::select! {
            place = joined(&self.operator, &name, 1) => place?,
            ended = waits => return Err(format!("B does not wait: {ended:?}").into()),
        };
        home.kill(b);
        let gone = |line: &[distlock::Entry]| !has(line, place);
        let short = Duration::from_secs(1);
        let stays = until_line_within(&self.operator, &name, short, gone).await?.is_none();
        let left = self.count().await? - before;
        guard.release().await?;
        let place = if stays { "is still there after 1 s" } else { "is gone" };
        let happened = format!("its place in line {place}, {}", self.said(left));
        let lock = "distlock, a client that dies in line";
        let side = Side::new(lock, Nature::Distlock, left == 0, happened)
            .evidence(format!("it is freed by its TTL of {} s", TTL.as_secs()));
        Ok(Played { side, at_once: false, left, median: Duration::ZERO })
    }

    fn said(&self, left: i64) -> String {
        match left {
            0 => format!("and no {} are left", residue::what(self.stage.store)),
            1 => format!("and 1 {} is left", residue::one(self.stage.store)),
            left => format!("and {left} {} are left", residue::what(self.stage.store)),
        }
    }
}
