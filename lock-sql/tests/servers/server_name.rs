//! A server whose certificate has another name than its host, and the relay to it.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use lock_core::{Clock, Error, Locks};
use lock_lab::{Authority, Proxy};
use lock_sql::Dialect;
use tokio::runtime::{Builder, Handle};

use crate::{
    servers::{
        Database, connect, eventually, locks, on_both,
        pushes::a_release_wakes,
        rotation::end_connections,
        tls::{refused, start, verify},
    },
    support::contend::contend,
};

on_both!(
    the_certificate_is_checked_for_the_name,
    a_server_that_is_down_tells_its_address_and_why,
    a_host_without_an_address_is_named,
    a_silent_server_ends_a_connect_in_time,
    a_server_that_comes_back_is_used_again,
    connections_that_break_are_replaced,
    a_closed_client_leaves_no_socket_and_no_task,
    a_dropped_client_leaves_no_socket_and_no_task,
    a_client_that_gives_up_ends_its_connections,
    a_socket_that_is_tidied_away_is_replaced,
    each_of_several_hosts_has_its_relay,
    no_relay_is_made_for_the_host_itself
);

mod one_thread {
    use super::*;

    on_both!(in one thread: the_certificate_is_checked_for_the_name);
}

const NAME: &str = "elsewhere.example";
const TTL: Duration = Duration::from_secs(30);

/// The URL of a server with a certificate for [`NAME`].
fn named(url: &str, ca: &Path) -> String {
    format!("{url}{}&server_name={NAME}", verify(ca))
}

/// The sockets of relays to this port, which no other test's server has meanwhile.
fn sockets(address: SocketAddr) -> Vec<PathBuf> {
    let name = format!(".s.PGSQL.{}", address.port());
    let folders = fs::read_dir(std::env::temp_dir()).unwrap().map(|folder| folder.unwrap());
    let folders =
        folders.filter(|folder| folder.file_name().to_string_lossy().contains("distlock-"));
    folders.map(|folder| folder.path().join(&name)).filter(|path| path.exists()).collect()
}

/// The number of connections of clients.
async fn connections(server: &Database) -> u64 {
    let count = match server {
        Database::Postgres(_) => {
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'distlock'"
        }
        Database::MariaDb(_) => {
            "SELECT count(*) FROM information_schema.processlist \
             WHERE id <> connection_id() AND user <> 'system user'"
        }
    };
    server.sql(count).await.trim().parse().unwrap()
}

async fn unavailable(url: &str, words: [&str; 2]) {
    let start = Clock::Boot.now();
    let error = connect(url).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    let told = error.to_string();
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
    let took = Clock::Boot.now().since(start);
    assert!(took < Duration::from_secs(5), "{took:?}: {told}");
}

async fn use_once(locks: &Locks) {
    let guard = locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    guard.release().await.unwrap();
}

async fn the_certificate_is_checked_for_the_name(dialect: Dialect) {
    let (server, authority) = start(dialect, NAME).await;
    let url = server.url() + &verify(authority.file());
    refused(&url, "for another host name").await;
    refused(&format!("{url}&server_name=other.example"), "for another host name").await;
    let stranger = Authority::new().unwrap();
    refused(&named(&server.url(), stranger.file()), "option ca").await;
    let url = named(&server.url(), authority.file());
    let (one, other) = (locks(&url).await, locks(&url).await);
    contend(&one, &other).await;
    a_release_wakes(&server, &one, &other, 5).await;
    let wrong = named(&server.url_as("lab:wrong"), authority.file());
    assert!(matches!(connect(&wrong).await.unwrap_err(), Error::Denied { .. }));
}

async fn a_server_that_is_down_tells_its_address_and_why(dialect: Dialect) {
    let (server, authority) = start(dialect, NAME).await;
    let url = named(&server.url(), authority.file());
    server.kill();
    let address = server.addr().to_string();
    unavailable(&url, [&address, "refused"]).await;
    // Also a client that was connected.
    server.restart().await.unwrap();
    let locks = locks(&url).await;
    server.kill();
    eventually("the cause is told", async || {
        let told = locks.inspect("a").await.unwrap_err().to_string();
        told.contains(&address) && told.contains("refused")
    })
    .await;
}

async fn a_host_without_an_address_is_named(dialect: Dialect) {
    let authority = Authority::new().unwrap();
    let scheme = if dialect == Dialect::Postgres { "postgres" } else { "mysql" };
    let url = named(&format!("{scheme}://me@no.such.host.invalid:7/lab"), authority.file());
    unavailable(&url, ["no.such.host.invalid:7", "lookup"]).await;
}

async fn a_silent_server_ends_a_connect_in_time(dialect: Dialect) {
    let (server, authority) = start(dialect, NAME).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    proxy.cut();
    let url = named(&server.url_via(&proxy), authority.file()) + "&connect_timeout=500ms";
    unavailable(&url, ["no answer within", "500ms"]).await;
    proxy.heal();
    eventually("the server has no client", async || connections(&server).await == 0).await;
    proxy.refuse();
    unavailable(&url, [&proxy.addr().to_string(), "refused"]).await;
}

async fn a_server_that_comes_back_is_used_again(dialect: Dialect) {
    let (server, authority) = start(dialect, NAME).await;
    let locks = locks(&named(&server.url(), authority.file())).await;
    let held = locks.lock("held").unwrap().ttl(TTL).acquire().await.unwrap();
    server.kill();
    let attempt = tokio::spawn(locks.lock("a").unwrap().ttl(TTL).acquire());
    server.restart().await.unwrap();
    attempt.await.unwrap().unwrap().release().await.unwrap();
    held.renew().await.unwrap();
    held.release().await.unwrap();
}

async fn connections_that_break_are_replaced(dialect: Dialect) {
    let (server, authority) = start(dialect, NAME).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let locks = locks(&named(&server.url_via(&proxy), authority.file())).await;
    let held = locks.lock("held").unwrap().ttl(TTL).acquire().await.unwrap();
    for _ in 0..5 {
        proxy.reset();
        use_once(&locks).await;
        end_connections(&server, "lab").await;
        use_once(&locks).await;
    }
    // Its own renewal is due later.
    held.renew().await.unwrap();
    locks.close().await.unwrap();
    eventually("no connection", async || proxy.stats().connections_open == 0).await;
}

async fn a_closed_client_leaves_no_socket_and_no_task(dialect: Dialect) {
    let (server, authority) = start(dialect, NAME).await;
    let before = Handle::current().metrics().num_alive_tasks();
    let locks = locks(&named(&server.url(), authority.file())).await;
    use_once(&locks).await;
    assert_eq!(sockets(server.addr()).len(), 1);
    locks.close().await.unwrap();
    assert_eq!(sockets(server.addr()).len(), 0);
    eventually("no connection", async || connections(&server).await == 0).await;
    let error = locks.lock("a").unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error:?}");
    assert_eq!(sockets(server.addr()).len(), 0);
    drop(locks);
    none_left(before).await;
}

/// MariaDB complains in its log of connections that are cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_goodbye_passes_the_relay() {
    let (server, authority) = start(Dialect::MySql, NAME).await;
    let aborted = "SELECT variable_value FROM information_schema.global_status \
                   WHERE variable_name = 'ABORTED_CLIENTS'";
    let before = server.sql(aborted).await;
    for _ in 0..10 {
        let url = named(&server.url(), authority.file());
        let work = async move {
            let locks = locks(&url).await;
            let work = (0..8).map(|n| tokio::spawn(locks.lock(format!("{n}")).unwrap().acquire()));
            for attempt in work.collect::<Vec<_>>() {
                attempt.await.unwrap().unwrap().release().await.unwrap();
            }
            locks.close().await.unwrap();
        };
        // As in a program that ends then, nobody goes on with the relay's work.
        let program = || Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
        tokio::task::spawn_blocking(program).await.unwrap();
    }
    eventually("all have left", async || connections(&server).await == 0).await;
    assert_eq!(server.sql(aborted).await, before, "connections that were cut off");
}

async fn a_dropped_client_leaves_no_socket_and_no_task(dialect: Dialect) {
    let (server, authority) = start(dialect, NAME).await;
    let before = Handle::current().metrics().num_alive_tasks();
    let url = named(&server.url(), authority.file());
    let locks = locks(&url).await;
    use_once(&locks).await;
    drop(locks);
    eventually("no socket", async || sockets(server.addr()).is_empty()).await;
    eventually("no connection", async || connections(&server).await == 0).await;
    none_left(before).await;
    // One that is dropped while it connects.
    let proxy = Proxy::start(server.addr()).await.unwrap();
    proxy.cut();
    let before = Handle::current().metrics().num_alive_tasks();
    let url = named(&server.url_via(&proxy), authority.file());
    let connecting = tokio::spawn(async move { connect(&url).await });
    eventually("it connects", async || proxy.stats().connections_open > 0).await;
    connecting.abort();
    assert!(connecting.await.unwrap_err().is_cancelled());
    eventually("no socket", async || sockets(proxy.addr()).is_empty()).await;
    drop(proxy);
    none_left(before).await;
}

async fn none_left(before: usize) {
    let alive = || Handle::current().metrics().num_alive_tasks();
    eventually("no task", async || alive() <= before).await;
}

/// The server stands still, and learns afterwards that its client has gone.
async fn a_client_that_gives_up_ends_its_connections(dialect: Dialect) {
    let (server, authority) = start(dialect, NAME).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let before = Handle::current().metrics().num_alive_tasks();
    let locks = locks(&named(&server.url_via(&proxy), authority.file())).await;
    use_once(&locks).await;
    server.stop();
    // A request waits a third of that.
    let short = locks.lock("a").unwrap().ttl(Duration::from_secs(4));
    let attempt = short.wait(Duration::ZERO).acquire().await;
    attempt.unwrap_err();
    drop(locks);
    // The server has not answered.
    eventually("no task of this client", async || {
        let proxied = 2 * proxy.stats().connections_open as usize;
        Handle::current().metrics().num_alive_tasks() <= before + proxied
    })
    .await;
    server.resume();
    eventually("no connection", async || connections(&server).await == 0).await;
}

/// As by a program that removes old files from a directory for temporary ones.
async fn a_socket_that_is_tidied_away_is_replaced(dialect: Dialect) {
    let (server, authority) = start(dialect, NAME).await;
    let server = server.for_everyone(dialect).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "plain").unwrap();
    let url = named(&server.url_as("plain"), authority.file());
    let locks = locks(&format!("{url}&password_file={}", file.path().display())).await;
    let held = locks.lock("held").unwrap().ttl(TTL).acquire().await.unwrap();
    let [socket] = &*sockets(server.addr()) else { panic!("one socket") };
    fs::remove_dir_all(socket.parent().unwrap()).unwrap();
    // The login that the server has accepted takes the new socket, too.
    fs::write(&file, "not known yet").unwrap();
    end_connections(&server, "plain").await;
    use_once(&locks).await;
    assert_eq!(sockets(server.addr()).len(), 1);
    held.renew().await.unwrap();
    held.release().await.unwrap();
}

async fn each_of_several_hosts_has_its_relay(dialect: Dialect) {
    let ((one, authority), (other, _)) = (start(dialect, NAME).await, start(dialect, NAME).await);
    let (one, other) = (one.for_everyone(dialect).await, other.for_everyone(dialect).await);
    let url = crate::servers::hosts::url(&one.url_as("plain:plain"), &[&one, &other]);
    let options = named("", authority.file()).replacen('?', "&", 1);
    let url = url + &options;
    one.set_read_only(true).await;
    let found = locks(&url).await;
    use_once(&found).await;
    assert_eq!((sockets(one.addr()).len(), sockets(other.addr()).len()), (1, 1));
    other.set_read_only(true).await;
    one.set_read_only(false).await;
    use_once(&found).await;
    one.kill();
    unavailable(&url, [&one.addr().to_string(), "refused"]).await;
    drop(found);
    eventually("no socket", async || {
        sockets(one.addr()).is_empty() && sockets(other.addr()).is_empty()
    })
    .await;
}

async fn no_relay_is_made_for_the_host_itself(dialect: Dialect) {
    let (server, authority) = start(dialect, "127.0.0.1").await;
    let url = format!("{}{}&server_name=127.0.0.1", server.url(), verify(authority.file()));
    use_once(&locks(&url).await).await;
    assert_eq!(sockets(server.addr()).len(), 0);
}
