//! One server, with its own proxy for each client.

use std::{ops::Deref, pin::Pin, time::Duration};

use async_trait::async_trait;
use lock_lab::{Proxy, Server, Shift};
use tokio::{sync::Mutex, time::sleep};

use crate::chaos::{
    plan::Step,
    run::CLIENTS,
    stage::{Connecting, Failure, Home, Stage},
};

pub type Leftovers<'a> = Pin<Box<dyn Future<Output = Result<Vec<String>, Failure>> + Send + 'a>>;

/// Delay of a slow path in each direction.
const DELAY: Duration = Duration::from_millis(30);

/// The faults for every server.
pub const PLAIN: &[&str] = &["kill", "stop", "cut", "half_open", "reset", "refuse", "slow"];
/// For stores that do not use the time of day.
pub const WITH_WALL_CLOCK: &[&str] =
    &["kill", "stop", "cut", "half_open", "reset", "refuse", "slow", "wall_clock"];
/// Size of a jump of the wall clock.
pub const JUMP: Duration = Duration::from_secs(3600);

/// A private server, with the functions specific to its kind.
pub struct Single<S> {
    server: S,
    kinds: &'static [&'static str],
    /// Connects to the server at this URL.
    connect: fn(String) -> Connecting,
    leftovers: for<'a> fn(&'a S) -> Leftovers<'a>,
    proxies: Vec<Proxy>,
    /// Two concurrent starts of a server would kill each other's process.
    starting: Mutex<()>,
}

impl<S: Deref<Target = Server>> Single<S> {
    pub async fn new(
        server: S,
        kinds: &'static [&'static str],
        connect: fn(String) -> Connecting,
        leftovers: for<'a> fn(&'a S) -> Leftovers<'a>,
    ) -> Result<Self, Failure> {
        let mut proxies = Vec::new();
        for _ in 0..CLIENTS {
            proxies.push(Proxy::start(server.addr()).await?);
        }
        Ok(Self { server, kinds, connect, leftovers, proxies, starting: Mutex::default() })
    }

    async fn kill(&self, lasts: Duration) -> Result<(), Failure> {
        let _alone = self.starting.lock().await;
        self.server.kill();
        sleep(lasts).await;
        Ok(self.server.restart().await?)
    }

    async fn stop(&self, lasts: Duration) {
        self.server.stop();
        sleep(lasts).await;
        self.server.resume();
    }

    async fn wall_clock(&self, step: &Step) -> Result<(), Failure> {
        // A process killed meanwhile has no clock.
        let _alone = self.starting.lock().await;
        self.server.move_clocks(jump(step), Shift::NONE)?;
        sleep(step.lasts).await;
        Ok(self.server.move_clocks(Shift::NONE, Shift::NONE)?)
    }

    /// Breaks the path of one client, or of all.
    async fn path(&self, step: &Step, broken: fn(&Proxy), healed: fn(&Proxy)) -> String {
        let (proxies, target) = match step.other % 2 {
            0 => (&self.proxies[..], "all clients".to_owned()),
            _ => {
                let client = step.client % CLIENTS;
                (&self.proxies[client..=client], format!("c{client}"))
            }
        };
        proxies.iter().for_each(broken);
        sleep(step.lasts).await;
        proxies.iter().for_each(healed);
        target
    }
}

#[async_trait]
impl<S: Deref<Target = Server> + Send + Sync> Stage for Single<S> {
    fn kinds(&self) -> &'static [&'static str] {
        self.kinds
    }

    fn home(&self, _client: usize) -> Result<Home, Failure> {
        Home::thread()
    }

    fn connect(&self, client: usize) -> Connecting {
        (self.connect)(self.server.url_via(&self.proxies[client]))
    }

    fn url(&self) -> Option<String> {
        Some(self.server.url())
    }

    async fn play(&self, step: &Step) -> Result<String, Failure> {
        let server = || "server".to_owned();
        Ok(match step.kind {
            "kill" => self.kill(step.lasts).await.map(|()| server())?,
            "stop" => {
                self.stop(step.lasts).await;
                server()
            }
            "wall_clock" => self.wall_clock(step).await.map(|()| server())?,
            "cut" => self.path(step, Proxy::cut, Proxy::heal).await,
            "half_open" => self.path(step, Proxy::half_open, Proxy::heal).await,
            "reset" => self.path(step, Proxy::reset, Proxy::reset).await,
            "refuse" => self.path(step, Proxy::refuse, Proxy::heal).await,
            _ => self.path(step, |p| p.delay(DELAY), |p| p.delay(Duration::ZERO)).await,
        })
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        (self.leftovers)(&self.server).await
    }
}

pub fn jump(step: &Step) -> Shift {
    match step.other % 2 {
        0 => Shift::ahead(JUMP),
        _ => Shift::back(JUMP),
    }
}
