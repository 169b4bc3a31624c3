//! The SQL driver of distlock: a table of SQLite, PostgreSQL, MySQL or MariaDB as a fair queue.
//!
//! # Connect
//!
//! ```no_run
//! # mod distlock { pub use lock_core::*; pub use lock_sql as sql; }
//! use distlock::{Locks, StoreUrl, sql::{SqlConfig, SqlLock}};
//!
//! # async fn example() -> lock_core::Result<()> {
//! let config = SqlConfig::from_url(&StoreUrl::parse("sqlite:/var/lib/shop/locks.db")?)?;
//! let locks = Locks::new(SqlLock::connect(config).await?);
//! let guard = locks.lock("orders/42")?.acquire().await?;
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! ## Your own client
//!
//! [`SqlLock::with_client`] and [`SqlConfig::from_client`] take a pool: a `&sqlx::PgPool`,
//! `&MySqlPool` or `&SqlitePool`, of the version that `distlock::sql::client` is: sqlx 0.9. The
//! locks read the pool's options, and make connections of their own with them.
//!
//! ```no_run
//! # #[cfg(feature = "sqlite")] {
//! # mod distlock { pub use lock_core::*; pub use lock_sql as sql; }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use distlock::{Locks, sql::{SqlLock, client::SqlitePool}};
//!
//! let pool = SqlitePool::connect("sqlite:/var/lib/shop/shop.db").await?; // the program's own
//! let locks = Locks::new(SqlLock::with_client(&pool).await?);
//! # Ok(()) }
//! # }
//! ```
//!
//! The pool's connections are not shared. A renewal would wait for one as long as the program uses
//! all of them. Locks need session settings that a program does not expect, and PostgreSQL's pushes
//! need a connection for themselves. So allow for up to eleven connections to a server in addition
//! to the pool's.
//!
//! | of the pool | |
//! |---|---|
//! | host, socket, login, database, TLS | used, as they are when a connection is made: a new password from `set_connect_options` takes effect |
//! | PostgreSQL's `options`, such as `search_path` | used; the driver's own for isolation and timeouts take precedence. The application name is used if there is one |
//! | MySQL's character set, time zone and modes | not used |
//! | SQLite's file, VFS and PRAGMAs | used; but the journal is a write-ahead log, and `read_only`, `immutable`, `shared_cache`, exclusive locking and memory are switched off |
//! | `after_connect` and other hooks | **not called**: put a `SET search_path` into the options |
//! | its limits, its timeouts, its log | not used |
//! | `pool.close()` | does not affect the locks, and [`Locks::close`](lock_core::Locks::close) does not affect the pool. The locks keep a handle: a pool that is only dropped closes when the locks are dropped, too |
//!
//! A pool through PgBouncer is refused: name it with [`Server::pooler`]. A pool of SQLite must have
//! its file already, and none in memory. The write-ahead log stays with the program's file. A
//! program whose own connections set another `journal_mode`, or `locking_mode` to `EXCLUSIVE`,
//! keeps the locks out of the file, or is kept out.
//!
//! ## Your own transactions
//!
//! [`CommitHeld::commit`] commits a `sqlx::Transaction` of the same database and schema only while
//! the lock is held: no late holder commits. [`SqlLease::check_sql`] is its last statement, for
//! every other client.
//!
//! # Guarantees
//!
//! First come, first served. A waiter is woken by a push on PostgreSQL, and polls on the others.
//! Tokens always rise where commits are on the disk, and as a best effort elsewhere. A held lock
//! survives a restart of the server, and no failover. A holder learns of its loss by a push on
//! PostgreSQL, by its next renewal on the others, and by its own deadline. The server, or on SQLite
//! the machine's clock, ends a fixed term.
//!
//! [`fencing`](lock_core::Guarantees::fencing) and [`overlaps`](lock_core::Guarantees::overlaps)
//! say what the server's settings leave of that. The pages `docs/stores/sql.md` and
//! `docs/stores/sqlite.md` of the repository have the promises, limits and costs in full. A request
//! that a stalled server or a broken connection left behind may run later: the entry that it makes
//! ends with its TTL.
//!
//! # Options
//!
//! `sqlite:[path]`, `mysql://[user[:password]@]host[:3306][,host..]/database`, `mariadb://..` (the
//! same), `postgres://[user[:password]@]host[:5432][,host..][/database]`, `postgresql://..` (the
//! same). The fields of [`SqlConfig`] and of [`Server`] have the names of the options. The pages
//! have the tables. [`Tls`](lock_core::Tls), [`Timeouts`](lock_core::Timeouts),
//! [`User`](lock_core::User) and [`Secret`](lock_core::Secret) are those of all drivers.
//!
//! # Store set-up and rights
//!
//! A user must be allowed to read, insert, update and delete rows of the tables below, and to
//! create them unless they are there. [`schema`] returns the statements that create them.
//! PostgreSQL finds the tables by its `search_path`: users with separate schemas have separate
//! locks. The users of a SQLite file must be able to write to it and to its directory.
//!
//! Servers and settings that cannot keep locks are refused for good, as
//! [`Rejected`](lock_core::Error::Rejected) with the reason: `docs/stores/sql.md` lists them. A
//! pooler is recognised by a start-up option (`options=-c distlock.direct=yes`) that poolers refuse
//! or drop, unless [`Server::pooler`] says how it pools: then each message brings its settings, and
//! asks for the server and the database that it has come to. Settings that weaken locks are
//! [`cautions`](lock_core::Guarantees::cautions).
//!
//! # Implementation
//!
//! A name's queue is a few rows of a table, one for each attempt, in the order of their tokens. The
//! holder is not recorded: the [queue rule](lock_core::queue) derives it from the rows. Each row,
//! also that of a waiting attempt, has an expiry by the database's own clock, and its client renews
//! it. A session lock of the database itself (`GET_LOCK`, advisory locks) would end with a
//! connection, and has no token. No connection and no transaction is held while a lock is held or
//! waited for.
//!
//! Each operation is one transaction in one message, for every kind of lock. To acquire: count the
//! name's counter up, which also keeps others out of the queue until the transaction ends; remove
//! expired rows; insert the own row with that token; read the queue. To release: delete the row. A
//! row counts until it is removed, and is never renewed after its expiry. So no holder comes back
//! after the next one was let in. A request that is sent again after a lost reply finds its own row
//! by the attempt's id. A set has as many of the 256 counters to itself during its transaction. One
//! statement renews up to 500 rows; on a server it leaves out the rows that another transaction has
//! locked.
//!
//! PostgreSQL and SQLite plan a statement once for each connection, and again after a change of the
//! tables. A message to PostgreSQL is refused as a whole if the session has forgotten one of its
//! statements (SQLSTATE `26000`) or a column has another type by now (`0A000`): it is sent again
//! with all that it needs. Behind a pooler, each message is planned anew.
//!
//! ## What goes first
//!
//! A client has at most ten requests on their way to a server, and all clients of a process
//! together have one to a SQLite file. The others wait in this process, in order, and leave the
//! line when they are cancelled. Renewals go first: of several connections of a client to a server,
//! one that a renewal has used last is left to them. Releases, revokes, conversions and the looks
//! of waiters come next, and then everything else: at most eight acquires are on their way at once.
//! A wait in this line is no outage. It fails only when the database has answered nothing for as
//! long as the request insists, which is the TTL for an acquire.
//!
//! Of releases at the same time, the first four are sent one by one (SQLite: the first one), and
//! those that come meanwhile go together, a hundred with each request. The same goes for the
//! entries that cancelled and failed attempts leave. A release is tried again until one TTL after
//! the lock's own end, unless the database refuses it for good.
//!
//! A statement ends by itself on the server: after 2 s of waiting for a lock, 3 s in all
//! (`lock_timeout`, `statement_timeout`; `innodb_lock_wait_timeout`, `lock_wait_timeout`,
//! `max_statement_time` or, for statements that only read, `max_execution_time`). A request that
//! has given up before keeps its connection until then, and there are at most ten more such
//! connections. None of these limits ends a commit of PostgreSQL that waits for a standby
//! (`synchronous_standby_names`): its connection counts as long as the server says that commits
//! wait.
//!
//! Each connection is checked when it is made, and resolves the host's name anew. A server that
//! takes no writes is [`Unavailable`](lock_core::Error::Unavailable) with that reason; when it
//! reports this later (PostgreSQL `25006`; MySQL 1290, 1792, 1836), the client ends its connections
//! to it and connects anew.
//!
//! ## Waiters
//!
//! PostgreSQL tells the waiters that are let in by `NOTIFY`, and besides them at most a writer
//! behind readers. An attempt that leaves has the name's counter to itself until its transaction
//! ends. A connection for pushes that has died in silence is replaced within 12 s.
//!
//! The others poll, and so does PostgreSQL with [`Pooler::Transaction`] at MySQL's pace: one query
//! per client for up to 500 queues that are due, however many of its attempts wait for a name. A
//! client whose first attempt is at place *n* of a queue waits between half and the whole of *n*
//! times the step (SQLite 10 ms, MySQL 25 ms), at most 250 ms or 1 s. While the only holder that is
//! not this client's is new, the step is shorter: a quarter of the time since this client first saw
//! it, from 1 ms on. So a short hold is followed at once, and each holder costs at most 30 looks
//! more, and as many for each wait that begins while no other of this client waits for the name.
//! The head also looks 2 ms after the expiry of the entry ahead of it.
//!
//! Within one process (SQLite: all clients of one path, also by symbolic links; MySQL: all that
//! name the server and the database in the same way) a release wakes the first in line at once. An
//! observer of an election looks every 25 to 50 ms on SQLite, every 125 to 250 ms on MySQL, and on
//! PostgreSQL every 1 to 2 s for leaders that died. It is told the leader and the newest value at
//! each look.
//!
//! ## Tables (version 1)
//!
//! They are created on first use, or by the statements of [`schema`]. Names are bytes, times are
//! microseconds.
//!
//! | table | content |
//! |---|---|
//! | `distlock_v1_slots` | counters for tokens: a name uses the one of its hash (FNV-1a) among 256, on SQLite there is one; row -1 holds what the [token floor](lock_core::TokenFloor) was raised to, which the counters are above |
//! | `distlock_v1_entries` | the holders and waiters: `name`, `token`, `attempt` (an id of 16 bytes), `client`, `kind` (0 exclusive, 1 shared, 2 permits) with `weight` and `lim`, `ttl`, `expires`, `since`, `holder`, `value` and its `version`, `granted` |
//! | `distlock_v1_marks` | work that is done once per period: `name`, `token`, `host`, when it was `done`, when the period `ends` |
//! | `distlock_v1_meta` | SQLite: the last hundred boots that have used the file, and the time namespace of its clock |
//!
//! `granted` is when the lock was granted, for operators. A lock that is granted at once has it
//! from its first request. An attempt that has waited learns of the grant by a read, and its next
//! renewal writes the time. A shorter hold has none. An observer of an election learns of a leader
//! sooner, so it sees no such time for a leader that has waited.
//!
//! Counters are shared, and a name keeps its counter if all its rows are deleted. Expired rows that
//! were not removed are swept every minute with a renewal of any client. That reads the whole
//! table, which takes 2 to 10 ms for 10,000 rows: an index on their expiry would cost more, with
//! each renewal.

#![cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::large_futures))]

mod acquire;
mod commit;
mod config;
mod election;
mod error;
mod layout;
mod lease;
mod lock;
mod operators;
mod queue;
mod session;
mod wire;

/// The client library, in the version that this driver uses.
pub use sqlx as client;

#[cfg(feature = "properties")]
#[doc(hidden)]
pub use crate::queue::schedule::pace;
#[cfg(all(feature = "properties", feature = "sqlite"))]
pub use crate::wire::faults::Faults;
pub use crate::{
    commit::CommitHeld,
    config::{
        SqlConfig, Target,
        server::{Failover, Pooler, Server},
    },
    layout::{dialect::Dialect, schema::schema},
    lease::SqlLease,
    lock::SqlLock,
    wire::{given_client::GivenPool, given_transaction::GivenTransaction},
};
