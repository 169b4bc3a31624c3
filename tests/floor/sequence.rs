//! One sequence of steps, with a check after each.

use std::time::Duration;

use distlock::{FencingToken, LockGuard, Locks, TokenFloor};
use tokio::time::timeout;

use crate::{
    fenced::sql::Stock,
    floor::place::Place,
    support::{Random, eventually},
};

const NAME: &str = "orders";
const STEPS: usize = 10;
/// Limit for expected events, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Sequence<'a> {
    places: &'a mut [Place; 2],
    /// Index of the place in use.
    at: usize,
    random: Random,
    table: Stock,
    /// The tokens of all writes, in order.
    written: Vec<FencingToken>,
    label: String,
    steps: Vec<String>,
}

impl<'a> Sequence<'a> {
    /// The table is new, and has not seen the stores' earlier tokens.
    pub async fn new(places: &'a mut [Place; 2], mut random: Random, label: String) -> Self {
        let (at, table) = (random.below(2), Stock::new().await.expect("a table"));
        let (written, steps) = (Vec::new(), Vec::new());
        Self { places, at, random, table, written, label, steps }
    }

    pub async fn run(&mut self) {
        if !self.place().is_backed_up() || self.random.percent(20) {
            self.back_up().await;
        }
        for _ in 0..STEPS {
            let step = timeout(PATIENCE * 2, self.step()).await;
            step.unwrap_or_else(|_| panic!("a step does not end; {}", self.context()));
        }
    }

    async fn step(&mut self) {
        match self.random.below(100) {
            0..45 => self.grant().await,
            45..60 => self.swap().await,
            60..75 => self.raise_beside_holders().await,
            75..85 => self.raise_beside_traffic().await,
            85..92 => self.restore().await,
            _ => self.back_up().await,
        }
        self.write_late().await;
    }

    fn place(&self) -> &Place {
        &self.places[self.at]
    }

    fn client(&mut self) -> Locks {
        let client = self.random.below(2);
        self.place().clients[client].clone()
    }

    fn newest(&self) -> FencingToken {
        self.written.last().copied().unwrap_or(FencingToken::new(0))
    }

    fn note(&mut self, step: impl Into<String>) {
        let step = format!("{} on {}", step.into(), self.place().name);
        self.steps.push(step);
    }

    /// The label and the steps so far, for messages.
    fn context(&self) -> String {
        format!("{}: {}", self.label, self.steps.join("; "))
    }

    async fn acquire(&self, client: &Locks) -> LockGuard {
        let lock = client.lock(NAME).expect("a name").ttl(Place::TTL).acquire();
        let guard = timeout(PATIENCE, lock).await;
        let guard = guard.unwrap_or_else(|_| panic!("not granted; {}", self.context()));
        guard.unwrap_or_else(|error| panic!("{error}; {}", self.context()))
    }

    /// Writes as a holder with a valid lock.
    async fn write(&mut self, guard: &LockGuard) {
        let token = guard.token();
        assert!(guard.is_valid(), "{}", self.context());
        assert!(token.value() <= i64::MAX.unsigned_abs(), "{}", self.context());
        let written = self.table.write(token, 1).await.expect("the table answers");
        assert!(written, "{token} was refused after {}; {}", self.newest(), self.context());
        assert!(token > self.newest(), "{token} after {}; {}", self.newest(), self.context());
        self.written.push(token);
    }

    /// A write of an earlier holder must be refused.
    async fn write_late(&mut self) {
        let Some((newest, earlier)) = self.written.split_last() else { return };
        if earlier.is_empty() {
            return;
        }
        let late = self.random.pick(earlier);
        let written = self.table.write(late, 2).await.expect("the table answers");
        assert!(!written, "{late} was written after {newest}; {}", self.context());
    }

    async fn grant(&mut self) {
        self.note("grant");
        let client = self.client();
        let guard = self.acquire(&client).await;
        self.write(&guard).await;
        guard.release().await.expect("released");
    }

    /// The other store replaces this one. Its clients were connected all the time.
    async fn swap(&mut self) {
        let client = self.client();
        let floor = client.token_floor().await.expect("a floor");
        assert!(floor.newest >= self.newest(), "{floor}; {}", self.context());
        self.at = 1 - self.at;
        self.note("swap");
        self.raise(floor.newest).await;
        self.grant().await;
    }

    async fn raise(&mut self, above: FencingToken) -> TokenFloor {
        self.note(format!("raise above {above}"));
        let client = self.client();
        let before = client.token_floor().await.expect("a floor");
        let raised = client.raise_token_floor(above).await;
        let raised = raised.unwrap_or_else(|error| panic!("{error}; {}", self.context()));
        assert_eq!(raised.above, above.max(before.above), "{}", self.context());
        assert!(raised.newest >= before.newest, "{}", self.context());
        raised
    }

    async fn some_floor(&mut self) -> FencingToken {
        let client = self.client();
        let newest = client.token_floor().await.expect("a floor").newest.value();
        FencingToken::new(newest + 1 + self.random.below(1000) as u64)
    }

    /// One client holds, another one waits, and the floor is raised above both.
    async fn raise_beside_holders(&mut self) {
        let [first, second] = [0, 1].map(|n| self.place().clients[n].clone());
        let guard = self.acquire(&first).await;
        self.write(&guard).await;
        let lock = second.lock(NAME).expect("a name").ttl(Place::TTL);
        let waiter = tokio::spawn(async move { lock.acquire().await });
        let entries = async || first.inspect(NAME).await.expect("a queue").len();
        eventually("another one waits", async || entries().await == 2).await;
        let above = self.some_floor().await;
        self.raise(above).await;
        let lost = timeout(PATIENCE, guard.lost()).await;
        assert!(lost.is_ok(), "the holder was not told; {}", self.context());
        // The waiter lost its place, or its token comes with the grant.
        let waited =
            timeout(PATIENCE, waiter).await.expect("an end of the wait").expect("no panic");
        if let Ok(guard) = waited {
            assert!(guard.token() > above, "{}; {}", guard.token(), self.context());
            self.write(&guard).await;
            guard.release().await.expect("released");
        }
        self.grant().await;
        assert!(self.newest() > above, "{}", self.context());
    }

    /// Both clients acquire and release while the floor is raised. A write may be refused only to a
    /// holder that the raise has ended.
    async fn raise_beside_traffic(&mut self) {
        let above = self.some_floor().await;
        let clients = self.place().clients.clone();
        let raise = clients[0].raise_token_floor(above);
        let work = |client: &Locks| {
            let (client, table) = (client.clone(), &self.table);
            async move {
                let mut tokens = Vec::new();
                for _ in 0..4 {
                    let lock = client.lock(NAME).expect("a name").ttl(Place::TTL);
                    // The raise may end the wait.
                    let Ok(guard) = lock.acquire().await else { continue };
                    if table.write(guard.token(), 3).await.expect("the table answers") {
                        tokens.push(guard.token());
                    } else {
                        let lost = timeout(PATIENCE, guard.lost()).await;
                        lost.unwrap_or_else(|_| panic!("{} was refused", guard.token()));
                    }
                }
                tokens
            }
        };
        let work = async { tokio::join!(work(&clients[0]), work(&clients[1]), raise) };
        let (mut tokens, more, raised) = timeout(PATIENCE, work).await.expect("an end");
        raised.unwrap_or_else(|error| panic!("{error}; {}", self.context()));
        tokens.extend(more);
        tokens.sort_unstable();
        self.written.extend(tokens);
        self.note(format!("raise above {above} beside traffic"));
        assert!(self.written.windows(2).all(|two| two[0] < two[1]), "{}", self.context());
        self.grant().await;
        assert!(self.newest() > above, "{}", self.context());
    }

    async fn back_up(&mut self) {
        self.note("backup");
        self.places[self.at].back_up().await;
    }

    /// The store loses its tokens since the backup. The operator reads the floor from the table.
    async fn restore(&mut self) {
        if !self.places[self.at].restore().await {
            return;
        }
        self.note("restore");
        let newest = self.newest();
        self.raise(newest).await;
        self.grant().await;
    }
}
