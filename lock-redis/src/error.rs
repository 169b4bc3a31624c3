//! Converts the client library's errors.
//!
//! | what happened | error | effect |
//! |---|---|---|
//! | connection refused, host not found, any failure to connect | `Unavailable` | none |
//! | connection broke, no answer in time | `Unavailable` | unknown |
//! | `LOADING`, `MASTERDOWN`, `READONLY`, `CLUSTERDOWN`, `TRYAGAIN`, `ASK`, `BUSY` | `Unavailable` | none |
//! | `MISCONF`, `NOREPLICAS`, `OOM`, too many clients | `Unavailable` | none |
//! | `NOAUTH`, `WRONGPASS`, `NOPERM`, a refused `AUTH`, protected mode (`DENIED`) | `Denied` | none |
//! | a certificate that one side does not accept | `Denied` | none |
//! | a command that the user may not run inside a script | `Denied`, and its effects are undone | none |
//! | `NOSCRIPT`, a node of a cluster, Redis before 6.2, no RESP3 | `Rejected` | none |
//! | `CROSSSLOT` | `Rejected`, and names the prefix that helps | none |
//! | a broken record of the token floor | `Rejected`, and names the key | none |
//! | every other error from the server, an unexpected answer | `Rejected` | unknown |
//!
//! Redis 6.2 answers `ERR Error running script (..): .. -READONLY ..` when a command inside a
//! script is refused. 7.0 and later answer `READONLY .. script: .., on @user_script:7.`. In both
//! cases the script's first write was refused, so it had no effect.
//!
//! `WRONGTYPE` does not occur: the scripts take a key of another type for a foreign holder's.

use std::{fmt::Display, io, time::Duration};

use lock_core::{
    BoxError, Effect, Error,
    keep::errors::{self, denied, rejected, reworded},
};
use redis::{ErrorKind, RedisError, Value};

use crate::{config::Address, wire::call::Request};

/// The store's name in errors and guarantees.
pub(crate) const STORE: &str = "redis";

/// Code of the errors about certificates, which no server uses.
const CERTIFICATE: &str = "CERTIFICATE";

/// The error for a certificate that this client or the server does not accept.
pub(crate) fn of_certificate(what: String) -> RedisError {
    redis::make_extension_error(CERTIFICATE.to_owned(), Some(what))
}

/// Whether this error leaves the connection unusable and the request's effect unknown.
pub(crate) fn is_broken(error: &RedisError) -> bool {
    error.is_connection_dropped() || error.is_timeout() || error.is_io_error()
}

/// Whether the server says that the same request may succeed soon.
pub(crate) fn is_passing(error: &RedisError) -> bool {
    let passing =
        "LOADING MASTERDOWN READONLY CLUSTERDOWN TRYAGAIN ASK BUSY MISCONF NOREPLICAS OOM";
    code(error).is_some_and(|code| passing.split(' ').any(|passing| passing == code))
        || has_too_many_clients(error)
}

/// Whether a connection to the server is useless: it answers no reads, or another server is the
/// primary.
pub(crate) fn is_elsewhere(error: &RedisError) -> bool {
    is_passing(error) && !matches!(code(error), Some("MISCONF" | "NOREPLICAS" | "OOM"))
}

/// Whether the server takes no more connections now.
fn has_too_many_clients(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("max number of clients"))
}

/// Whether the server is a replica, so that the primary is elsewhere.
pub(crate) fn is_replica(error: &RedisError) -> bool {
    matches!(code(error), Some("READONLY" | "MASTERDOWN"))
}

/// Whether a node of a cluster says that a slot is being moved: it may have a part of its keys.
pub(crate) fn is_moving(error: &RedisError) -> bool {
    matches!(code(error), Some("ASK" | "TRYAGAIN"))
}

/// Returns the slot that another node of a cluster has now, and its address.
pub(crate) fn moved(error: &RedisError) -> Option<(u16, &str)> {
    let (address, slot) = error.redirect_node()?;
    (code(error) == Some("MOVED")).then_some((slot, address))
}

/// Whether the server denies access, so that a retry is useless.
pub(crate) fn is_denied(error: &RedisError) -> bool {
    is_login_refused(error) || code(error) == Some(CERTIFICATE)
}

/// Whether the server refuses the login, or a right that it lacks.
pub(crate) fn is_login_refused(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(code(error), Some("NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED"))
        || ["The user executing the script", "ACL failure in script"]
            .iter()
            .any(|text| detail.contains(text))
}

/// Whether the server has no RESP3, or does not let this user ask for it.
pub(crate) fn lacks_resp3(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default().to_ascii_lowercase();
    let refused = detail.starts_with("unknown command") || code(error) == Some("NOPERM");
    error.kind() == ErrorKind::RESP3NotSupported
        || code(error) == Some("NOPROTO")
        || (refused && detail.contains("hello"))
}

/// The first word of the server's error. For a script's error on 6.2 it is the one of the command
/// inside.
fn code(error: &RedisError) -> Option<&str> {
    let inside = error.detail().filter(|detail| detail.starts_with("Error running script"));
    let text = inside.and_then(|detail| detail.split_once(": -")).map(|(_, text)| text);
    match text.and_then(|text| text.split_whitespace().next()) {
        Some(code) => Some(code),
        None => error.code(),
    }
}

/// Converts an error as the table above says.
pub(crate) fn convert(op: &'static str, error: RedisError) -> Error {
    if is_denied(&error) {
        return denied(STORE, op, explained(error));
    }
    if is_passing(&error) || error.is_connection_refusal() {
        return unavailable(op, Effect::None, explained(error));
    }
    if is_broken(&error) {
        // The requests of connecting change no lock.
        let effect = if op == "connect" { Effect::None } else { Effect::Unknown };
        return unavailable(op, effect, error);
    }
    if code(&error) == Some("CROSSSLOT") {
        return rejected(STORE, op, Effect::None, explained(error));
    }
    let untouched = code(&error) == Some("NOSCRIPT")
        || matches!(error.kind(), ErrorKind::RESP3NotSupported | ErrorKind::InvalidClientConfig);
    let effect = if untouched { Effect::None } else { Effect::Unknown };
    rejected(STORE, op, effect, error)
}

/// Same as [`convert`]. Names the key of the token floor if the error is about it.
pub(crate) fn of_request(op: &'static str, request: &Request<'_>, error: RedisError) -> Error {
    let Some(key) = request.floor.map(|floor| floor.bytes()) else { return convert(op, error) };
    if error.to_string().contains("BROKENFLOOR") {
        let key = key.escape_ascii().to_string().replace(r"\xff", r"\xFF");
        let text = format!(
            "the key {key} is the record of the token floor, and somebody has overwritten it; delete it, and \
             raise the floor again"
        );
        return rejected(STORE, op, Effect::None, reworded(text, error));
    }
    // Refused before the script begins. The server does not say which of its keys is missing.
    let lacks_a_key = is_about_a_key(&error);
    match convert(op, error) {
        Error::Denied { source, .. } if lacks_a_key => {
            let pattern = String::from_utf8_lossy(&key).replace(char::REPLACEMENT_CHARACTER, "?");
            let help =
                format!("beside the locks' keys the login needs ~{pattern}, the token floor's");
            denied(STORE, op, helped(source, &help))
        }
        error => error,
    }
}

/// Whether the server refuses a key, and not a command.
pub(crate) fn is_about_a_key(error: &impl Display) -> bool {
    let text = error.to_string();
    // As Redis 7 and 6.2 say it.
    ["access a key", "access one of the keys"].iter().any(|words| text.contains(words))
}

pub(crate) fn unavailable(op: &'static str, effect: Effect, source: impl Into<BoxError>) -> Error {
    errors::unavailable(STORE, op, effect, source)
}

/// Returns the error for a caller whose request was refused until its time was over.
pub(crate) fn still_refused(op: &'static str, effect: Effect, error: RedisError) -> Error {
    if is_denied(&error) {
        // A login that is refused changes nothing, and an earlier request may have.
        return match effect {
            Effect::None => convert(op, error),
            effect => unavailable(op, effect, error),
        };
    }
    if is_moving(&error) {
        let help = "the name's slot is being moved to another node, and has not arrived in time";
        return unavailable(op, effect, helped(error, help));
    }
    unavailable(op, effect, explained(error))
}

/// Adds what helps, if the server does not say it.
fn explained(error: RedisError) -> BoxError {
    let help = match code(&error) {
        Some("OOM") => "the server's memory is full: make room there, or raise maxmemory",
        Some("CROSSSLOT") => {
            "a proxy spreads the keys over a cluster: a prefix with a hash tag, such as \
             prefix={app}:, keeps them together"
        }
        Some("NOPERM") if error.to_string().contains(" channel") => "the login needs &distlock:*",
        _ if has_too_many_clients(&error) => {
            "the server has no room for a connection: raise maxclients, or end other clients"
        }
        _ => return error.into(),
    };
    helped(error, help)
}

/// The server's error, and what helps.
fn helped(error: impl Into<BoxError>, help: &str) -> BoxError {
    let error: BoxError = error.into();
    reworded(format!("{error} ({help})"), error)
}

/// Too few replicas have a change.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("only {had} of {wanted} replicas confirmed it in time (wait_replicas={wanted})")]
pub(crate) struct Short {
    pub(crate) had: u32,
    pub(crate) wanted: u32,
}

/// Reads whether an error says that too few replicas have a change.
pub(crate) fn short(error: &Error) -> Option<Short> {
    match error {
        Error::Unavailable { source, .. } => source.downcast_ref().copied(),
        _ => None,
    }
}

/// The error for a server that was silent for this long.
pub(crate) fn silent(limit: Duration) -> RedisError {
    io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}")).into()
}

/// The error for a connection that is of no use any more.
pub(crate) fn reset(why: &str) -> RedisError {
    io::Error::new(io::ErrorKind::ConnectionReset, why).into()
}

/// The error of a link that was never made.
pub(crate) fn closed_link() -> RedisError {
    io::Error::from(io::ErrorKind::NotConnected).into()
}

pub(crate) fn closed() -> Error {
    Error::closed(STORE)
}

/// The error for a node of a cluster, which keeps only a part of all keys.
pub(crate) fn cluster() -> RedisError {
    let why = "this is a node of a Redis Cluster, and no independent server: use \
               redis+cluster://HOST,HOST,.. with some nodes";
    (ErrorKind::InvalidClientConfig, why).into()
}

/// The error for a server that lacks a command.
pub(crate) fn too_old(version: &str) -> RedisError {
    let why = format!("the server is Redis {version}, and locks need 6.2 (SET .. GET)");
    (ErrorKind::InvalidClientConfig, "the server is too old", why).into()
}

/// The error for a server or a proxy that has no RESP3, or does not let this user ask for it.
pub(crate) fn no_pushes() -> RedisError {
    let why = "grants are pushed by RESP3, which HELLO asks for (Redis 6 and later); only \
               mode=simple does without";
    (ErrorKind::InvalidClientConfig, "the server refuses RESP3", why.to_owned()).into()
}

/// The error for a server that sentinels name, and that is a replica: a failover is under way.
pub(crate) fn not_the_primary(address: &Address) -> RedisError {
    let why = format!("the sentinels name {address} as the primary, and it is a replica now");
    io::Error::new(io::ErrorKind::ConnectionRefused, why).into()
}

/// The error for an answer that the script cannot give.
pub(crate) fn unexpected(op: &'static str, value: &Value) -> Error {
    rejected(STORE, op, Effect::Unknown, format!("unexpected answer {value:?}"))
}

#[cfg(test)]
mod tests;
