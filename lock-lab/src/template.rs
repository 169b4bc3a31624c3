//! Data directories that are made once on a machine and then copied.

use std::{
    env,
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::LabError;

/// Makes the folder `data`, if it is not there yet, and becomes the server.
///
/// The template is one file, so it exists wholly or not at all. Its folder is writable for its
/// owner only, since a server is as safe as the data that it starts with. The file lock makes other
/// processes wait instead of doing the same work; it ends with its process.
const SCRIPT: &str = r#"
set -e
folder=$1-$(id -u) template=$2 tool=$3 make=$4 first=$5; shift 5
if [ ! -d data ]; then
    mkdir -p -m 700 "$folder"
    if [ -L "$folder" ] || [ ! -O "$folder" ]; then
        echo "$folder belongs to somebody else" >&2; exit 1
    fi
    exec 9>"$folder/lock"
    flock 9
    rm -rf new
    if [ ! -f "$folder/$template" ]; then
        eval "$make"
        tar -cf "$folder/part" new
        mv "$folder/part" "$folder/$template"
    fi
    exec 9>&-
    [ -d new ] || tar -xf "$folder/$template"
    eval "$first"
    mv new data
fi
exec "$@"
"#;

pub(crate) struct Template {
    pub(crate) server: &'static str,
    /// The program that makes a data directory: `$tool` in the scripts. `$1` is the server's.
    pub(crate) tool: PathBuf,
    /// A shell script that makes the folder `new`. Its content becomes the template.
    pub(crate) make: &'static str,
    /// A shell script that adapts the folder `new` to one server, before its first start.
    pub(crate) first: &'static str,
}

impl Template {
    /// Returns the command that starts `server`, in the folder for `data`.
    pub(crate) fn command(self, server: Vec<OsString>) -> Result<Vec<OsString>, LabError> {
        let name =
            self.name(Path::new(&server[0])).map_err(LabError::io("looking at a program"))?;
        let folder = env::temp_dir().join("lock-lab-templates");
        let shell = ["/bin/sh", "-c", SCRIPT, "lock-lab"].map(OsString::from);
        let own =
            [folder.into(), name.into(), self.tool.into(), self.make.into(), self.first.into()];
        Ok(shell.into_iter().chain(own).chain(server).collect())
    }

    /// Returns a name that differs for other programs, such as those of the next release.
    fn name(&self, server: &Path) -> io::Result<String> {
        let mut hasher = DefaultHasher::new();
        self.make.hash(&mut hasher);
        for program in [&self.tool, server] {
            let facts = fs::metadata(program)?;
            (program, facts.len(), facts.mtime()).hash(&mut hasher);
        }
        Ok(format!("{}-{:016x}.tar", self.server, hasher.finish()))
    }
}
