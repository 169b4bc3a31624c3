//! The page of real runs on the stores that need no server.

use crate::{Options, Pace, Report, Store, Verdict, run};

use super::html;

/// Two claims, played now.
async fn played() -> Report {
    let options = Options {
        claims: vec![1, 7],
        stores: vec![Store::Sqlite, Store::Memory],
        pace: Pace::Quick,
        seed: 3,
        ..Options::default()
    };
    run(&options, &|_| {}).await.expect("the stores need nothing")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_each_cell_with_its_evidence() {
    let report = played().await;
    let page = html(&report);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    for (claim, cell) in report.cells() {
        let id = format!("C{}-{}", claim.number, cell.store.scheme());
        assert!(page.contains(&format!("href=\"#{id}\"")), "no link to {id}");
        assert!(page.contains(&format!("id=\"{id}\"")), "no evidence of {id}");
        assert!(page.contains(&cell.command), "no command for {id}");
    }
    for one in ["http://", "https://", "src=", "@import", "url(http"] {
        assert!(!page.contains(one), "the page loads something: {one}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_escaped_wherever_they_stand() {
    let mut report = played().await;
    let evil = "<script>alert(1)</script>\"'&";
    report.command = evil.into();
    report.missing = vec![evil.into()];
    report.machine.processor = evil.into();
    for row in &mut report.rows {
        let claim = &mut row.claim;
        (claim.title, claim.claimed, claim.done) = (evil.into(), evil.into(), evil.into());
        for outcome in row.cells.iter_mut().map(|cell| &mut cell.outcome) {
            (outcome.verdict, outcome.sentence) = (Verdict::Differs, evil.into());
            for side in &mut outcome.sides {
                (side.lock, side.happened) = (evil.into(), evil.into());
                side.evidence = vec![evil.into()];
                side.violations = vec![evil.into()];
                side.trace = Some(evil.into());
                for lane in side.timeline.iter_mut().flat_map(|timeline| &mut timeline.lanes) {
                    lane.client = evil.into();
                    lane.marks.iter_mut().for_each(|mark| mark.what = evil.into());
                }
            }
            outcome.figures.iter_mut().for_each(|figure| figure.name = evil.into());
            outcome.plots.iter_mut().for_each(|plot| plot.title = evil.into());
        }
    }
    let page = html(&report);
    assert_eq!(page.matches("<script").count(), 1, "only the page's own");
    assert!(!page.contains("alert(1)</script>"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_report_is_drawn_with_less_detail() {
    let mut report = played().await;
    let rows = report.rows.clone();
    report.stores = Store::ALL.to_vec();
    report.rows = (1..=44).map(|number| crowded(&rows, number)).collect();
    let page = html(&report);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("id=\"C44-memory\""));
}

/// A row with a cell for every store, each copied from an embedded store's cell.
fn crowded(rows: &[crate::Row], number: u8) -> crate::Row {
    let mut row = rows[usize::from(number) % rows.len()].clone();
    row.claim.number = number;
    let cells = row.cells.iter().cycle().zip(Store::ALL);
    row.cells = cells.map(|(cell, store)| crate::Cell { store, ..cell.clone() }).collect();
    row
}

#[tokio::test(flavor = "multi_thread")]
async fn advice_comes_from_the_cells_alone() {
    let mut report = played().await;
    let needs = report.advice();
    let exclusion = needs.iter().find(|advice| advice.claims[0] == 1).expect("C1 decides one");
    assert_eq!(exclusion.take.len(), 2, "{exclusion:?}");
    assert!(exclusion.take.iter().all(|choice| choice.claim == 1 && choice.speed.is_none()));
    let leader = needs.iter().find(|advice| advice.claims[0] == 21).expect("C21 decides one");
    assert_eq!((leader.take.len(), leader.leave.len()), (0, 0), "C21 was not played");
    assert_eq!(leader.unknown, report.stores);
    let node = needs.iter().find(|advice| advice.claims[0] == 26).expect("C26 decides one");
    assert!(node.unknown.is_empty(), "a store within the process has no node to lose");
    let woken = needs.iter().find(|advice| advice.claims[0] == 12).expect("C12 decides one");
    assert_eq!(woken.unknown, report.stores, "C12 was not played");

    let outcome = &mut report.rows[0].cells[0].outcome;
    outcome.verdict = Verdict::Differs;
    outcome.sides.iter_mut().for_each(|side| side.well = false);
    let needs = report.advice();
    let exclusion = needs.iter().find(|advice| advice.claims[0] == 1).expect("C1 decides one");
    assert_eq!(exclusion.take.len(), 1, "{exclusion:?}");
    assert_eq!(exclusion.leave[0].store, report.rows[0].cells[0].store);

    report.rows[0].claim.number = 12;
    let needs = report.advice();
    let woken = needs.iter().find(|advice| advice.claims[0] == 12).expect("C12 decides one");
    assert!(woken.leave.iter().any(|choice| choice.reason.contains("poll")), "{woken:?}");
}
