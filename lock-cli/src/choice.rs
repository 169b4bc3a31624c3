//! Finds the store: `--store`, else `DISTLOCK_STORE`, else a config file, else the embedded one.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

use distlock::{Connect, Locks};
use lock_core::StoreUrl;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::{
    config_file,
    exit::{Code, Failure, say},
    variables::{self, STORE},
};

const EMBEDDED: &str = "sqlite:";

/// Characters that are escaped in the path of a URL.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A store's URL and its origin. `Debug` does not show the password.
pub(crate) struct Choice {
    url: String,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    Argument,
    Variable,
    File(PathBuf),
    Default,
}

impl Choice {
    /// The one store of a command. If one is `required`, it must be named somewhere.
    pub(crate) fn one(arguments: &[String], required: bool) -> Result<Self, Failure> {
        match arguments {
            [] => Self::configured(required),
            [url] => Ok(Self::argument(url)),
            _ => Err(Failure::new(Code::Usage, "only `check` takes more than one --store")),
        }
    }

    /// All named stores. If none is named, the configured or the embedded one.
    pub(crate) fn all(arguments: &[String], required: bool) -> Result<Vec<Self>, Failure> {
        match arguments {
            [] => Ok(vec![Self::configured(required)?]),
            urls => Ok(urls.iter().map(|url| Self::argument(url)).collect()),
        }
    }

    fn argument(url: &str) -> Self {
        Self { url: url.to_owned(), origin: Origin::Argument }
    }

    /// The store of the variable or of the config files.
    fn configured(required: bool) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::new(Code::Config, why);
        if let Some(url) = env::var_os(STORE) {
            let url = url.into_string().map_err(|_| wrong(format!("{STORE} is not UTF-8")))?;
            if url.is_empty() {
                // It is another one that was not set. This user's own file would exclude no host.
                return Err(wrong(format!("{STORE} is empty: name a store, or unset it")));
            }
            return Ok(meant(&url).unwrap_or(Self { url, origin: Origin::Variable }));
        }
        if let Some(stray) = variables::stray() {
            let known = format!("{stray} is no variable of distlock; the store's is {STORE}");
            return Err(wrong(known));
        }
        for path in config_file::all() {
            if let Some(url) = config_file::read(&path)? {
                return Ok(Self { url, origin: Origin::File(path) });
            }
        }
        if required {
            let ways = format!("--store, {STORE} or a config file");
            return Err(wrong(format!("no store is named, as --require-store asks: use {ways}")));
        }
        Ok(Self { url: EMBEDDED.to_owned(), origin: Origin::Default })
    }

    /// The URL, with its password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether the command line named it.
    pub(crate) fn is_argument(&self) -> bool {
        matches!(self.origin, Origin::Argument)
    }

    /// Connects. A wrong URL is wrong usage only if it was an argument.
    pub(crate) async fn connect(&self) -> Result<Locks, Failure> {
        #[cfg(target_os = "linux")]
        self.refuse_foreign_home()?;
        let connect: Connect = distlock::connect(&self.url);
        connect.await.map_err(|error| self.blame(error.into()))
    }

    /// Connects to a store that excludes other processes.
    #[cfg(target_os = "linux")]
    pub(crate) async fn connect_with_others(&self) -> Result<Locks, Failure> {
        if StoreUrl::parse(&self.url).is_ok_and(|url| url.scheme() == "memory") {
            let why = "memory: is a store inside one process, so it would exclude no other process; \
                       name a store that processes share, as sqlite: on one host";
            return Err(self.blame(Failure::new(Code::Usage, why)));
        }
        self.connect().await
    }

    /// Says on stderr which file is used, if nobody has chosen it.
    #[cfg(target_os = "linux")]
    pub(crate) fn say_default(&self) {
        if let (Origin::Default, Some(path)) = (&self.origin, self.own_file()) {
            say(format_args!(
                "no store is named: {} excludes this user's programs on this machine alone",
                path.display()
            ));
        }
    }

    /// The user's own file, if that is the store.
    #[cfg(target_os = "linux")]
    fn own_file(&self) -> Option<PathBuf> {
        let url = StoreUrl::parse(&self.url).ok()?;
        let is_own = url.scheme() == "sqlite" && url.path().is_empty();
        is_own.then(|| file(&url))?
    }

    /// Root with another user's HOME, as below `sudo`, would leave files there that the user cannot
    /// open.
    #[cfg(target_os = "linux")]
    fn refuse_foreign_home(&self) -> Result<(), Failure> {
        use std::{fs, os::unix::fs::MetadataExt};

        let Some(path) = self.own_file().filter(|_| rustix::process::geteuid().is_root()) else {
            return Ok(());
        };
        let mut folders = path.ancestors().skip(1);
        let Some((folder, owner)) =
            folders.find_map(|folder| Some((folder, fs::metadata(folder).ok()?.uid())))
        else {
            return Ok(());
        };
        match owner {
            0 => Ok(()),
            owner => Err(Failure::new(
                Code::Config,
                format!(
                    "{} is of user {owner}, and this is root: name a store, or set HOME",
                    folder.display()
                ),
            )),
        }
    }

    /// Names the origin of a wrong URL. It is wrong usage only if it was an argument.
    fn blame(&self, failure: Failure) -> Failure {
        match (failure.code(), &self.origin) {
            (Code::Usage, Origin::Variable) => failure.within(Code::Config, STORE),
            (Code::Usage, Origin::File(path)) => failure.within(Code::Config, path.display()),
            _ => failure,
        }
    }

    /// The URL without its password, for the command that is run.
    pub(crate) fn public(&self) -> String {
        match StoreUrl::parse(&self.url) {
            // A file has no password, and the command may go to another folder.
            Ok(url) if url.scheme() == "sqlite" && !url.has_authority() => {
                absolute(&self.url, &url, env::current_dir().ok())
            }
            Ok(url) => without_stars(&url.to_string()),
            // No store has such a URL.
            Err(_) => String::new(),
        }
    }
}

/// The store as people read it, without a password.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.public().as_str() {
            EMBEDDED => write!(f, "{EMBEDDED} (this user's own file)"),
            public => f.write_str(public),
        }
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choice").field("url", &self.public()).field("origin", &self.origin).finish()
    }
}

/// Finds the config file with this URL and a password. `run` gives the URL to its command without
/// the password.
fn meant(public: &str) -> Option<Choice> {
    let of = |path: PathBuf| {
        // A wrong file does not matter if a store is named.
        let url = config_file::read(&path).ok()??;
        StoreUrl::parse(&url).ok()?.password()?;
        Some(Choice { url, origin: Origin::File(path) }).filter(|choice| choice.public() == public)
    };
    config_file::all().into_iter().find_map(of)
}

/// The URL of a file, with an absolute path.
fn absolute(url: &str, parsed: &StoreUrl, folder: Option<PathBuf>) -> String {
    match (url.split_once(':'), folder) {
        (Some((scheme, path)), Some(folder))
            if !parsed.path().is_empty() && Path::new(parsed.path()).is_relative() =>
        {
            let folder = percent_encode(folder.as_os_str().as_encoded_bytes(), ESCAPED).to_string();
            // Two slashes would begin a host.
            format!("{scheme}:{}/{path}", folder.trim_end_matches('/'))
        }
        _ => url.to_owned(),
    }
}

/// `user:***@host` as `user@host`, which is a URL again.
fn without_stars(url: &str) -> String {
    url.replacen("://:***@", "://", 1).replacen(":***@", "@", 1)
}

/// The file that a URL names, if it does not exist.
pub(crate) fn missing_file(url: &StoreUrl) -> Option<String> {
    let path = file(url).filter(|path| !path.exists())?;
    Some(path.display().to_string())
}

/// The file that a URL names.
#[cfg(feature = "sqlite")]
fn file(url: &StoreUrl) -> Option<PathBuf> {
    distlock::sql::SqlConfig::from_url(url).ok()?.path()
}

#[cfg(not(feature = "sqlite"))]
fn file(_: &StoreUrl) -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_url_is_a_url_without_the_password() {
        for (url, public) in [
            ("redis://me:secret@h/2?ttl=5s", "redis://me@h/2?ttl=5s"),
            ("redis://:secret@h", "redis://h"),
            ("sqlite:", "sqlite:"),
            ("sqlite:/a@b/c:d@e?ttl=5s", "sqlite:/a@b/c:d@e?ttl=5s"),
            ("redis://h", "redis://h"),
            ("no url, secret", ""),
        ] {
            let choice = Choice { url: url.to_owned(), origin: Origin::Argument };
            assert_eq!(choice.public(), public);
            assert!(!format!("{choice:?}").contains("secret"));
        }
    }

    #[test]
    fn a_file_is_named_from_the_root_on() {
        for (url, public) in [
            ("sqlite:a%20b.db?ttl=5s", "sqlite:/work/%C3%A4%20%40%3F/a%20b.db?ttl=5s"),
            ("sqlite:/a.db", "sqlite:/a.db"),
            ("sqlite:%2Fa.db", "sqlite:%2Fa.db"),
            ("sqlite:", "sqlite:"),
        ] {
            let folder = Some(PathBuf::from("/work/ä @?"));
            assert_eq!(absolute(url, &StoreUrl::parse(url).unwrap(), folder), public);
        }
        let (url, root) = ("sqlite:a.db", Some(PathBuf::from("/")));
        assert_eq!(absolute(url, &StoreUrl::parse(url).unwrap(), root), "sqlite:/a.db");
    }
}
