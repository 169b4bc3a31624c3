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
//! A pool through PgBouncer is refused, as below. A pool of SQLite must have its file already, and
//! none in memory. The write-ahead log stays with the program's file. A program whose own
//! connections set another `journal_mode`, or `locking_mode` to `EXCLUSIVE`, keeps the locks out of
//! the file, or is kept out. SQLite has one writer: if the program writes in one transaction for
//! longer than a TTL, the locks are lost. So a separate file for them is better.
//!
//! # Guarantees
//!
//! First come, first served. A waiter is woken by a push on PostgreSQL, and polls on the others.
//! Tokens always rise where commits are on the disk, and as a best effort elsewhere. A held lock
//! survives a restart of the server, and no failover. A holder learns of its loss by a push on
//! PostgreSQL, by its next renewal on the others, and by its own deadline. The server, or on SQLite
//! the machine's clock, ends a fixed term.
//!
//! - Tokens rise as long as commits stay: a failover to a replica that lags rolls locks and tokens
//!   back. With `fsync = off`, `innodb_flush_log_at_trx_commit` other than 1, or a binary log with
//!   `sync_binlog` other than 1, a crash of the machine may do so. The
//!   [guarantees](lock_core::Guarantees::fencing) say so then.
//! - A held lock survives a restart of the server, if its commits do, but not the loss of the
//!   machine: no other node is known to have it
//!   ([`Survives::failover`](lock_core::Survives::failover) is false).
//! - If a server's clock jumps forward, locks and waiting attempts end early. Their owners learn it
//!   from their next renewal, and until then two may hold one lock. Only tokens help against that.
//!   If a server's clock is set back, a dead holder's lock stays for as much longer.
//!   A failover is a jump by the difference of the two servers' clocks.
//! - A request that a stalled server or a broken connection left behind may run later: the entry
//!   that it makes ends with its TTL.
//! - On SQLite and MySQL a holder learns of a revoked lock by its next renewal: after an eighth of
//!   its TTL at the most. A fixed term is not renewed: its holder learns it at the end of the term.
//! - If a SQLite file is deleted or replaced while it is in use, its locks are gone, and tokens
//!   start anew. Holders learn it from their next renewal, and until then two may hold one lock.
//!   The same if a copy is restored in the file's place and the log (`-wal`, `-shm`) is deleted.
//!   The log must go with its file. If it stays, SQLite may apply the old log to the new file. Then
//!   it is not known which locks are in it, and whether holders are told. Or the new file cannot be
//!   used (`Unavailable`) until all clients of the old one have noticed, by their next request.
//! - If the counters are emptied (`TRUNCATE distlock_v1_slots`), they begin anew above the tokens of
//!   all entries, so no attempt passes a holder. But tokens of locks that were released may come
//!   again: raise the [token floor](lock_core::TokenFloor).
//! - PostgreSQL finds the tables by its `search_path`: users with separate schemas have separate
//!   locks.
//! - A queue is read as a whole: an attempt that enters a queue of a thousand gets a thousand rows.
//!   When one of a thousand permits is released, PostgreSQL adds up the others, for some
//!   milliseconds.
//! - A leader's value has at most 512 KiB, and a holder's description 64 KiB: longer ones are refused
//!   before they are sent. MySQL takes a set of a hundred such descriptions if `max_allowed_packet`
//!   is 16 MB.
//!
//! ## A fenced write in the same database
//!
//! ```sql
//! UPDATE orders SET stock = 99, fence = :token WHERE id = 42 AND fence <= :token
//! ```
//!
//! If no row was changed, a holder with a greater token was there: the lock is lost, and nothing is
//! written.
//!
//! # Options
//!
//! `sqlite:[path]`, `mysql://[user[:password]@]host[:3306][,host..]/database`, `mariadb://..` (the
//! same), `postgres://[user[:password]@]host[:5432][,host..][/database]`, `postgresql://..` (the
//! same)
//!
//! | option | meaning | default | allowed |
//! |---|---|---|---|
//! | `ttl` | how long a lock outlives its last renewal | `15s` | `500ms` to `24h` |
//! | `tls` | of a server: whether to encrypt; `prefer`: if the server can, without a check of its certificate. MySQL's usual login needs TLS, unless the server has checked the password lately | `prefer` | `off`, `prefer`, `verify` |
//! | `ca` | with `tls=verify`: a file with authorities to trust, besides those of the system | those of the system | a file in PEM |
//! | `cert`, `key` | with `tls=verify`: the certificate that the client shows, and its key | none | files in PEM, both |
//! | `server_name` | with `tls=verify`: the name in the certificate of each server | its host | a DNS name or an address |
//! | `user_file` | of a server: a file with the user; it needs a database in the URL | none | a path |
//! | `user_env` | of a server: the environment variable with the user; it needs a database in the URL | none | a name |
//! | `password_file` | of a server: a file with the password | none | a path |
//! | `password_env` | of a server: the environment variable with the password | none | a name |
//! | `connect_timeout` | longest time until one server is reached and logged in to | that of the request, at least `1s`; with several hosts `1s` | `100ms` to `1m` |
//! | `request_timeout` | longest wait for the answer to one request, which is then sent again; more than the default has no effect | a third of the TTL, at most `2s`, or `4s` for a release; while connecting `3.5s`. The server itself ends a request after `3s` | `100ms` to `1m` |
//! | `failover` | `managed`: another server may take over, and somebody else fences the former primary | none | `managed` |
//!
//! SQLite's path may be relative, as in `sqlite:locks.db`: to the working directory at the time of
//! connecting. `~` is not expanded.
//!
//! `sqlite:` alone is `$XDG_STATE_HOME/distlock/locks.db`, or `~/.local/state/distlock/locks.db`,
//! with the home from the user database if the environment has none. It excludes **this user's**
//! processes from each other, and no others: only the owner may enter the directory that is
//! created. [`SqlLock::path`] and the trace event `opened` tell the path. To exclude users from
//! each other, name a path that all of them may write:
//!
//! ```text
//! install -d -m 2770 -g shop /var/lib/shop
//! install -m 660 -g shop /dev/null /var/lib/shop/locks.db
//! ```
//!
//! SQLite's companion files (`-wal`, `-shm`) get the file's mode, and the directory's group by its
//! set-group-id bit. They come and go, so the group must be able to write to the directory.
//!
//! The fields of [`SqlConfig`] and of [`Server`] have the same names.
//!
//! User, password and certificates are read for each new connection. So a login that changes while
//! locks are held costs none of them, if the files have the new one within the TTL after the server
//! has ended the old connections. Until the server knows the new one, and while only one of user and
//! password is new, the client logs in with the one that was accepted last. A connection that lacks
//! a right is replaced if the files have another login: servers keep the connections of a user that
//! they have removed. The first login of a burst goes alone, and a refused one is not
//! repeated for one to two seconds: a server may lock an account after a few.
//!
//! With `tls=prefer` a machine on the way can ask for the password and get it. Use `tls=verify` where
//! others can reach the network. `PGOPTIONS` of the environment is refused: a `search_path` in it
//! would lead to other tables.
//!
//! The client library checks a certificate for the host that it connects to. With another
//! `server_name` it connects to a socket of this process instead, and the client copies the encrypted
//! bytes between that and the server. The socket is in a directory of its own in the directory for
//! temporary files (`TMPDIR`), which only this user may enter. It is removed when the client is
//! closed or dropped; a process that a signal ends before that leaves it there.
//!
//! # Store set-up and rights
//!
//! A user must be allowed to read, insert, update and delete rows of the tables below, and to
//! create them unless they are there. [`schema`] returns the statements that create them.
//!
//! ## SQLite
//!
//! Linux only. There is no server's clock, so the machine's boot clock counts. It cannot be set,
//! and it counts a suspend. The file says which time namespace it belongs to, and a process in
//! another one is refused. An entry that would live for longer than its TTL is of an earlier boot of
//! the machine: the next connect removes it.
//!
//! Network file systems are refused, since SQLite cannot keep two machines apart there. A file
//! system that is not known is one of the [`cautions`](lock_core::Guarantees::cautions). A file with
//! a second name, by a hard link or a mount of the file alone, is refused: SQLite would have another
//! log for each name. Symbolic links and mounts of its folder are not.
//!
//! The file stays open until the last handle is dropped, also after `close`. A separate thread
//! closes it. Up to a second after the last drop, of blocking locks too, SQLite's log (`-wal`, some
//! 4 MB at the most) and `-shm` are still beside the file. A process that ends before that leaves
//! them there, as short tools mostly do. That is harmless: the next client of the file uses them.
//!
//! The journal is a write-ahead log with `synchronous=NORMAL`: a kill -9 loses nothing. A power cut
//! may undo the last transactions. But then the machine boots, all holders are gone, and tokens jump
//! by 2^32 when a boot id is new, so they rise all the same. A write takes a fraction of a
//! millisecond. A process that is stopped (SIGSTOP) in the middle of one keeps all others out until
//! it goes on.
//!
//! ## Servers
//!
//! Each connection is checked when it is made. A server that takes no writes, because it is a
//! standby (`pg_is_in_recovery()`) or read-only (`default_transaction_read_only`, `read_only`,
//! `innodb_read_only`), is [`Unavailable`](lock_core::Error::Unavailable) with that reason. When a
//! server reports this later (PostgreSQL `25006`; MySQL 1290, 1792, 1836), the client ends its
//! connections to it and connects anew. Each connection resolves the host's name anew, so it
//! follows a name that moves to the new primary. If a name has several addresses, the first one
//! that accepts a connection counts.
//!
//! **Several hosts** are the servers of one deployment, and need `failover=managed`. This says that a
//! program beside the servers, such as Patroni, moves the role of the primary, and makes sure that
//! the former one takes no writes before the next one does. The client asks all hosts at once, and
//! uses the one that takes writes. It asks again when that one fails or becomes read-only. After
//! that it checks all held locks, and each that the new primary does not know is lost
//! ([`LossReason::Failover`](lock_core::LossReason::Failover)). A standby that lags forgets the
//! newest grants and tokens, so tokens are a best effort. A client that finds two hosts that take
//! writes uses neither. On PostgreSQL it also refuses a former primary, by its timeline, and servers
//! of two deployments, by their system identifiers.
//!
//! Settings that weaken locks, such as `fsync = off` or `sync_binlog` other than 1, are
//! [`cautions`](lock_core::Guarantees::cautions).
//!
//! These are refused for good, as [`Rejected`](lock_core::Error::Rejected) with the reason:
//!
//! - **PostgreSQL through a connection pooler**, such as PgBouncer, in any mode. It would hand one
//!   client's statements to several sessions: `LISTEN` would receive nothing, and settings such as
//!   `synchronous_commit`, on which tokens rely, would get lost. It is recognised by a start-up
//!   option (`options=-c distlock.direct=yes`) that poolers refuse or drop. A client needs no
//!   pooler: it has at most eleven working connections, and mostly two or three.
//! - **MySQL and MariaDB with `binlog_format=STATEMENT`** and a binary log: InnoDB refuses every
//!   write at `READ COMMITTED` then (error 1665).
//! - **Galera** (`wsrep_on`): each node ends locks by its own clock, and one node may grant a lock
//!   before it learns that another has granted it.
//! - **Group replication of MySQL with several primaries**
//!   (`group_replication_single_primary_mode=OFF`), for the same reason.
//!
//! Not recognised, and not supported: proxies that share MySQL's sessions among clients.
//!
//! A statement ends by itself on the server: after 2 s of waiting for a lock, 3 s in all
//! (`lock_timeout`, `statement_timeout`; `innodb_lock_wait_timeout`, `lock_wait_timeout`,
//! `max_statement_time` or, for statements that only read, `max_execution_time`). A request that
//! has given up before keeps its connection until then, and there are at most ten more such
//! connections. So a stalled server sees at most 21 connections of a client, however many locks
//! it asks for and however often. None of these limits ends a commit of PostgreSQL that waits for a
//! standby (`synchronous_standby_names`). So its connection counts as long as the server says that
//! commits wait.
//!
//! Connections that no request has used for 20 s end, except for one.
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
//! by the attempt's id.
//!
//! | | acquire | release | hand-over |
//! |---|---|---|---|
//! | PostgreSQL | 1 message, 4 statements | 1 message, 3 statements | a push, and one query |
//! | MySQL | 1 message, 6 statements with `START` and `COMMIT` | 1 statement | by a look, see below |
//! | SQLite | 1 transaction of 4 statements | 1 statement | by a look, see below |
//!
//! A permit, a reader and a leader cost the same. A leader's release has two statements more, since
//! the leader's last value is kept for a minute for observers that have not seen it. A set of up to
//! 100 names is taken like one lock, if all are free (shared ones also beside others), with one
//! statement more on PostgreSQL. During its transaction it has as many of the 256 counters to
//! itself. Its locks are released one by one.
//!
//! One statement renews up to 500 rows: every third of a TTL on PostgreSQL, every eighth on the
//! others, where only the renewal tells a holder that its lock was revoked.
//! On a server it leaves out the rows that another transaction has locked, so none waits for them.
//!
//! ## What goes first
//!
//! A client has at most ten requests on their way to a server, and all clients of a process
//! together have one to a SQLite file. The others wait in this process, in order, and leave the
//! line when they are cancelled. Renewals go first, on a connection that a client of a server keeps
//! for them as soon as it has several. Releases, revokes, conversions and the looks of waiters come
//! next, and then everything else: at most eight acquires are on their way at once. So 4,000
//! acquires at once delay a renewal by a few requests. A wait in this line is no outage. It fails
//! only when the database has answered nothing for as long as the request insists, which is the TTL
//! for an acquire.
//!
//! Of releases at the same time, the first four are sent one by one (SQLite: the first one).
//! Releases that come meanwhile go together, a hundred with each request: 10,000 locks that are
//! dropped or lost at once are removed by about 100 requests. The same goes for the entries that
//! cancelled and failed attempts leave.
//!
//! A release is tried again until one TTL after the lock's own end, unless the database refuses it
//! for good, for example because a right is missing. The lock is no longer renewed, so it is free
//! after its TTL in any case.
//!
//! A wait that ends without the lock reads the first 256 entries of the queue, and the database
//! counts the entries before its own: a pass over the index from the head to there, and no further.
//! Behind more than 256 holders the place is not known.
//!
//! ## Waiters
//!
//! PostgreSQL tells the waiters that are let in by `NOTIFY`, and besides them at most a writer
//! behind readers. Each client has one more connection for that, from its first lock, wait or
//! observer on. An attempt that leaves has the name's counter to itself until its transaction ends.
//! A look every 2.5 to 5 s, and one after each reconnect, makes up for a lost push. A
//! connection for pushes that has died in silence is replaced within 12 s.
//!
//! The others poll: one query per client for all queues that are due, however many of its attempts
//! wait for a name. A client whose first attempt is at place *n* of a queue waits between half and
//! the whole of *n* times the step, at most the longest pause. The head also looks 2 ms after the
//! expiry of the entry ahead of it.
//!
//! | | step | longest | a look |
//! |---|---|---|---|
//! | SQLite | 10 ms | 250 ms | `data_version`: a number in shared memory; the queue only if anything was changed |
//! | MySQL | 25 ms | 1 s | the queues that are due, with up to 8 connections in use at a time |
//!
//! Within one process (SQLite: all clients of one path, also by symbolic links; MySQL: all that
//! name the server and the database in the same way) a release wakes the first in line at once,
//! without waiting for a look. An observer of an election looks every 25 to 50 ms on SQLite, and
//! every 125 to 250 ms on MySQL. On PostgreSQL it gets pushes, and looks every 1 to 2 s for leaders
//! that died.
//!
//! ## Tables (version 1)
//!
//! They are created on first use, or by the statements of [`schema`] where the user may not create
//! them. Names are bytes, times are microseconds.
//!
//! | table | content |
//! |---|---|
//! | `distlock_v1_slots` | counters for tokens: a name uses the one of its hash (FNV-1a) among 256, on SQLite there is one; row -1 holds what the [token floor](lock_core::TokenFloor) was raised to, which the counters are above |
//! | `distlock_v1_entries` | the holders and waiters: `name`, `token`, `attempt` (an id of 16 bytes), `client`, `kind` (0 exclusive, 1 shared, 2 permits) with `weight` and `lim`, `ttl`, `expires`, `since`, `holder`, `value` and its `version`, `granted` |
//! | `distlock_v1_values` | earlier values of leaders, for a minute |
//! | `distlock_v1_meta` | SQLite: the last hundred boots that have used the file, and the time namespace of its clock |
//!
//! `granted` is when the lock was granted, for operators. A lock that is granted at once has it
//! from its first request. An attempt that has waited learns of the grant by a read. So its client
//! writes the time once the lock has been held for 250 ms, in a request of its own that no caller
//! waits for. A shorter hold has none. An observer of an election learns of a leader sooner, so it
//! sees no such time for a leader that has waited.
//!
//! Tables of earlier versions have no such column. Older clients do not notice that it is added:
//!
//! - SQLite: by the next connection to the file.
//! - PostgreSQL: by a client that connects, if its user may do that. It waits for other
//!   transactions for 0.2 s at the most, and so do the clients behind it.
//! - MySQL: only by the statements of [`schema`], since all clients would wait for 1 s there.
//!
//! While a long transaction, such as a dump, has read the table, the statements of `schema` fail
//! after this time (`Lock wait timeout exceeded`; on PostgreSQL `lock timeout`). Run them again
//! later. A client without the column locks all the same, and looks for it every 5 to 10 s. A
//! client whose column disappears, as when an old dump is restored, does so from then on.
//!
//! Nothing stays for a name that was locked once: counters are shared, and a name keeps its counter
//! if all its rows are deleted. Expired rows that were not removed are swept every minute with a
//! renewal of any client. That reads the whole table, which takes 2 to 10 ms for 10,000 rows: an
//! index on their expiry would cost more, with each renewal.

#![cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]

mod acquire;
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

#[cfg(all(feature = "properties", feature = "sqlite"))]
pub use crate::wire::faults::Faults;
pub use crate::{
    config::{
        SqlConfig, Target,
        server::{Failover, Server},
    },
    layout::{dialect::Dialect, schema::schema},
    lease::SqlLease,
    lock::SqlLock,
    wire::own_client::OwnPool,
};
