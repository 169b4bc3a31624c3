//! The options of a private ZooKeeper.

use std::{
    ffi::OsString,
    fmt::Write as _,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{counters, encryption, four_letter, protect};
use crate::{
    Counters, LabError, Place,
    options::Common,
    port::addr_in,
    store::{Answer, Arguments, Store},
};

const INSTALL: &str = "apt-get install zookeeper";
const INSTALL_JAVA: &str = "apt-get install default-jre-headless";
/// Its ports for the other nodes: followers of a leader, and elections. A node alone opens neither.
const FOLLOW: usize = 1;
const ELECT: usize = 2;
/// The port that speaks TLS alone, if it speaks TLS.
pub(super) const SECURE: usize = 3;
/// Debian's folder for jars. ZooKeeper's own jar names all others that it needs, except for
/// logging.
const JARS: &str = "/usr/share/java";
const NEEDED: [&str; 2] = ["zookeeper.jar", "slf4j-simple.jar"];
/// Netty's jars that ZooKeeper's own jar does not name.
const NETTY: [&str; 2] = ["netty-codec.jar", "netty-resolver.jar"];
const DATA: &str = "data";
const MAIN: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

#[derive(Clone, Debug)]
pub struct ZooKeeperOptions {
    pub(super) tick: Duration,
    pub(super) settings: Vec<(String, String)>,
    /// The user and the password to which the root belongs.
    pub(super) login: Option<(String, String)>,
    /// Its number and the places of all nodes, if it is one of a cluster.
    member: Option<(usize, Vec<Place>)>,
}

impl Default for ZooKeeperOptions {
    fn default() -> Self {
        let tick = Duration::from_millis(500);
        Self { tick, settings: Vec::new(), login: None, member: None }
    }
}

impl ZooKeeperOptions {
    pub(super) fn join(&mut self, index: usize, places: &[Place]) {
        self.member = Some((index, places.to_vec()));
    }

    fn config(&self, home: &Path, addrs: &[SocketAddr]) -> String {
        let (addr, data) = (addrs[0], home.join(DATA));
        let (tick, host, port) = (self.tick.as_millis(), addr.ip(), addr.port());
        let mut config = format!(
            "tickTime={tick}\ninitLimit=10\nsyncLimit=4\ndataDir={}\nclientPort={port}\n\
             clientPortAddress={host}\nadmin.enableServer=false\n\
             4lw.commands.whitelist=*\nmaxClientCnxns=0\n",
            data.display(),
        );
        for (index, place) in self.nodes() {
            let [follow, elect] = [FOLLOW, ELECT].map(|port| addr_in(*place, port).port());
            let _ = writeln!(config, "server.{index}={place}:{follow}:{elect}");
        }
        for (key, value) in &self.settings {
            let _ = writeln!(config, "{key}={value}");
        }
        config
    }

    fn class_path(&self, common: &Common) -> Result<String, LabError> {
        let netty = NETTY.iter().filter(|_| common.tls.is_some());
        let jars: Vec<_> =
            NEEDED.iter().chain(netty).map(|name| format!("{JARS}/{name}")).collect();
        match jars.iter().find(|jar| !Path::new(jar).is_file()) {
            Some(jar) => Err(LabError::Missing { binary: jar.clone(), install: INSTALL }),
            None => Ok(jars.join(":")),
        }
    }

    /// The nodes of its cluster by their numbers, which must be above 0 for ZooKeeper.
    fn nodes(&self) -> impl Iterator<Item = (usize, &Place)> {
        self.member.iter().flat_map(|(_, places)| (1..).zip(places))
    }

    /// Writes the files of the program: its configuration, and the number of a node.
    fn write(&self, home: &Path, config: String) -> io::Result<PathBuf> {
        let (file, data) = (home.join("zoo.cfg"), home.join(DATA));
        fs::write(&file, config)?;
        if let Some((index, _)) = &self.member {
            fs::create_dir_all(&data)?;
            fs::write(data.join("myid"), (index + 1).to_string())?;
        }
        Ok(file)
    }
}

impl Store for ZooKeeperOptions {
    fn scheme(&self) -> &'static str {
        "zookeeper"
    }

    fn ports(&self, common: &Common) -> usize {
        if common.tls.is_some() { SECURE + 1 } else { 1 }
    }

    fn login(&self) -> String {
        let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        let login = self.login.as_ref();
        login
            .map(|(user, password)| format!("{}:{}@", encoded(user), encoded(password)))
            .unwrap_or_default()
    }

    fn installed(&self, common: &Common) -> Result<(), LabError> {
        common.program("java", INSTALL_JAVA)?;
        self.class_path(common).map(drop)
    }

    /// The arguments are for the JVM: the program itself takes only the name of its file.
    fn command(&self, common: &Common, home: &Path, addrs: &[SocketAddr]) -> Arguments {
        let java = common.program("java", INSTALL_JAVA)?;
        let jars = self.class_path(common)?;
        let mut config = match &common.tls {
            Some(tls) => encryption::config(tls, home, addrs[SECURE])?,
            None => String::new(),
        };
        config += &self.config(home, addrs);
        let file = self.write(home, config).map_err(LabError::io("writing zoo.cfg"))?;
        let mut command = vec![java.into_os_string()];
        command.extend(jvm_flags(common.in_memory).into_iter().map(OsString::from));
        command.extend(common.args.iter().cloned());
        command.extend(["-cp".into(), jars.into(), MAIN.into(), file.into()]);
        Ok(command)
    }

    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()> {
        Box::pin(async move {
            // Before it serves, it says "This ZooKeeper instance is not currently serving
            // requests".
            let reply = four_letter::send(addr, "srvr").await?;
            if !reply.contains("\nMode: ") {
                return Err(LabError::Reply { server: "zookeeper", reply });
            }
            match &self.login {
                Some((user, password)) => protect::root(addr, user, password).await,
                None => Ok(()),
            }
        })
    }

    fn counters(&self, addr: SocketAddr) -> Answer<'_, Counters> {
        Box::pin(counters::read(addr))
    }
}

fn jvm_flags(in_memory: bool) -> Vec<&'static str> {
    let mut flags = vec![
        "-Xms64m",
        "-Xmx256m",
        "-XX:+UseSerialGC",
        // Leaves files in /tmp when it is killed.
        "-XX:-UsePerfData",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        // By default, an empty container is deleted within a minute, which is too long for tests.
        "-Dznode.container.checkIntervalMs=500",
        "-Dznode.container.maxPerMinute=100000",
    ];
    if !in_memory {
        // Starts sooner and runs slower.
        flags.push("-XX:TieredStopAtLevel=1");
    }
    flags
}
