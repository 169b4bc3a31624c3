//! Files of the documents that are made from a report.

use std::{
    fmt::Display,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// A file of the documents, with its expected contents.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Document {
    /// Its path.
    pub path: PathBuf,
    /// The contents made from the report.
    pub content: String,
}

impl Document {
    /// Returns whether the file has these contents. `false` if it does not exist.
    pub fn is_current(&self) -> io::Result<bool> {
        match fs::read(&self.path) {
            Ok(found) => Ok(found == self.content.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes the file.
    pub fn write(&self) -> io::Result<()> {
        fs::write(&self.path, &self.content)
    }
}

/// The program that writes the documents of a report: `docs [--check] REPORT`. With `--check` it
/// writes nothing, and its exit code is 1 if a file differs from what it would write.
pub fn refresh<E: Display>(
    words: impl Iterator<Item = String>,
    documents: impl FnOnce(&Path) -> Result<Vec<Document>, E>,
) -> ExitCode {
    let (options, files): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('-'));
    let check = match options.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        ["--check"] => true,
        _ => return usage(),
    };
    let [report] = files.as_slice() else { return usage() };
    let done = documents(Path::new(report)).map_err(|failure| failure.to_string());
    match done.and_then(|all| bring(&all, check).map_err(|error| error.to_string())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: docs [--check] REPORT");
    ExitCode::from(2)
}

/// Returns whether all files are up to date.
fn bring(documents: &[Document], check: bool) -> io::Result<bool> {
    let mut is_well = true;
    for document in documents {
        if document.is_current()? {
            continue;
        }
        let path = document.path.display();
        if check {
            eprintln!("{path} is not what the report makes of it; run this without --check");
            is_well = false;
        } else {
            document.write()?;
            println!("{path} written");
        }
    }
    Ok(is_well)
}
