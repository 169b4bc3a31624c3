//! The system user of a server that refuses to run as root.

use std::{fs, io, os::unix::fs::chown, path::Path};

/// Another user than the one of this process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// If this process is root's, finds the user of the server's package, or else `nobody`. Other
    /// users run servers as themselves.
    pub(crate) fn instead_of_root(name: &str) -> io::Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd")?;
        let found = [name, "nobody"].into_iter().find_map(|name| entry(&passwd, name));
        let missing =
            || io::Error::new(io::ErrorKind::NotFound, format!("no {name} and no nobody"));
        found.ok_or_else(missing).map(Some)
    }

    pub(crate) fn own(self, folder: &Path) -> io::Result<()> {
        chown(folder, Some(self.uid), Some(self.gid))
    }
}

/// Reads the line of a user: `name:password:uid:gid:..`.
fn entry(passwd: &str, name: &str) -> Option<User> {
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = fields.into_iter().find(|fields| fields[0] == name)?;
    Some(User { uid: fields.get(2)?.parse().ok()?, gid: fields.get(3)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_passwd() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nmysql:x:105:108:MySQL,,,:/:/bin/false\n";
        assert_eq!(entry(passwd, "mysql"), Some(User { uid: 105, gid: 108 }));
        assert_eq!(entry(passwd, "sql"), None);
        assert_eq!(entry("broken", "broken"), None);
    }
}
