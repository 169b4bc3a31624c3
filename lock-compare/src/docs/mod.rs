//! The documents' view of a report: the pages' tables, the picture, the page of evidence.
//!
//! All of it is made from one `report.json`, so that no figure in the documents is written by hand.

mod blocks;
mod language;
mod picture;
mod tables;
mod titles;

use std::path::Path;

use lock_report::{Document, source};

use crate::{Failure, Report, html};

pub(crate) use self::{blocks::fill, language::Language, picture::picture};

/// Returns the documents made from a report: `report.html` and the pictures beside it, and the
/// pages `<folder>.md` and `<folder>.zh.md` beside its folder, with their generated blocks filled.
pub fn documents(report: &Path) -> Result<Vec<Document>, Failure> {
    let (parsed, folder) = source::<Report>(report)?;
    let evidence = Document { path: folder.join("report.html"), content: html(&parsed) };
    let mut documents = vec![evidence];
    for language in Language::ALL {
        let path = folder.join(format!("matrix{}.svg", language.suffix()));
        documents.push(Document { path, content: picture(&parsed, language) });
        let fill = |page: &str| fill(page, &parsed, language);
        documents.push(Document::filled(folder, language.suffix(), fill)?);
    }
    Ok(documents)
}

#[cfg(test)]
mod tests;
