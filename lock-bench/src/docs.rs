//! The documents' view of a report: the tables of a page, and the page of all figures.

use std::path::Path;

use lock_report::{Document, fill, source};

use crate::{
    Failure, Report,
    columns::SUMMARY,
    html::{answers, beliefs, figures, html},
    words::{load, run},
};

/// Returns the documents made from a report: `report.html` beside it, and the page `<folder>.md`
/// beside its folder, with its generated blocks filled.
pub fn documents(report: &Path) -> Result<Vec<Document>, Failure> {
    let (parsed, folder) = source::<Report>(report)?;
    let figures = Document { path: folder.join("report.html"), content: html(&parsed) };
    Ok(vec![figures, Document::filled(folder, "", |page| filled(page, &parsed))?])
}

/// Returns a page with its generated blocks filled. `WHAT` of a block is one of
///
/// - `run`: the origin of the figures,
/// - `belief`: what to know before one believes a lock benchmark,
/// - `answers`: the questions that a report answers at its top,
/// - `preset NAME`: the load of a preset, and its figures.
pub fn filled(page: &str, report: &Report) -> Result<String, Failure> {
    fill::<Failure>(page, |what| generated(what, report))
}

fn generated(what: &str, report: &Report) -> Result<String, Failure> {
    let words: Vec<_> = what.split_whitespace().collect();
    match words.as_slice() {
        ["run"] => Ok(run(report).join("\n")),
        ["belief"] => Ok(beliefs()),
        ["answers"] => Ok(told(report)),
        ["preset", name] => {
            let section = report.sections.iter().find(|section| section.preset == *name);
            let section = section.ok_or_else(|| format!("the report has no preset {name:?}"))?;
            let table = figures(section, &SUMMARY).markdown();
            Ok(format!("{} {}\n\n{table}", section.models, load(section)))
        }
        _ => Err(format!("unknown block {what:?}; known are run, belief, answers and preset NAME")
            .into()),
    }
}

fn told(report: &Report) -> String {
    let answers = answers(report).map(|answer| {
        format!("**{}** {}\n\n{}", answer.question, answer.told, answer.table.markdown())
    });
    answers.join("\n\n")
}
