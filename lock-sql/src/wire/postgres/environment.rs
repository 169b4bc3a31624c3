//! What the client library takes from the environment, and locks cannot have.

use std::env;

use lock_core::{Encryption, Error, Tls, keep::errors};
use sqlx::postgres::PgConnectOptions;

/// Checks the variables that the options do not replace. Refuses `PGOPTIONS`: with its
/// `search_path`, one of two processes would find other tables, so both would have the same lock.
/// The library can only add to it. The value is not shown. Refuses one of `PGSSLCERT` and
/// `PGSSLKEY` without the other, too.
pub(super) fn check(options: &PgConnectOptions, tls: &Tls) -> Result<(), Error> {
    if options.get_options().is_some_and(|options| !options.trim().is_empty()) {
        return Err(invalid("PGOPTIONS", "unset: a search_path in it would lead to other locks"));
    }
    let is_used = tls.mode != Encryption::Off && tls.cert.is_none();
    match (is_used, env::var("PGSSLCERT"), env::var("PGSSLKEY")) {
        (true, Ok(_), Err(_)) => Err(invalid("PGSSLCERT", "unset, or beside PGSSLKEY")),
        (true, Err(_), Ok(_)) => Err(invalid("PGSSLKEY", "unset, or beside PGSSLCERT")),
        _ => Ok(()),
    }
}

fn invalid(variable: &str, allowed: &str) -> Error {
    errors::invalid(&format!("environment variable {variable}"), "(set)", allowed)
}
