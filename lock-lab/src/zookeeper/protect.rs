//! Gives the root of a private ZooKeeper to one login.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{LabError, ask};

/// Numbers of requests that are no operations of a session's order.
const AUTH: i32 = -4;
const AUTH_TYPE: i32 = 100;
const SET_ACL: i32 = 7;
const CLOSE: i32 = -11;
/// Read, write, create, delete, administer.
const ALL: i32 = 31;
/// What a server that has the root protected already returns to another login.
const OK: i32 = 0;
const TIMEOUT_MS: i32 = 5000;

/// Lets the root belong to this login. Does nothing if it does already.
pub(super) async fn root(addr: SocketAddr, user: &str, password: &str) -> Result<(), LabError> {
    let login = format!("{user}:{password}");
    let codes = ask::bounded("giving the root to a login", talk(addr, login.as_bytes())).await?;
    match codes.iter().all(|code| *code == OK) {
        true => Ok(()),
        false => {
            let reply = format!("the root cannot be protected: {codes:?}");
            Err(LabError::Reply { server: "zookeeper", reply })
        }
    }
}

/// Opens a session, logs in, sets the permissions of the root, and closes the session. Returns the
/// codes of the two answers.
async fn talk(addr: SocketAddr, login: &[u8]) -> io::Result<[i32; 2]> {
    let mut stream = TcpStream::connect(addr).await?;
    send(&mut stream, &[&[0; 12], &TIMEOUT_MS.to_be_bytes(), &[0; 8], &text(&[0; 16]), &[0]])
        .await?;
    receive(&mut stream).await?;
    let (number, kind) = (AUTH.to_be_bytes(), AUTH_TYPE.to_be_bytes());
    let auth: &[&[u8]] = &[&number, &kind, &[0; 4], &text(b"digest"), &text(login)];
    send(&mut stream, auth).await?;
    let logged_in = code(&receive(&mut stream).await?)?;
    // One entry: all rights for the logins of this session. Any version of the root.
    let (first, one, any) = (1_i32.to_be_bytes(), 1_i32.to_be_bytes(), (-1_i32).to_be_bytes());
    let entry = [&one[..], &ALL.to_be_bytes(), &text(b"auth"), &text(b"")].concat();
    send(&mut stream, &[&first, &SET_ACL.to_be_bytes(), &text(b"/"), &entry, &any]).await?;
    let set = code(&receive(&mut stream).await?)?;
    send(&mut stream, &[&2_i32.to_be_bytes(), &CLOSE.to_be_bytes()]).await?;
    let _ = receive(&mut stream).await;
    Ok([logged_in, set])
}

fn text(bytes: &[u8]) -> Vec<u8> {
    let length = i32::try_from(bytes.len()).unwrap_or_default();
    [&length.to_be_bytes(), bytes].concat()
}

async fn send(stream: &mut TcpStream, parts: &[&[u8]]) -> io::Result<()> {
    stream.write_all(&text(&parts.concat())).await
}

async fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_i32().await?;
    let mut body = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

/// Reads the code of an answer: after its number and its transaction.
fn code(answer: &[u8]) -> io::Result<i32> {
    let code = answer.get(12..16).and_then(|code| code.try_into().ok());
    code.map(i32::from_be_bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
