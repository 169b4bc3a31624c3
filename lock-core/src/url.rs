//! Store URLs: `scheme://[user[:password]@]host[:port][,host[:port]]..[/path][?option=value&..]`.

use std::{collections::BTreeMap, fmt, time::Duration};

use percent_encoding::percent_decode_str;

use crate::{Error, Result};

/// A store URL, taken apart. `Debug` and `Display` never show the password.
///
/// ```
/// # use lock_core as distlock;
/// use distlock::StoreUrl;
///
/// let url = StoreUrl::parse("redis://me:se%40cret@10.0.0.1,10.0.0.2:7000/3?ttl=10s")?;
/// assert_eq!(url.hosts(6379), ["10.0.0.1:6379", "10.0.0.2:7000"]);
/// assert_eq!(url.password(), Some("se@cret"));
/// assert_eq!(url.to_string(), "redis://me:***@10.0.0.1,10.0.0.2:7000/3?ttl=10s");
/// # Ok::<(), lock_core::Error>(())
/// ```
#[derive(Clone)]
pub struct StoreUrl {
    shown: String,
    scheme: String,
    user: Option<String>,
    password: Option<String>,
    authority: bool,
    hosts: Vec<String>,
    path: String,
    options: BTreeMap<String, String>,
}

impl StoreUrl {
    /// Takes a URL apart.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] if there is no scheme, an escape is broken, a port is no number, an
    /// option has no `=` or is given twice.
    pub fn parse(url: &str) -> Result<Self> {
        let shown = without_password(url);
        let bad = |reason: String| Error::InvalidUrl { url: shown.clone(), reason };
        let (scheme, rest) = url
            .split_once(':')
            .filter(|(scheme, _)| is_scheme(scheme))
            .ok_or_else(|| bad("expected SCHEME:.. or SCHEME://HOST..".to_owned()))?;
        if has_stray_at(rest) {
            return Err(bad(
                "an @ that does not end the login must be escaped as %40, and so must /, ? and # \
                 in a password, as %2F, %3F and %23"
                    .to_owned(),
            ));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
            None => ("", rest),
        };
        let (login, hosts) = match authority.split_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (user, password) = match login.map(|l| l.split_once(':').unwrap_or((l, ""))) {
            Some((user, password)) => (decode(user).map_err(bad)?, decode(password).map_err(bad)?),
            None => (String::new(), String::new()),
        };
        let hosts: Vec<String> =
            hosts.split(',').filter(|h| !h.is_empty()).map(str::to_owned).collect();
        if let Some(host) = hosts.iter().find(|host| !is_host(host)) {
            return Err(bad(format!(
                "{host:?} is not HOST or HOST:PORT with a port of 1 to 65535"
            )));
        }
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            user: Some(user).filter(|u| !u.is_empty()),
            password: Some(password).filter(|p| !p.is_empty()),
            authority: rest.starts_with("//"),
            hosts,
            path: decode(path).map_err(bad)?,
            options: options(query).map_err(bad)?,
            shown,
        })
    }

    /// The scheme, in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The user name, decoded.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The password, decoded.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The hosts with their ports; `127.0.0.1` if the URL names none.
    pub fn hosts(&self, default_port: u16) -> Vec<String> {
        let with_port = |host: &String| match port_of(host) {
            Some(_) => host.clone(),
            None => format!("{host}:{default_port}"),
        };
        match self.hosts.as_slice() {
            [] => vec![format!("127.0.0.1:{default_port}")],
            hosts => hosts.iter().map(with_port).collect(),
        }
    }

    /// Whether the URL has a `//`, with a host or without.
    pub fn has_authority(&self) -> bool {
        self.authority
    }

    /// Whether the URL names a host.
    pub fn has_host(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// What follows the first `/` after the hosts, decoded; empty if there is none.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads the options; each must be asked for before [`Options::finish`].
    pub fn options(&self) -> Options<'_> {
        Options { given: &self.options, known: Vec::new() }
    }

    /// An error about this URL.
    pub fn error(&self, reason: impl Into<String>) -> Error {
        Error::InvalidUrl { url: self.shown.clone(), reason: reason.into() }
    }
}

/// To be read from a program's configuration. It is not written: the password would be in it, or missing.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for StoreUrl {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let url = <std::borrow::Cow<'_, str>>::deserialize(from)?;
        Self::parse(&url).map_err(serde::de::Error::custom)
    }
}

impl std::str::FromStr for StoreUrl {
    type Err = Error;

    /// # Errors
    ///
    /// As [`StoreUrl::parse`].
    fn from_str(url: &str) -> Result<Self> {
        Self::parse(url)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown, f)
    }
}

/// The options of a URL. A driver asks for each that it knows, then calls [`finish`](Self::finish),
/// which refuses the rest: a misspelt option is an error, not a default.
#[derive(Debug)]
pub struct Options<'a> {
    given: &'a BTreeMap<String, String>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    /// The text of an option.
    pub fn text(&mut self, option: &'static str) -> Option<&'a str> {
        self.known.push(option);
        self.given.get(option).map(String::as_str)
    }

    /// A duration: a whole number above zero and `ms`, `s`, `m` or `h`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] if it is anything else.
    pub fn duration(&mut self, option: &'static str) -> Result<Option<Duration>> {
        let Some(text) = self.text(option) else { return Ok(None) };
        match parse_duration(text).filter(|duration| !duration.is_zero()) {
            Some(duration) => Ok(Some(duration)),
            None => Err(invalid(option, text, "expected a number with ms, s, m or h, as in 15s")),
        }
    }

    /// A whole number within a range.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] if it is anything else.
    pub fn number(
        &mut self,
        option: &'static str,
        allowed: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>> {
        let Some(text) = self.text(option) else { return Ok(None) };
        match text.parse() {
            Ok(number) if allowed.contains(&number) => Ok(Some(number)),
            _ => {
                let expected =
                    format!("expected a number of {} to {}", allowed.start(), allowed.end());
                Err(invalid(option, text, &expected))
            }
        }
    }

    /// One of several words.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] if it is none of them.
    pub fn choice<T: Copy>(
        &mut self,
        option: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>> {
        let Some(text) = self.text(option) else { return Ok(None) };
        match choices.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                Err(invalid(option, text, &format!("expected one of {}", words.join(", "))))
            }
        }
    }

    /// Refuses options that nobody asked for.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] that names the first unknown option and all known ones.
    pub fn finish(self) -> Result<()> {
        match self.given.iter().find(|(option, _)| !self.known.contains(&option.as_str())) {
            None => Ok(()),
            Some((option, value)) => {
                let known =
                    if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
                Err(invalid(option, value, &format!("unknown option; this store knows: {known}")))
            }
        }
    }
}

fn invalid(option: &str, value: &str, allowed: &str) -> Error {
    Error::InvalidOption {
        option: format!("URL option {option}"),
        value: value.to_owned(),
        allowed: allowed.to_owned(),
    }
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// The port's text; the colons of a bare IPv6 address, which needs brackets, are none.
fn port_of(host: &str) -> Option<&str> {
    let (name, port) = host.rsplit_once(':')?;
    (!name.contains(':') || name.ends_with(']')).then_some(port)
}

fn is_host(host: &str) -> bool {
    let is_port = |port: &str| {
        port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p > 0)
    };
    let name = match port_of(host) {
        Some(port) if is_port(port) => &host[..host.len() - port.len() - 1],
        Some(_) => return false,
        None => host,
    };
    match name.strip_prefix('[') {
        Some(address) => address.ends_with(']') && address.contains(':'),
        None => {
            !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "[]#:@".contains(c))
        }
    }
}

/// What people write as options although it is nobody's to see, in lower case.
const SECRETS: [&str; 7] = ["password", "passwd", "pass", "pwd", "auth", "token", "secret"];

/// Whether there is an `@` that does not end a login. It may be part of a password, or follow a
/// password with a character that ends the authority; taken apart as it is, parts of a password
/// would count as host, path or option, and be shown.
fn has_stray_at(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix("//") else {
        // The login of a URL whose scheme was forgotten.
        return rest.split_once('?').is_some_and(|(_, query)| query.contains('@'));
    };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    rest.matches('@').count() > 1 || (rest.contains('@') && !authority.contains('@'))
}

fn decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| "an escape (%XX) is not UTF-8".to_owned())
}

fn options(query: &str) -> Result<BTreeMap<String, String>, String> {
    let mut options = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (option, value) =
            pair.split_once('=').ok_or_else(|| format!("option {pair:?} has no value"))?;
        if SECRETS.contains(&option.to_ascii_lowercase().as_str()) {
            return Err(format!("a {option} belongs before the host: SCHEME://USER:PASSWORD@HOST"));
        }
        if options.insert(option.to_owned(), decode(value)?).is_some() {
            return Err(format!("option {option:?} is given twice"));
        }
    }
    Ok(options)
}

fn parse_duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..unit].parse().ok()?;
    let seconds = |factor: u64| number.checked_mul(factor).map(Duration::from_secs);
    match &text[unit..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3600),
        _ => None,
    }
}

/// The URL with `***` for everything between the first `:` after the scheme and the last `@`, and for the
/// secrets among the options. Works on any text, also one that is no URL, and rather hides too much
/// than too little.
fn without_password(url: &str) -> String {
    without_secret_options(&without_login(url))
}

/// Without `SCHEME://`, what stands before the `@` may be a login whose scheme was forgotten: `USER:PASSWORD@HOST`.
fn without_login(url: &str) -> String {
    let Some(at) = url.rfind('@') else { return url.to_owned() };
    let scheme = url.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme));
    let start = scheme.map_or(0, |scheme| scheme.len() + "://".len());
    let slashes = url[start..].len() - url[start..].trim_start_matches('/').len();
    let start = start + slashes;
    match url.get(start..at).and_then(|login| login.find(':')) {
        Some(colon) => format!("{}:***{}", &url[..start + colon], &url[at..]),
        None if scheme.is_none() => format!("***{}", &url[at..]),
        None => url.to_owned(),
    }
}

/// The URL with `***` instead of everything from a secret option's value on.
fn without_secret_options(url: &str) -> String {
    let lower = url.to_ascii_lowercase();
    let value = |secret: &&str| {
        let starts = ["?", "&"].map(|before| format!("{before}{secret}="));
        starts.iter().filter_map(|start| Some(lower.find(start)? + start.len())).min()
    };
    match SECRETS.iter().filter_map(value).min() {
        Some(value) => format!("{}***", &url[..value]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_short_forms() {
        let url = StoreUrl::parse("memory:").unwrap();
        assert_eq!((url.scheme(), url.path()), ("memory", ""));
        assert_eq!(StoreUrl::parse("memory:demo").unwrap().path(), "demo");
        assert_eq!(StoreUrl::parse("etcd://").unwrap().hosts(2379), ["127.0.0.1:2379"]);
        assert_eq!(StoreUrl::parse("etcd://[::1]").unwrap().hosts(2379), ["[::1]:2379"]);
        assert_eq!(StoreUrl::parse("etcd://[::1]:1").unwrap().hosts(2379), ["[::1]:1"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (url, expected) in [
            ("", "SCHEME"),
            ("127.0.0.1:2379", "SCHEME"),
            ("etcd://host:99999", "99999"),
            ("etcd://host:port", "port"),
            ("etcd://:2379", "HOST"),
            ("etcd://h?ttl", "no value"),
            ("etcd://h?a=1&a=2", "twice"),
            ("etcd://h/%FF", "UTF-8"),
            ("etcd://h:+5", "h:+5"),
            ("etcd://[::1", "[::1"),
            ("etcd://fe80::1", "fe80::1"),
            ("redis://me:12/x@h", "escaped"),
            ("redis://h?password=x", "before the host"),
        ] {
            let error = StoreUrl::parse(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }

    #[test]
    fn options_are_typed_and_unknown_ones_refused() {
        let url = StoreUrl::parse("etcd://h?ttl=1500ms&n=7&mode=b").unwrap();
        let mut options = url.options();
        assert_eq!(options.duration("ttl").unwrap(), Some(Duration::from_millis(1500)));
        assert_eq!(options.number("n", 1..=9).unwrap(), Some(7));
        assert!(options.number("n", 1..=6).unwrap_err().to_string().contains("1 to 6"));
        assert_eq!(options.choice("mode", &[("a", 1), ("b", 2)]).unwrap(), Some(2));
        options.finish().unwrap();
        let mut options = url.options();
        options.text("n");
        let error = options.finish().unwrap_err().to_string();
        assert!(error.contains("mode") && error.contains("knows: n"), "{error}");
    }

    #[test]
    fn a_password_among_the_options_is_not_shown() {
        for url in [
            "redis://h?password=QXZ",
            "sqlite:x?ttl=5s&token=QXZ@x&a=b",
            "etcd://u:p@h?pass=QXZ",
            "redis://h?Password=QXZ",
            "redis://h?ttl=5s&PWD=QXZ",
            "mysql://h/d?passwd=QXZ",
            "zookeeper://h?auth=QXZ",
        ] {
            assert!(!without_password(url).contains("QXZ"), "{url}");
            let error = StoreUrl::parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("QXZ"), "{error}");
        }
    }

    #[test]
    fn a_login_whose_scheme_was_forgotten_is_not_shown() {
        for (url, shown) in [
            ("u:QXZ@h", "u:***@h"),
            ("//u:QXZ@h", "//u:***@h"),
            ("QXZ@h", "***@h"),
            ("u:QXZ:QXZ@QXZ@h", "u:***@h"),
            ("u:QXZ?token=QXZ@h", "u:***@h"),
            ("redis://u@h", "redis://u@h"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    proptest! {
        #[test]
        fn never_panics_and_never_shows_the_password(
            url in ".{0,60}",
            // Letters that no message of ours has.
            secret in "[QXZ]{4}[/?#@:a-z%]{0,3}[QXZ]{5}",
            rest in "(/[0-9]?)?([?]ttl=5s)?",
            scheme in "(redis://|//|)",
        ) {
            let _ = StoreUrl::parse(&url);
            let url = format!("{scheme}user:{secret}@host{rest}");
            let shown = match StoreUrl::parse(&url) {
                Ok(url) => format!("{url} {url:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            let (start, end) = (&secret[..4], &secret[secret.len() - 5..]);
            prop_assert!(!shown.contains(start) && !shown.contains(end), "{} in {}", secret, shown);
        }
    }
}
