//! Another server behind the port: what a connect that failed says about it.

use std::time::Duration;

use lock_core::{BoxFuture, StoreUrl};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{STORES, Store};

/// Longest wait for each answer. A server on the same network answers in a few milliseconds.
const ANSWER: Duration = Duration::from_millis(500);
/// Wait for a server that speaks first.
const GREETING: Duration = Duration::from_millis(200);

/// Returns what answers at a URL's first host, or whose usual port it is, if that is another store's.
/// It is asked once, after a connect has failed, and never gets a login.
pub(crate) fn explain(url: StoreUrl, limit: Duration) -> BoxFuture<'static, Option<String>> {
    Box::pin(async move {
        let (store, own) = (Store::of_scheme(url.scheme())?, Store::port_of(url.scheme())?);
        let hosts = url.hosts(own);
        let host = hosts.first()?;
        match timeout(limit, other_server(host)).await.ok().flatten() {
            Some((scheme, _)) if scheme == store.scheme => None,
            Some((_, name)) => Some(format!("this answers like {name}")),
            None => {
                let (other, port) = neighbour_of(host, store, own)?;
                Some(format!("{port} is the usual port of {other}"))
            }
        }
    })
}

/// The other store whose usual port it is.
fn neighbour_of(host: &str, store: &Store, own: u16) -> Option<(&'static str, u16)> {
    let port: u16 = host.rsplit_once(':')?.1.parse().ok()?;
    let is_its = |other: &&Store| other.scheme != store.scheme && other.port == Some(port);
    let other = STORES.iter().find(is_its).filter(|_| port != own)?;
    Some((other.scheme, port))
}

/// A server's scheme, and its name.
type Server = (&'static str, &'static str);

const REDIS: Server = ("redis", "Redis");
const ETCD: Server = ("etcd", "etcd");
const HTTP: Server = ("http", "an HTTP server");
const TLS: Server = ("tls", "a server that expects TLS");
const MYSQL: Server = ("mysql", "MySQL or MariaDB");
const POSTGRES: Server = ("postgres", "PostgreSQL");
const ZOOKEEPER: Server = ("zookeeper", "ZooKeeper");

/// What answers there. Each question is harmless to each of the servers. A server that speaks first
/// is asked nothing.
async fn other_server(host: &str) -> Option<Server> {
    let mut socket = open(host).await?;
    let greeting = read(&mut socket, GREETING).await;
    if !greeting.is_empty() {
        return greeted(&greeting);
    }
    // Redis takes it for a command with too many words.
    let answer = asked(socket, b"GET /version HTTP/1.0\r\n\r\n").await;
    match answer.first() {
        Some(b'-' | b'+') => return Some(REDIS),
        Some(0x15) => return Some(TLS),
        _ if has(&answer, b"etcdserver") => return Some(ETCD),
        _ if answer.starts_with(b"HTTP/") => return Some(HTTP),
        _ => {}
    }
    // The question whether it speaks TLS.
    let answer = asked(open(host).await?, &[0, 0, 0, 8, 4, 210, 22, 47]).await;
    if matches!(answer.as_slice(), b"S" | b"N") {
        return Some(POSTGRES);
    }
    let answer = asked(open(host).await?, b"ruok").await;
    let is_there = answer.starts_with(b"imok") || answer.starts_with(b"ruok is not executed");
    is_there.then_some(ZOOKEEPER)
}

/// Who speaks first.
fn greeted(greeting: &[u8]) -> Option<Server> {
    match greeting {
        // A packet of 24 bits of length, with the number 0: the version of the protocol, or an error.
        [_, _, _, 0, 10 | 255, ..] => Some(MYSQL),
        // Protected mode, or too many clients.
        [b'-', ..] => Some(REDIS),
        _ => None,
    }
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

async fn open(host: &str) -> Option<TcpStream> {
    timeout(ANSWER, TcpStream::connect(host)).await.ok()?.ok()
}

async fn asked(mut socket: TcpStream, question: &[u8]) -> Vec<u8> {
    match socket.write_all(question).await {
        Ok(()) => read(&mut socket, ANSWER).await,
        Err(_) => Vec::new(),
    }
}

/// The first part of what comes. Empty if nothing does.
async fn read(socket: &mut TcpStream, limit: Duration) -> Vec<u8> {
    let mut text = vec![0; 1024];
    let read = timeout(limit, socket.read(&mut text)).await;
    text.truncate(read.ok().and_then(Result::ok).unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_port_of_another_store_is_named() {
        let other = |url: &str| {
            let url = StoreUrl::parse(url).unwrap();
            let store = Store::of_scheme(url.scheme()).unwrap();
            let own = Store::port_of(url.scheme()).unwrap();
            neighbour_of(&url.hosts(own)[0], store, own).map(|(store, _)| store)
        };
        for (url, expected) in [
            ("etcd://h:6379", Some("redis")),
            ("redis://[::1]:2379", Some("etcd")),
            ("postgres://h:3306/app", Some("mysql")),
            ("redis+sentinel://h:6379/main", None),
            ("redis://h", None),
            ("redis://h:7000", None),
        ] {
            assert_eq!(other(url), expected, "{url}");
        }
    }
}
