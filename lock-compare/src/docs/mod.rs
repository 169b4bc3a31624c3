//! The documents' view of a report: the pages' tables, the picture, the page of evidence.
//!
//! All of it is made from one `report.json`, so that no figure in the documents is written by hand.

mod blocks;
mod language;
mod picture;
mod tables;
mod titles;

use std::{
    fs,
    path::{Path, PathBuf},
};

use lock_report::Document;

use crate::{Failure, Report, html};

pub(crate) use self::{blocks::fill, language::Language, picture::picture};

/// Returns the documents made from a report: `report.html` and the pictures beside it, and the
/// pages `<folder>.md` and `<folder>.zh.md` beside its folder, with their generated blocks filled.
pub fn documents(report: &Path) -> Result<Vec<Document>, Failure> {
    let text = read(report)?;
    let parsed: Report = serde_json::from_str(&text)
        .map_err(|error| format!("{} is no report: {error}", report.display()))?;
    let folder = report.parent().filter(|folder| folder.file_name().is_some());
    let folder = folder.ok_or("name the report with its folder, as docs/comparison/report.json")?;
    let evidence = Document { path: folder.join("report.html"), content: html(&parsed) };
    let mut documents = vec![evidence];
    for language in Language::ALL {
        let path = folder.join(format!("matrix{}.svg", language.suffix()));
        documents.push(Document { path, content: picture(&parsed, language) });
        let mut path = folder.as_os_str().to_owned();
        path.push(format!("{}.md", language.suffix()));
        let path = PathBuf::from(path);
        let content = fill(&read(&path)?, &parsed, language)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        documents.push(Document { path, content });
    }
    Ok(documents)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests;
