//! Private servers of every store, and ways to break them.
//!
//! [`Etcd`], [`MariaDb`], [`Postgres`], [`Redis`] and [`ZooKeeper`] each start one real server from
//! the system's binary, on a free loopback port and with a data directory of its own. All are
//! [`Server`]s: they can be stopped, killed, restarted with their data and asked for their
//! counters, and their clocks can be moved. A [`Proxy`] between a client and a server breaks the
//! network, and a [`PgBouncer`] stands before a PostgreSQL.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use lock_lab::{Proxy, Redis};
//!
//! let redis = Redis::start().await?;
//! let proxy = Proxy::start(redis.addr()).await?;
//! let url = redis.url_via(&proxy); // give this to the client under test
//! proxy.cut(); // no reset, no refusal: silence
//! redis.restart().await?; // kill -9, same port, same data
//! proxy.heal();
//! # Ok(()) }
//! ```
//!
//! Tests and benches that run on several stores name them by the schemes of their URLs:
//! [`AnyStore`] is a store of any kind, [`AnyServer`] a server of any kind.
//!
//! # Several Redis servers
//!
//! [`RedisSentinels`] is a primary with replicas and three sentinels, which promote a replica when
//! the primary is gone. [`RedisSentinels::pause_replication`] keeps writes from a replica, so that
//! a failover loses them. [`IndependentRedis`] is several servers without a link between them, as
//! Redlock needs them: the clocks of each can be moved. [`RedisCluster`] is three primaries with a
//! replica each, which share the slots; [`RedisCluster::migrate`] moves a slot. All of them run on
//! 127.0.0.1, or in a [`Network`], where a [`Network::split`] makes two primaries.
//!
//! # Clusters and cuts
//!
//! A [`Network`] is made of network namespaces. Servers, [`EtcdCluster`] and [`ZooKeeperCluster`]
//! stand in it, each node in a place of its own, and so do clients, each on a [`Side`]. Any place
//! can be cut off from any other, in one direction too.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use lock_lab::{Network, ZooKeeperCluster};
//!
//! let network = Network::new()?;
//! let zookeeper = ZooKeeperCluster::start(&network).await?;
//! let (left, right) = (network.side()?, network.side()?);
//! // A follower and a client on one side, all others on the other one.
//! let leader = zookeeper.leader().await?;
//! let follower = (leader + 1) % 3;
//! let rest = [zookeeper.peers(follower), vec![right.place()]].concat();
//! network.split(&[left.place(), zookeeper.place(follower)], &rest)?;
//!
//! let url = zookeeper.url_of(&[follower]);
//! left.run(async move { /* a client of `url` */ }).await;
//! network.heal()?;
//! # Ok(()) }
//! ```
//!
//! Networks need root, or a user namespace: `unshare --user --map-root-user cargo test ..`, in
//! which MariaDB and PostgreSQL do not start. They also need the packages `iproute2` and
//! `iptables`. If the machine permits no network, test programs of [`network_tests!`] say so: a
//! test that did not run for this reason counts as ignored, and fails if `CI` is set.
//!
//! # TLS and logins
//!
//! An [`Authority`] issues certificates for servers and clients, also expired ones. A server or a
//! cluster of any kind with [`Builder::tls`](Builder#method.tls) demands TLS of its clients. Each
//! can demand logins, too: [`Etcd::demand_logins`], `user` and `password` of a Redis, `login` of a
//! [`ZooKeeper`]; databases always do. The lab's own requests go on without either.
//!
//! # What tests need
//!
//! A [`Pool`] hands a server from test to test. [`in_own_process`] gives a test a process of its
//! own. Each kind of server has an `installed`, such as [`Redis::installed`], and networks have
//! [`Network::available`]; [`etcdctl`] finds etcd's own client. The errors name the missing part and
//! the command that installs it.
//!
//! # What stays behind
//!
//! Nothing of a server. Dropping a server kills it and deletes its data, also when a test panics.
//! If this whole process is killed with SIGKILL, a watcher beside each server does the same; only
//! 56 bytes of System V shared memory of a PostgreSQL can stay then. Nothing of a network, at any
//! end of this process: its namespaces have no names.
//!
//! The first MariaDB and the first PostgreSQL of a release leave a template on the machine, so that
//! later ones start sooner: `lock-lab-templates-<uid>` in the folder for temporary files, 25 MB
//! each. It may be deleted at any time.
//!
//! # The machine
//!
//! Linux: the processes of a server are found in `/proc`. Clocks are moved on x86_64 only. MariaDB
//! and PostgreSQL refuse to run as root: if the lab is root, they run as the user of their package,
//! or else as `nobody`, who must be able to reach the folder for temporary files.

mod any_store;
mod ask;
mod backup;
mod builder;
mod certificates;
mod clock;
mod cluster;
mod counters;
mod error;
mod etcd;
mod long_run;
mod mariadb;
mod network;
mod options;
mod own_process;
mod pgbouncer;
mod pool;
mod port;
mod postgres;
mod process;
mod process_state;
mod program;
mod proxy;
mod redis;
mod server;
mod sql_account;
mod sql_client;
mod store;
mod system_user;
mod template;
mod tls;
mod zookeeper;

pub use self::{
    any_store::{AnyServer, AnyStore, SERVERS},
    backup::Backup,
    builder::Builder,
    certificates::{Authority, Issued},
    clock::Shift,
    cluster::{Cluster, Member},
    counters::Counters,
    error::LabError,
    etcd::{Etcd, EtcdCluster},
    long_run::{in_a_long_run, size},
    mariadb::MariaDb,
    network::{Network, Place, Side, network_trial, run_network_tests},
    own_process::in_own_process,
    pgbouncer::PgBouncer,
    pool::{Lent, Pool},
    postgres::Postgres,
    process_state::{is_gone, state_of},
    program::etcdctl,
    proxy::{Proxy, ProxyStats},
    redis::{
        IndependentRedis, Redis, RedisCluster, RedisClusterBuilder, RedisSentinels,
        RedisSentinelsBuilder, Sentinel,
    },
    server::Server,
    zookeeper::{ZooKeeper, ZooKeeperCluster},
};
