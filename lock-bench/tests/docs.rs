//! The generated blocks of `docs/speed.md`.

use std::path::Path;

use lock_bench::{
    Failure,
    docs::{documents, filled},
    table,
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
    let mut report = played().await?;
    let block =
        |what: &str| format!("<!-- begin generated: {what} -->\nold\n<!-- end generated -->\n");
    let page = filled(&block("preset hot-name"), &report)?;
    assert!(!page.contains("old") && page.contains("| memory | distlock | distlock |"), "{page}");
    let load = "16 tasks in one process, one name, exclusive, released at once; closed loop; 3 \
                rounds of 200ms.";
    assert!(page.contains(load), "{page}");
    let page = filled(&block("answers"), &report)?;
    assert!(page.contains("no hand-over of the preset hot-fleet"), "{page}");
    assert!(page.contains("256 tasks in one process ask at once"), "{page}");
    assert!(!page.contains("sweep over workers"), "this run has none: {page}");
    for (what, told) in [("preset hot-nam", "no preset"), ("rates", "unknown block \"rates\"")] {
        let refused = filled(&block(what), &report).expect_err(what).to_string();
        assert!(refused.contains(told), "{refused}");
    }
    report.sections[0].preset = "uncontended".into();
    let page = filled(&block("answers"), &report)?;
    assert!(page.contains(" ns with distlock, and ") && page.contains("own work"), "{page}");
    assert!(table(&report).contains("In memory no request is sent"), "{}", table(&report));
    // A crash shows a time for each contender, and no rate.
    report.sections[0].preset = "crash".into();
    let page = filled(&block("preset crash"), &report)?;
    assert!(page.contains("| store | contender | time until the next grant |"), "{page}");
    assert!(!page.contains("acquisitions"), "{page}");
    Ok(())
}
