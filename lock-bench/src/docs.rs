//! The documents' view of a report: the tables of a page, and the page of all figures.

use std::{
    fs,
    path::{Path, PathBuf},
};

use lock_report::{Document, fill};

use crate::{
    Failure, Report,
    columns::SUMMARY,
    html::{answers, beliefs, figures, html},
    words::{load, run},
};

/// Returns the documents made from a report: `report.html` beside it, and the page `<folder>.md`
/// beside its folder, with its generated blocks filled.
pub fn documents(report: &Path) -> Result<Vec<Document>, Failure> {
    let parsed: Report = serde_json::from_str(&read(report)?)
        .map_err(|error| format!("{} is no report: {error}", report.display()))?;
    let folder = report.parent().filter(|folder| folder.file_name().is_some());
    let folder = folder.ok_or("name the report with its folder, as docs/speed/report.json")?;
    let mut page = folder.as_os_str().to_owned();
    page.push(".md");
    let page = PathBuf::from(page);
    let content =
        filled(&read(&page)?, &parsed).map_err(|error| format!("{}: {error}", page.display()))?;
    let figures = Document { path: folder.join("report.html"), content: html(&parsed) };
    Ok(vec![figures, Document { path: page, content }])
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

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}
