//! etcd's HTTP side: its JSON gateway, its health and its metrics.

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};

use crate::{LabError, ask};

/// The gateway's answers while its own connection to the server is not made, so that nothing was done: a
/// process that was stopped for 20 s gives that connection up.
const UNCONNECTED: [&str; 2] = ["waiting for server handshake", "Error while dialing"];
/// How often the gateway is asked again then. It connects again after a second.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// Calls a method of etcd's API, such as `kv/range`.
pub(super) async fn post(addr: SocketAddr, path: &str, body: &Value) -> Result<Value, LabError> {
    post_as(addr, path, body, None).await
}

/// Same as [`post`], with a token of a login.
pub(super) async fn post_as(
    addr: SocketAddr,
    path: &str,
    body: &Value,
    token: Option<&str>,
) -> Result<Value, LabError> {
    let body = body.to_string();
    let login = token.map(|token| format!("Authorization: {token}\r\n")).unwrap_or_default();
    let length = body.len();
    let head = format!("POST /v3/{path} HTTP/1.0\r\n{login}Content-Length: {length}\r\n\r\n");
    let reply = request(addr, head + &body).await?;
    serde_json::from_str(&reply).map_err(|_| refused(reply))
}

pub(super) async fn get(addr: SocketAddr, path: &str) -> Result<String, LabError> {
    request(addr, format!("GET {path} HTTP/1.0\r\n\r\n")).await
}

/// Returns the ids of all leases.
pub(super) async fn leases(addr: SocketAddr) -> Result<Vec<i64>, LabError> {
    let reply = post(addr, "lease/leases", &json!({})).await?;
    Ok(reply["leases"].as_array().into_iter().flatten().map(|l| number(&l["ID"])).collect())
}

/// Reads a 64-bit number. The gateway writes it as a string, and leaves it out if it is 0.
pub(super) fn number(value: &Value) -> i64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Sends a request and returns the body of the reply.
///
/// HTTP 1.0, because its replies come in one piece and end with the connection.
async fn request(addr: SocketAddr, request: String) -> Result<String, LabError> {
    let mut reply = exchange(addr, &request).await?;
    for _ in 0..TRIES {
        if !UNCONNECTED.iter().any(|why| reply.contains(why)) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        reply = exchange(addr, &request).await?;
    }
    match reply.split_once("\r\n\r\n") {
        Some((head, body)) if is_ok(head) => Ok(body.to_owned()),
        _ => Err(refused(reply)),
    }
}

async fn exchange(addr: SocketAddr, request: &str) -> Result<String, LabError> {
    let reply = ask::exchange(addr, request.as_bytes()).await?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

fn is_ok(head: &str) -> bool {
    head.split(' ').nth(1) == Some("200")
}

fn refused(reply: String) -> LabError {
    LabError::Reply { server: "etcd", reply }
}
