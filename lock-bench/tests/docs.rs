//! The generated blocks of `docs/speed.md`.

use std::path::Path;

use lock_bench::{
    Failure,
    docs::{documents, filled},
};

use crate::html::played;

const COMMAND: &str = "cargo run -p distlock-bench --example speed -- docs/speed/report.json";

#[test]
fn the_documents_match_the_report() -> Result<(), Failure> {
    let report = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/speed/report.json");
    for document in documents(&report)? {
        assert!(document.is_current()?, "{} is out of date: {COMMAND}", document.path.display());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_filled_from_the_report_alone() -> Result<(), Failure> {
    let report = played().await?;
    let block =
        |what: &str| format!("<!-- begin generated: {what} -->\nold\n<!-- end generated -->\n");
    let page = filled(&block("preset hot-name"), &report)?;
    assert!(!page.contains("old") && page.contains("| memory | distlock | distlock |"), "{page}");
    let page = filled(&block("answers"), &report)?;
    assert!(page.contains("no hand-over of the preset hot-fleet"), "{page}");
    for (what, told) in [("preset hot-nam", "no preset"), ("rates", "unknown block \"rates\"")] {
        let refused = filled(&block(what), &report).expect_err(what).to_string();
        assert!(refused.contains(told), "{refused}");
    }
    Ok(())
}
