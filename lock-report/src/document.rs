//! Files of the documents that are made from a report.

use std::{
    fmt::Display,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::de::DeserializeOwned;

/// A file of the documents, with its expected contents.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Document {
    /// Its path.
    pub path: PathBuf,
    /// The contents made from the report.
    pub content: String,
}

impl Document {
    /// The page `<folder><suffix>.md` beside a folder, with `fill` done to its text. An error is a
    /// sentence with the page.
    pub fn filled<E: Display>(
        folder: &Path,
        suffix: &str,
        fill: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<Self, String> {
        let mut path = folder.as_os_str().to_owned();
        path.push(format!("{suffix}.md"));
        let path = PathBuf::from(path);
        let content =
            fill(&read(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, content })
    }

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

/// Reads a report. Returns it with its folder, in which and beside which its documents are. An error
/// is a sentence with the file.
pub fn source<R: DeserializeOwned>(report: &Path) -> Result<(R, &Path), String> {
    let parsed = serde_json::from_str(&read(report)?)
        .map_err(|error| format!("{} is no report: {error}", report.display()))?;
    let folder = report.parent().filter(|folder| folder.file_name().is_some());
    Ok((parsed, folder.ok_or("name the report with its folder, as docs/speed/report.json")?))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
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
