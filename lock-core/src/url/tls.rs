//! How a connection is encrypted, with the same options on every store.

use std::{fmt, fs, path::PathBuf};

use super::{StoreUrl, options::Options};
use crate::{Result, keep::errors::invalid};

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Encryption {
    /// Never.
    #[default]
    Off,
    /// If the server can. It does not protect from a program between client and server. PostgreSQL
    /// and MySQL only, where it is the default.
    Prefer,
    /// Always, with a certificate for the server's name that a trusted authority has signed.
    Verify,
}

/// How a connection is encrypted. In a URL: `tls=off|prefer|verify`, `ca=FILE`, `cert=FILE`,
/// `key=FILE` and `server_name=NAME`.
///
/// ```
/// # use lock_core as distlock;
/// use distlock::{Encryption, Tls};
///
/// let tls = Tls::verify().ca("/etc/ssl/our-ca.pem").server_name("locks.internal");
/// assert_eq!(tls.mode, Encryption::Verify);
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct Tls {
    /// Whether to encrypt. Default: off; on PostgreSQL and MySQL, if the server can.
    pub mode: Encryption,
    /// The certificates of the authorities that may sign the server's certificate. Default: those
    /// that the operating system trusts.
    pub ca: Option<Pem>,
    /// The certificate that the client shows, with its chain. Default: none.
    pub cert: Option<Pem>,
    /// The private key of [`cert`](Self::cert).
    pub key: Option<Pem>,
    /// The name that the server's certificate must have. Default: the host in the URL.
    pub server_name: Option<String>,
}

/// Certificates or a key in the format PEM. `Debug` shows the path, never the text.
///
/// In a configuration file, the path.
#[derive(Clone, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(from = "PathBuf"))]
#[non_exhaustive]
pub enum Pem {
    /// The path of a file, which is read at every connect.
    File(PathBuf),
    /// The text.
    Text(String),
}

impl Tls {
    /// TLS with a verified certificate; everything else has its default.
    pub fn verify() -> Self {
        Self { mode: Encryption::Verify, ..Self::default() }
    }

    crate::setters! {
        /// Sets [`ca`](Self#structfield.ca).
        ca: impl Into<Pem> => Some(ca.into());
        /// Sets [`cert`](Self#structfield.cert).
        cert: impl Into<Pem> => Some(cert.into());
        /// Sets [`key`](Self#structfield.key).
        key: impl Into<Pem> => Some(key.into());
        /// Sets [`server_name`](Self#structfield.server_name).
        server_name: impl Into<String> => Some(server_name.into());
    }

    /// For drivers: reads the options of a URL. `default` is the mode if the URL names none;
    /// [`Encryption::Prefer`] can be chosen only where it is the default.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) for another mode, and as
    /// [`check`](Self::check).
    pub fn from_options(options: &mut Options<'_>, default: Encryption) -> Result<Self> {
        let modes = [
            ("off", Encryption::Off),
            ("verify", Encryption::Verify),
            ("prefer", Encryption::Prefer),
        ];
        let modes = if default == Encryption::Prefer { &modes[..] } else { &modes[..2] };
        let mode = options.choice("tls", modes)?.unwrap_or(default);
        let mut pem = |option| options.text(option).map(Pem::from);
        let (ca, cert, key) = (pem("ca"), pem("cert"), pem("key"));
        let server_name = options.text("server_name").map(str::to_owned);
        let tls = Self { mode, ca, cert, key, server_name };
        tls.check()?;
        Ok(tls)
    }

    /// For drivers: reads the options of a URL whose scheme may ask for TLS, as `rediss` does.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](crate::Error::InvalidUrl) for such a scheme with `tls=off`; else as
    /// [`from_options`](Self::from_options).
    pub fn from_url(url: &StoreUrl, options: &mut Options<'_>, encrypted: &[&str]) -> Result<Self> {
        if !encrypted.contains(&url.scheme()) {
            return Self::from_options(options, Encryption::Off);
        }
        let tls = Self::from_options(options, Encryption::Verify)?;
        match tls.mode {
            Encryption::Verify => Ok(tls),
            _ => Err(url.error(format!("{}:// means tls=verify", url.scheme()))),
        }
    }

    /// For drivers: refuses what has no effect. A configuration that names an authority and does
    /// not verify would look safe.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) for any other option without
    /// [`Encryption::Verify`], a certificate without its key, and a key without its certificate.
    pub fn check(&self) -> Result<()> {
        let paired = self.cert.is_some() == self.key.is_some();
        let given = [
            ("ca", self.ca.as_ref().map(Pem::shown)),
            ("cert", self.cert.as_ref().map(Pem::shown)),
            ("key", self.key.as_ref().map(Pem::shown)),
            ("server_name", self.server_name.clone()),
        ];
        for (option, value) in given {
            let Some(value) = value else { continue };
            if self.mode != Encryption::Verify {
                return Err(invalid(option, value, "it needs tls=verify"));
            }
            if !paired && matches!(option, "cert" | "key") {
                return Err(invalid(option, value, "cert and key need each other"));
            }
        }
        Ok(())
    }
}

impl Pem {
    /// Returns the text.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) with `option` if the file cannot
    /// be read.
    pub fn read(&self, option: &str) -> Result<String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => fs::read_to_string(path)
                .map_err(|error| invalid(option, self.shown(), format!("not readable: {error}"))),
        }
    }

    pub(crate) fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Text(_) => "(a text)".to_owned(),
        }
    }
}

impl From<&str> for Pem {
    fn from(path: &str) -> Self {
        Self::File(path.into())
    }
}

impl From<PathBuf> for Pem {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreUrl;

    fn tls(query: &str, default: Encryption) -> Result<Tls> {
        let url = StoreUrl::parse(&format!("x://h?{query}"))?;
        let mut options = url.options();
        let tls = Tls::from_options(&mut options, default)?;
        options.finish()?;
        Ok(tls)
    }

    #[test]
    fn everything_can_be_said_in_a_url() {
        let read = tls("tls=verify&ca=/a&cert=/b&key=/c&server_name=d", Encryption::Off).unwrap();
        assert_eq!(read, Tls::verify().ca("/a").cert("/b").key("/c").server_name("d"));
        assert_eq!(tls("", Encryption::Prefer).unwrap().mode, Encryption::Prefer);
        assert_eq!(tls("tls=prefer", Encryption::Prefer).unwrap().mode, Encryption::Prefer);
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        for (query, why) in [
            ("ca=/a", "it needs tls=verify"),
            ("tls=off&server_name=d", "it needs tls=verify"),
            ("tls=verify&cert=/b", "need each other"),
            ("tls=verify&key=/c", "need each other"),
            ("tls=yes", "expected one of off, verify"),
            ("tls=prefer", "expected one of off, verify"),
        ] {
            let error = tls(query, Encryption::Off).unwrap_err().to_string();
            assert!(error.contains(why), "{query}: {error}");
        }
    }

    #[test]
    fn a_scheme_may_ask_for_tls() {
        let read = |url: &str| {
            let url = StoreUrl::parse(url).unwrap();
            Tls::from_url(&url, &mut url.options(), &["rediss"]).map(|tls| tls.mode)
        };
        assert_eq!(read("redis://h").unwrap(), Encryption::Off);
        assert_eq!(read("rediss://h?ca=/a").unwrap(), Encryption::Verify);
        assert!(read("rediss://h?tls=off").unwrap_err().to_string().contains("tls=verify"));
    }

    #[test]
    fn a_text_is_not_shown() {
        let shown = format!("{:?}", Pem::Text("secret".to_owned()));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
