//! One private server of any kind.

use std::{
    fs::{self, OpenOptions, Permissions},
    io,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::{
    Counters, LabError, Network, Place, Proxy, Shift, clock, is_gone, network::Node,
    options::Common, port::Port, process::Process, store::Store, system_user::User,
};

/// Longest time until a server answers. A loaded machine takes seconds for a JVM, and half a minute for
/// the template of a database.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Longest probe, and the pause between two. A database's client is a program, which a loaded machine
/// may not have started within a second.
const PROBE_LIMIT: Duration = Duration::from_secs(3);
const PROBE_PAUSE: Duration = Duration::from_millis(10);
/// Number of attempts of a new server, each with new ports, if another program has taken its port.
const ATTEMPTS: usize = 5;
/// Number of log lines that an error shows.
const SHOWN_LINES: usize = 30;
const MEMORY: &str = "/dev/shm";

/// The common part of [`Etcd`](crate::Etcd), [`MariaDb`](crate::MariaDb),
/// [`Postgres`](crate::Postgres), [`Redis`](crate::Redis) and [`ZooKeeper`](crate::ZooKeeper): a
/// real server process with its own data directory, on 127.0.0.1 or in a place of its own in a
/// [`Network`].
///
/// All methods take `&self` and may be called from several tasks. Dropping the server kills it with
/// SIGKILL, waits until it is gone and deletes its data.
#[derive(Debug)]
pub struct Server {
    common: Common,
    store: Arc<dyn Store>,
    run: Mutex<Run>,
    ports: Vec<Port>,
    /// Its place, if it is not on 127.0.0.1.
    node: Option<Node>,
    /// The user that runs the server, if it is not the user of this process.
    user: Option<User>,
    /// After `run`, so that the server is dead when its data is deleted.
    home: TempDir,
}

/// A new folder for data, in memory if that is asked for and there is such a file system.
pub(crate) fn folder(
    builder: &tempfile::Builder<'_, '_>,
    in_memory: bool,
) -> Result<TempDir, LabError> {
    let folder = match in_memory && Path::new(MEMORY).is_dir() {
        true => builder.tempdir_in(MEMORY),
        false => builder.tempdir(),
    };
    folder.map_err(LabError::io("making a data directory"))
}

#[derive(Debug, Default)]
struct Run {
    pid: u32,
    process: Option<Process>,
}

impl Run {
    fn move_clocks(&self, wall: Shift, monotonic: Shift) -> io::Result<()> {
        let Some(process) = &self.process else { return Ok(()) };
        process.while_stopped(|all| {
            all.iter().try_for_each(|pid| match clock::set(*pid, wall, monotonic) {
                // A process that has just ended by itself has no clocks any more.
                Err(_) if is_gone(*pid) => Ok(()),
                set => set,
            })
        })
    }
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(crate) async fn start(
        common: &Common,
        store: &(impl Store + Clone + 'static),
    ) -> Result<Self, LabError> {
        let mut attempt = 1;
        loop {
            let node = common.network.as_ref().map(Network::join).transpose()?;
            let server = Self::create(common.clone(), Arc::new(store.clone()), node)?;
            match server.restart().await {
                Err(error) if attempt < ATTEMPTS && server.lost_its_port() => {
                    tracing::debug!(%error, "again with other ports");
                    attempt += 1;
                }
                result => return result.map(|()| server),
            }
        }
    }

    pub(crate) fn create(
        common: Common,
        store: Arc<dyn Store>,
        node: Option<Node>,
    ) -> Result<Self, LabError> {
        let mut folder = tempfile::Builder::new();
        // It contains passwords.
        folder.prefix("lock-lab-").permissions(Permissions::from_mode(0o700));
        let home = self::folder(&folder, common.in_memory || node.is_some())?;
        let ports = match &node {
            Some(node) => Ok(Port::of_place(node.place(), store.ports(&common))),
            None => (0..store.ports(&common)).map(|_| Port::reserve()).collect(),
        };
        let user = store.user().map_or(Ok(None), User::instead_of_root);
        let user =
            user.map_err(LabError::io(format!("looking for a user for {}", store.scheme())))?;
        if let Some(user) = user {
            user.own(home.path()).map_err(LabError::io("giving a data directory away"))?;
        }
        Ok(Self {
            run: Mutex::new(Run::default()),
            ports: ports.map_err(LabError::io("looking for a free port"))?,
            home,
            node,
            user,
            common,
            store,
        })
    }

    /// Returns the address for clients.
    pub fn addr(&self) -> SocketAddr {
        self.ports[0].addr()
    }

    pub(crate) fn last_addr(&self) -> SocketAddr {
        self.ports[self.ports.len() - 1].addr()
    }

    /// Returns the URL for clients, such as `redis://127.0.0.1:20001`, with the password if the
    /// server has one.
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// Returns the URL for clients that reach the server through `proxy`. In a network, start the
    /// proxy on their [`Side`](crate::Side).
    pub fn url_via(&self, proxy: &Proxy) -> String {
        self.url_at(proxy.addr())
    }

    /// Returns its place in its network, `None` for a server on 127.0.0.1.
    pub fn place(&self) -> Option<Place> {
        self.node.as_ref().map(Node::place)
    }

    /// Returns the process id of the server, or of its last run after [`kill`](Self::kill).
    pub fn pid(&self) -> u32 {
        self.run().pid
    }

    /// Stops the process, with those that it has started, with SIGSTOP: it keeps its connections
    /// and does not reply.
    ///
    /// Does nothing to a server that does not run.
    pub fn stop(&self) {
        self.with_process(Process::stop);
    }

    /// Continues stopped processes, with SIGCONT.
    pub fn resume(&self) {
        self.with_process(Process::resume);
    }

    /// Kills the process, with those that it has started, with SIGKILL and waits until they are
    /// gone. Its data stays.
    ///
    /// This blocks the thread for some milliseconds. Does nothing to a server that does not run.
    pub fn kill(&self) {
        self.run().process = None;
    }

    /// Has the server read its configuration again, with SIGHUP.
    pub(crate) fn reload(&self) {
        self.with_process(Process::reload);
    }

    /// Moves the server's clocks away from the machine's: the wall clock, and the monotonic clocks.
    ///
    /// Only this server reads the moved clocks, from now on: its process and those that it has
    /// started, or starts later. Its timers go on as before. A restart sets the clocks right again.
    ///
    /// This stops the server for some milliseconds. Does nothing to a server that does not run.
    ///
    /// ```no_run
    /// # fn run(redis: lock_lab::Redis) -> Result<(), lock_lab::LabError> {
    /// use std::time::Duration;
    /// use lock_lab::Shift;
    ///
    /// // Each TTL of less than a minute is over.
    /// redis.move_clocks(Shift::ahead(Duration::from_secs(60)), Shift::NONE)?;
    /// # Ok(()) }
    /// ```
    pub fn move_clocks(&self, wall: Shift, monotonic: Shift) -> Result<(), LabError> {
        self.run().move_clocks(wall, monotonic).map_err(LabError::io("moving clocks"))
    }

    /// Kills the process if it runs, starts it again on the same port with the same data, and waits
    /// until it answers.
    pub async fn restart(&self) -> Result<(), LabError> {
        self.relaunch()?;
        self.ready().await
    }

    /// Kills the process if it runs, starts it again on the same port with the same data, and
    /// returns at once.
    pub fn relaunch(&self) -> Result<(), LabError> {
        self.kill();
        self.launch()
    }

    /// Waits until the server answers.
    ///
    /// Fails with the end of the log, if the server ends or does not answer within 60 s.
    pub async fn ready(&self) -> Result<(), LabError> {
        match timeout(START_LIMIT, self.until_ready()).await {
            Ok(result) => result.and_then(|()| self.store.settle(self.home.path())),
            Err(_) => Err(self.start_error(format!("no answer within {START_LIMIT:?}"))),
        }
    }

    /// The address to which the lab itself sends its requests.
    pub(crate) fn control(&self) -> SocketAddr {
        self.ports[self.store.control(&self.common)].addr()
    }

    /// Folder of its data and its log.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Asks the server for its numbers.
    ///
    /// The keys are:
    ///
    /// - **MariaDB:** `cmd.<name>` for each statement, as its `Com_<name>` counts them (a prepared
    ///   one counts as `stmt_execute` and as its own kind), `connections` to the database,
    ///   `waiting` for a lock of a row, `deadlocks` of rows since the start. The statements of this
    ///   method (`show_status`, `show_processlist`) are left out.
    /// - **PostgreSQL:** `cmd.<verb>` statements that clients sent and that ended well, by their
    ///   first word (a prepared one by its own, each time that it is executed), `connections`,
    ///   `waiting` for a lock. The statements and the connection of this method are left out.
    /// - **Redis:** `cmd.<name>` calls of each command, `clients`, `keys`, `pubsub_channels`,
    ///   `pubsub_clients`. The connection of this method counts as one of the `clients`. Its
    ///   commands (`auth`, `info`, `client|list`) are left out. The same holds for a sentinel.
    /// - **etcd:** `rpc.<Method>` calls (streams for `LeaseKeepAlive` and `Watch`),
    ///   `msg.<Method>` messages received, `sent.<Method>` messages sent, `watchers`, those of them
    ///   that still read the history (`watchers_behind`), `watch_streams`, `keys`, `leases`,
    ///   `proposals`, `bytes_in_use` of the database. The call of this method (`LeaseLeases`) is left out.
    /// - **ZooKeeper:** `requests.read` and `requests.update`, `packets_received`, `packets_sent`,
    ///   `bytes_received`, `ephemerals`, `watches`, `connections`, `connections_total`, `sessions`,
    ///   `sessions_expired`, `znodes`, `fired.created`, `fired.deleted`, `fired.changed` and
    ///   `fired.children` watches. This method counts as one of the `connections` and as one packet
    ///   each way. The data tree starts with 5 znodes of the server's own.
    pub async fn counters(&self) -> Result<Counters, LabError> {
        let (store, addr) = (Arc::clone(&self.store), self.control());
        self.ask(async move { store.counters(addr).await }).await
    }

    /// Returns the whole log of the server, over all its runs.
    pub fn log(&self) -> String {
        fs::read(self.log_path())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Returns whether it was started and has not ended since. A stopped one also runs.
    pub(crate) fn runs(&self) -> bool {
        self.end().is_none()
    }

    /// Runs a request to the server from a place that reaches it.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl Future<Output = T> + Send + 'static,
    ) -> T {
        match (&self.common.network, &self.node) {
            (Some(network), Some(_)) => network.control().run(question).await,
            _ => question.await,
        }
    }

    fn launch(&self) -> Result<(), LabError> {
        let home = self.home.path();
        let addrs: Vec<_> = self.ports.iter().map(Port::addr).collect();
        let command = self.store.command(&self.common, home, &addrs)?;
        let process = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())
            .and_then(|log| {
                let namespace = self.node.as_ref().map(Node::namespace);
                Process::spawn(&command, home, &log, self.user, namespace)
            })
            .map_err(LabError::io(format!("starting {}", self.store.scheme())))?;
        *self.run() = Run { pid: process.pid(), process: Some(process) };
        Ok(())
    }

    async fn until_ready(&self) -> Result<(), LabError> {
        loop {
            if let Some(end) = self.end() {
                return Err(self.start_error(end));
            }
            let (store, addr) = (Arc::clone(&self.store), self.control());
            let probe = self.ask(async move { store.probe(addr).await });
            if let Ok(Ok(())) = timeout(PROBE_LIMIT, probe).await {
                return Ok(());
            }
            sleep(PROBE_PAUSE).await;
        }
    }

    /// Returns how the process ended, if it does not run.
    fn end(&self) -> Option<String> {
        let mut run = self.run();
        let Some(process) = &mut run.process else { return Some("killed".to_owned()) };
        match process.exited() {
            Ok(status) => status.map(|status| format!("it ended with {status}")),
            Err(error) => Some(error.to_string()),
        }
    }

    fn start_error(&self, reason: String) -> LabError {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
        LabError::Start { server: self.store.scheme(), reason, log: shown }
    }

    fn lost_its_port(&self) -> bool {
        self.log().to_lowercase().contains("address already in use")
    }

    fn with_process(&self, act: fn(&Process)) {
        self.run().process.iter().for_each(act);
    }

    fn url_at(&self, addr: SocketAddr) -> String {
        let store = &self.store;
        format!("{}://{}{addr}{}", store.scheme(), store.login(), store.path())
    }

    fn log_path(&self) -> PathBuf {
        self.home.path().join("server.log")
    }

    /// A panic elsewhere cannot leave a half-done change here.
    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
