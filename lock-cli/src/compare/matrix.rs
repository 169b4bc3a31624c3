//! The verdicts, on a terminal.

use std::io;

use lock_compare::{Report, Row, TWO_MARKS, Verdict};

use crate::print;

/// Prints the matrix, the meaning of its signs, and the results that a reader would not expect.
pub(super) fn print(report: &Report) -> io::Result<()> {
    let stores = report.stores.iter().map(|store| store.name());
    let headings: Vec<_> = ["", "CLAIM"].into_iter().chain(stores).collect();
    print::fitted(&headings, report.rows.iter().map(row))?;
    print::lines(["", TWO_MARKS])?;
    print::lines(Verdict::ALL.iter().filter_map(|verdict| legend(report, *verdict)))?;
    section("Differs from the documents:", told(report, Verdict::Differs))?;
    section("Failed, so that there is no verdict:", told(report, Verdict::Failed))?;
    section("Not run:", report.missing.clone())?;
    print::line("")?;
    let (took, command) = (report.took, &report.command);
    print::line(format!("It took {took:.0} s. To repeat it: {command}"))
}

fn row(row: &Row) -> Vec<String> {
    let signs = row.cells.iter().map(|cell| cell.outcome.signs());
    [format!("C{}", row.claim.number), row.claim.title.clone()].into_iter().chain(signs).collect()
}

fn legend(report: &Report, verdict: Verdict) -> Option<String> {
    let count = report.count(verdict);
    (count > 0).then(|| format!("{}  {verdict}: {count}", verdict.sign()))
}

fn told(report: &Report, verdict: Verdict) -> Vec<String> {
    let cells = report.cells().filter(|(_, cell)| cell.outcome.verdict == verdict);
    let told = cells.map(|(claim, cell)| {
        format!("C{} on {}: {}", claim.number, cell.store, cell.outcome.sentence)
    });
    told.collect()
}

fn section(heading: &str, lines: Vec<String>) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    print::lines(["", heading])?;
    print::lines(lines.iter().map(|line| format!("  {line}")))
}
