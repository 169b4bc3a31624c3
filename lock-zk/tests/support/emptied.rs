//! Makes a server as good as new, for the next test.

use std::{io, net::SocketAddr};

use lock_lab::ZooKeeper;
use lock_zk::client::{Acls, Client, Error};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{eventually, patient};

/// Lets a server know a login that may do everything, whatever the last test permitted.
pub const LOGIN_OF_ALL: &str =
    "-Dzookeeper.DigestAuthenticationProvider.superDigest=super:gG7s8t3oDEtIqF6DM9LlI/R+9Ss=";
const LOGIN: &[u8] = b"super:super";
const CLOSE_SESSION: i32 = -11;

/// Ends the sessions that the last test has left, removes its nodes, and counts from zero.
pub async fn empty(server: &ZooKeeper) {
    let count = async |what: &str| server.counters().await.unwrap().get(what);
    // The runtime of the last test is about to end. The count itself is a connection.
    eventually("its clients are gone", async || count("connections").await == 1).await;
    let dump = server.four_letter("dump").await.unwrap();
    for session in sessions(&dump) {
        // It may end by itself meanwhile.
        let _ = end(server.addr(), session).await;
    }
    let connector = patient().with_auth("digest", LOGIN);
    let client = connector.connect(&server.addr().to_string()).await.unwrap();
    client.set_acl("/", Acls::anyone_all().as_ref(), None).await.unwrap();
    remove_below(&client, "/").await;
    drop(client);
    let nothing = async || count("sessions").await == 0 && count("connections").await == 1;
    eventually("no session is left", nothing).await;
    server.four_letter("srst").await.unwrap();
}

/// Removes the nodes that clients have made.
async fn remove_below(client: &Client, path: &str) {
    for child in client.list_children(path).await.unwrap_or_default() {
        let child = format!("{}/{child}", path.trim_end_matches('/'));
        if child != "/zookeeper" {
            Box::pin(remove_below(client, &child)).await;
            let removed = client.delete(&child, None).await;
            // The server removes empty containers, too.
            assert!(matches!(removed, Ok(()) | Err(Error::NoNode)), "{child}: {removed:?}");
        }
    }
}

/// The sessions in a `dump`.
fn sessions(dump: &str) -> impl Iterator<Item = i64> {
    let lines = dump.lines().take_while(|line| !line.starts_with("ephemeral nodes"));
    lines.filter_map(|line| i64::from_str_radix(line.trim().strip_prefix("0x")?, 16).ok())
}

/// Takes a session over that no client has any more, and closes it: it would end by itself, but
/// seconds later and in the midst of another test.
async fn end(addr: SocketAddr, session: i64) -> io::Result<()> {
    let mut stream = TcpStream::connect(addr).await?;
    // The length, the version, the newest transaction, the timeout, the session, its password.
    let [length, version, timeout, bytes] = [45, 0, 10_000, 16].map(i32::to_be_bytes);
    let [newest, id] = [0, session].map(i64::to_be_bytes);
    let ends = [&length[..], &version, &newest, &timeout, &id, &bytes, &password(session), &[0]];
    stream.write_all(&ends.concat()).await?;
    let length = stream.read_u32().await?;
    stream.read_exact(&mut vec![0; length as usize]).await?;
    stream.write_all(&[8, 1, CLOSE_SESSION].map(i32::to_be_bytes).concat()).await?;
    stream.read_to_end(&mut Vec::new()).await.map(drop)
}

/// ZooKeeper derives a session's password from its number, by `java.util.Random`
/// (`ZooKeeperServer.generatePasswd`).
fn password(session: i64) -> Vec<u8> {
    const SECRET: u64 = 0xb341_5c00;
    const FACTOR: u64 = 0x5_deec_e66d;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = (session.cast_unsigned() ^ SECRET ^ FACTOR) & MASK;
    let mut draw = || {
        state = state.wrapping_mul(FACTOR).wrapping_add(0xb) & MASK;
        ((state >> 16) as u32).to_le_bytes()
    };
    (0..4).flat_map(|_| draw()).collect()
}
