//! The config files: where they are, and the store that one names.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::exit::{Code, Failure};

const SYSTEM_WIDE: &str = "/etc/distlock/config.toml";

/// What stands in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    store: Option<String>,
}

/// The config files, the user's own first.
pub(crate) fn all() -> Vec<PathBuf> {
    let absolute = |variable| env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".config"));
    let own =
        absolute("XDG_CONFIG_HOME").or_else(home).map(|folder| folder.join("distlock/config.toml"));
    own.into_iter().chain([PathBuf::from(SYSTEM_WIDE)]).collect()
}

/// The store that a file names, if there is a file and it names one.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Failure> {
    let wrong = |what: String| Failure::new(Code::Config, format!("{}: {what}", path.display()));
    // Reading a pipe would wait for a writer.
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return Err(wrong("not a regular file".to_owned()));
    }
    let text = match fs::read_to_string(path) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        text => text.map_err(|error| wrong(error.to_string()))?,
    };
    // The error's own text quotes the line, which may have a password.
    let config: Config = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        wrong(format!("line {line}: {}", error.message()))
    })?;
    Ok(config.store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_file_is_named_and_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        assert_eq!(read(&path).unwrap(), None);
        std::fs::write(&path, "# mine\nstore = \"etcd://h\"\n").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("etcd://h"));
        std::fs::write(&path, "# mine\nstore = redis://:secret@h\n").unwrap();
        let error = format!("{:?}", read(&path).unwrap_err());
        assert!(error.contains("config.toml: line 2") && !error.contains("secret"), "{error}");
    }
}
