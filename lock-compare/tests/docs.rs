//! The documents match the committed report, and the report has every claim.

use std::{
    fs,
    path::{Path, PathBuf},
};

use lock_compare::{Report, claims, docs::documents};

fn report() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/comparison/report.json")
}

const COMMAND: &str = "cargo run -p distlock-compare --example docs -- docs/comparison/report.json";

#[test]
fn the_documents_match_the_report() {
    for document in documents(&report()).expect("the report and the pages can be read") {
        let is_current = document.is_current().expect("it can be read");
        assert!(is_current, "{} is out of date: {COMMAND}", document.path.display());
    }
}

#[test]
fn the_report_has_every_claim() {
    let text = fs::read_to_string(report()).expect("the report can be read");
    let report: Report = serde_json::from_str(&text).expect("it is a report");
    let there: Vec<_> = report.rows.iter().map(|row| row.claim.number).collect();
    for claim in claims::all().iter().map(|experiment| experiment.claim()) {
        assert!(there.contains(&claim.number), "C{} is not in report.json", claim.number);
    }
}
