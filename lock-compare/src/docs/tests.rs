//! The generated text of a real run on the stores that need no server.

use crate::{Options, Pace, Report, Store, Verdict, claims, run};

use super::{Language, fill, picture, titles};

/// Two claims, played now.
async fn played() -> Report {
    let options = Options {
        claims: vec![1, 7],
        stores: vec![Store::Sqlite, Store::Memory],
        pace: Pace::Quick,
        seed: 5,
        ..Options::default()
    };
    run(&options, &|_| {}).await.expect("the stores need nothing")
}

const PAGE: &str = "before\n<!-- begin generated: seen C7 on memory -->\nfrom the run before\n\
                    <!-- end generated -->\nafter\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_filled_again_and_the_rest_stays() {
    let mut report = played().await;
    let page = fill(PAGE, &report, Language::English).expect("a known block");
    assert!(page.starts_with("before\n<!-- begin generated: seen C7 on memory -->\n"), "{page}");
    assert!(page.ends_with("\n<!-- end generated -->\nafter\n"), "{page}");
    assert!(page.contains("`distlock compare --claims C7 --stores memory`"), "{page}");
    assert!(!page.contains("from the run before"), "{page}");
    assert_eq!(fill(&page, &report, Language::English).expect("the same"), page);
    let cell = &mut report.rows[1].cells[1];
    assert!(page.contains(&cell.outcome.sentence), "{page}");
    cell.outcome.sentence = "a | b <c>".into();
    let page = fill(&page, &report, Language::Chinese).expect("the same");
    assert!(page.contains("a \\| b &lt;c&gt;"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_cell_ends_between_two_parts_and_links_to_its_evidence() {
    let mut report = played().await;
    let parts = [["one"; 12].join(" "), ["two"; 12].join(" "), ["three"; 12].join(" ")];
    report.rows[1].cells[1].outcome.sentence = parts.join("; ");
    for (language, more) in [(Language::English, "more"), (Language::Chinese, "更多")] {
        let page = fill(PAGE, &report, language).expect("a known block");
        let link = format!("two; [{more}](comparison/report.html#C7-memory) |");
        assert!(page.contains(&link) && !page.contains("three"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_block_is_refused_with_the_reason() {
    let report = played().await;
    let refused = |page: &str| fill(page, &report, Language::English).expect_err(page).to_string();
    let cases = [
        ("<!-- begin generated: run -->\n", "has no line"),
        ("<!-- begin generated: rum -->\n<!-- end generated -->\n", "unknown block \"rum\""),
        ("<!-- begin generated: where 7 -->\n<!-- end generated -->\n", "\"7\" is no claim"),
        ("<!-- begin generated: seen C7 -->\n<!-- end generated -->\n", "names no stores"),
        ("<!-- begin generated: seen C7 on x -->\n<!-- end generated -->\n", "unknown store \"x\""),
        ("<!-- begin generated: run\n<!-- end generated -->\n", "does not end in -->"),
    ];
    for (page, told) in cases {
        assert!(refused(page).contains(told), "{}", refused(page));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_picture_shows_each_cell_and_escapes_texts() {
    let mut report = played().await;
    report.rows[0].claim.title = "a < b & \"c\"".into();
    report.rows[0].cells[0].outcome.verdict = Verdict::Differs;
    let drawn = picture(&report, Language::English);
    assert!(drawn.contains("a &lt; b &amp; "), "{drawn}");
    assert!(drawn.contains("<title id=\"title\">"), "{drawn}");
    assert!(drawn.contains("differs from the documents 1"), "{drawn}");
    let signs = drawn.matches("class=\"sign ").count();
    let legend = Verdict::ALL.iter().filter(|one| one.is_answer() || report.count(**one) > 0);
    let ours = report.cells().filter(|(_, cell)| cell.outcome.distlock().is_some()).count();
    assert!(ours > 0, "distlock was played");
    assert_eq!(signs, report.cells().count() + ours + legend.count(), "{drawn}");
    assert!(picture(&report, Language::Chinese).contains("互斥"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_claim_and_each_need_has_chinese_words() {
    for claim in claims::all().iter().map(|experiment| experiment.claim()) {
        assert!(titles::claim(claim.number).is_some(), "{}", claim.title);
    }
    for advice in played().await.advice() {
        assert!(titles::need(advice.need).is_some(), "{}", advice.need);
    }
}
