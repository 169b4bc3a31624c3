//! TLS as the client crate has it, in a build that has it.

use std::time::Duration;

use etcd_client::ConnectOptions;
use lock_core::{
    Encryption, Result, Tls,
    keep::{
        self,
        errors::{NO_TLS, invalid, no_tls},
    },
};

/// Refuses what a URL cannot have, files that are no certificates, and whatever asks for TLS in a
/// build without it.
pub(crate) fn check(tls: &Tls, endpoints: &[String]) -> Result<()> {
    keep::tls::check(tls)?;
    let encrypted = endpoints.iter().find(|endpoint| endpoint.starts_with("https://"));
    match encrypted.filter(|_| !cfg!(feature = "tls")) {
        Some(endpoint) => Err(invalid("hosts", endpoint, NO_TLS)),
        // Another driver of the program may have brought what has checked it.
        None if tls.mode != Encryption::Off && !cfg!(feature = "tls") => Err(no_tls()),
        None => Ok(()),
    }
}

/// Adds the configuration in the client crate's form.
#[cfg(feature = "tls")]
pub(super) fn encrypted(
    options: ConnectOptions,
    tls: &Tls,
    limit: Duration,
) -> Result<ConnectOptions> {
    use etcd_client::{Certificate, Identity, TlsOptions};

    let mut form = TlsOptions::new().timeout(limit);
    form = match &tls.ca {
        Some(ca) => form.ca_certificate(Certificate::from_pem(ca.read("ca")?)),
        None => form.with_native_roots(),
    };
    if let (Some(cert), Some(key)) = (&tls.cert, &tls.key) {
        form = form.identity(Identity::from_pem(cert.read("cert")?, key.read("key")?));
    }
    Ok(options.with_tls(match &tls.server_name {
        Some(name) => form.domain_name(name),
        None => form,
    }))
}

#[cfg(not(feature = "tls"))]
pub(super) fn encrypted(_: ConnectOptions, _: &Tls, _: Duration) -> Result<ConnectOptions> {
    Err(no_tls())
}
