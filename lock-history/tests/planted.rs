//! The checker finds each planted violation by its own rule only, and finds nothing in a clean
//! history.

use std::time::Duration;

use lock_history::{Checker, Class, Fault, Grade, Header, Kind, Loss, Recorder, Report, Rule};
use proptest::{prelude::*, test_runner::TestCaseResult};

use crate::story::{End, Grant, LIMIT, PAUSE, Story, story};

const MILLI: u64 = 1_000_000;
const PERMITS: Kind = Kind::Permits { permits: 1, limit: LIMIT };

fn check(story: &Story) -> Report {
    // A grant may add up to 3 ms to the pause.
    let gap = Duration::from_nanos(PAUSE + 10 * MILLI);
    Checker::new().gap(gap).check(&story.history()).unwrap()
}

/// Plants one violation. Demands that this rule finds it, and that no other rule finds anything.
fn found_by(
    seed: u64,
    rule: Rule,
    pairs: impl Fn(&Story) -> Vec<(usize, usize)>,
    plant: impl Fn(&mut Story, usize, usize),
) -> TestCaseResult {
    let mut story = story(seed, 30);
    let pairs = pairs(&story);
    prop_assume!(!pairs.is_empty());
    let (first, second) = pairs[seed as usize % pairs.len()];
    plant(&mut story, first, second);
    let report = check(&story);
    prop_assert!(report.count(rule) > 0, "not found: {report}");
    prop_assert_eq!(report.count(rule), report.violations.len(), "{}", report);
    let evidence = report.to_string();
    prop_assert!(
        evidence.contains(&format!("c{first} #0")) || evidence.contains(&format!("c{second} #0")),
        "{evidence}"
    );
    Ok(())
}

fn exclusive(story: &Story) -> Vec<(usize, usize)> {
    story.neighbours()
}

/// Makes a hold end later.
fn prolong(grant: &mut Grant, until: u64) {
    grant.valid = until;
    grant.end = End::Released(until, until + MILLI);
}

fn middle(grant: &Grant) -> u64 {
    (grant.granted + grant.valid) / 2
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_clean_history_passes(seed: u64, rounds in 0_usize..60) {
        let report = check(&story(seed, rounds));
        prop_assert!(report.is_clean() && report.classed.is_empty(), "{report}");
    }

    /// Compares the sweep with a check of each pair.
    #[test]
    fn an_overlap_is_found_where_two_holds_overlap(
        mut holds in prop::collection::vec((0..20_u64, 0..6_u64, 0..3_u8), 1..12),
    ) {
        let kinds = [Kind::Exclusive, Kind::Shared, Kind::Permits { permits: 3, limit: LIMIT }];
        // The pairs do not say how many permits are held by a hold of zero length.
        holds.iter_mut().filter(|hold| hold.2 == 2).for_each(|hold| hold.1 += 1);
        let recorder = Recorder::default();
        for (place, (from, length, kind)) in holds.iter().enumerate() {
            let log = recorder.client(format!("c{place}")).asked(*from, "a", kinds[*kind as usize]);
            log.granted(*from, None);
            log.valid(from + length, true);
        }
        let pairs = holds.iter().enumerate().flat_map(|(place, one)| {
            holds[place + 1..].iter().map(move |other| (one, other))
        });
        let overlap = pairs.into_iter().any(|(one, other)| {
            kinds[one.2 as usize].excludes(kinds[other.2 as usize])
                && one.0 < other.0 + other.1
                && other.0 < one.0 + one.1
        });
        let excess = (0..30).any(|at| {
            let held = |(from, length, kind): &&(u64, u64, u8)| {
                *kind == 2 && *from <= at && (at < from + length)
            };
            3 * holds.iter().filter(held).count() > LIMIT as usize
        });
        let history = recorder.history(Header::new("pairs", 1, "none"));
        let report = Checker::new().check(&history).unwrap();
        let overlaps = report.count(Rule::Exclusion) + report.count(Rule::Readers);
        prop_assert_eq!(overlaps > 0, overlap, "{}", report);
        prop_assert_eq!(report.count(Rule::Permits) > 0, excess, "{}", report);
    }

    #[test]
    fn two_swapped_tokens_are_out_of_order(seed: u64) {
        found_by(seed, Rule::TokenOrder, exclusive, |story, a, b| {
            let (first, second) = (story.grants[a].token, story.grants[b].token);
            (story.grants[a].token, story.grants[b].token) = (second, first);
        })?;
    }

    #[test]
    fn an_equal_token_is_out_of_order(seed: u64) {
        found_by(seed, Rule::TokenOrder, exclusive, |story, a, b| {
            story.grants[b].token = story.grants[a].token;
        })?;
    }

    #[test]
    fn a_hold_moved_into_another_overlaps(seed: u64) {
        found_by(seed, Rule::Exclusion, exclusive, |story, a, b| {
            let moved = middle(&story.grants[a]);
            let second = &mut story.grants[b];
            (second.asked, second.granted) = (second.asked.min(moved), moved);
        })?;
    }

    #[test]
    fn a_hold_that_lasts_over_the_next_grant_overlaps(seed: u64) {
        found_by(seed, Rule::Exclusion, exclusive, |story, a, b| {
            let until = middle(&story.grants[b]);
            prolong(&mut story.grants[a], until);
        })?;
    }

    #[test]
    fn a_loss_reported_after_the_next_grant_is_late(seed: u64) {
        found_by(seed, Rule::ToldBeforeTheNext, exclusive, |story, a, b| {
            story.grants[a].end = End::Lost(story.grants[b].granted + 1, Loss::Deadline);
        })?;
    }

    #[test]
    fn a_reader_beside_a_writer_is_found(seed: u64) {
        let pairs = |story: &Story| story.pairs(Kind::Shared, Kind::Exclusive);
        found_by(seed, Rule::Readers, pairs, |story, reader, writer| {
            let until = middle(&story.grants[writer]);
            prolong(&mut story.grants[reader], until);
        })?;
    }

    #[test]
    fn too_many_permits_are_found(seed: u64) {
        let pairs = |story: &Story| story.pairs(PERMITS, PERMITS);
        found_by(seed, Rule::Permits, pairs, |story, a, b| {
            let until = story.grants[b].valid;
            prolong(&mut story.grants[a], until);
        })?;
    }

    #[test]
    fn an_accepted_stale_write_is_found(seed: u64) {
        found_by(seed, Rule::Fence, exclusive, |story, a, b| {
            let late = (story.grants[b].valid, story.grants[a].token);
            story.grants[a].writes.push(late);
        })?;
    }

    #[test]
    fn a_rejected_stale_write_is_no_violation(seed: u64) {
        let mut story = story(seed, 30);
        for (a, b) in story.neighbours() {
            let late = (story.grants[b].valid, story.grants[a].token);
            story.grants[a].rejected.push(late);
        }
        let report = check(&story);
        prop_assert!(report.is_clean(), "{report}");
    }

    #[test]
    fn a_waiter_before_a_free_lock_is_found(seed: u64) {
        let mut story = story(seed, 30);
        let end = story.grants.iter().map(|grant| grant.valid).max().unwrap();
        // After the end of every hold.
        let asked = end + 20 * MILLI;
        story.in_vain.push(("a".to_owned(), asked, asked + PAUSE + 11 * MILLI));
        let report = check(&story);
        prop_assert_eq!(report.count(Rule::Gap), 1, "{}", report);
        prop_assert_eq!(report.violations.len(), 1, "{}", report);

        story.faults.push(Fault {
            fault: "kill".to_owned(),
            target: "server".to_owned(),
            from: asked + MILLI,
            until: Some(asked + 5 * MILLI),
        });
        let report = check(&story);
        prop_assert!(report.is_clean(), "a fault takes up a part of the time: {report}");
    }

    #[test]
    fn an_operators_revoke_is_a_class_of_its_own(seed: u64) {
        let mut story = story(seed, 30);
        for (a, b) in story.neighbours().into_iter().step_by(2) {
            let (granted, until) = (story.grants[b].granted, middle(&story.grants[b]));
            let first = &mut story.grants[a];
            first.revoked = Some(granted - 1);
            (first.valid, first.end) = (until, End::Lost(until, Loss::Store));
        }
        let report = check(&story);
        prop_assert!(report.is_clean(), "{report}");
        prop_assert!(report.classed.iter().all(|one| one.class == Class::Revoked), "{report}");
        prop_assert!(report.classed.iter().all(|one| one.event.by() > Some(Duration::ZERO)));
    }
}

/// An exclusive hold from 10 to `until` ms that ends with this loss, and another one from 50 ms on.
fn two(until: u64, told: u64, loss: Loss) -> Story {
    let grant = |asked: u64, granted: u64, valid: u64, end, token| Grant {
        name: "a".to_owned(),
        kind: Kind::Exclusive,
        asked: asked * MILLI,
        granted: granted * MILLI,
        valid: valid * MILLI,
        end,
        token,
        writes: Vec::new(),
        rejected: Vec::new(),
        round: 0,
        revoked: None,
    };
    let first = grant(5, 10, until, End::Lost(told * MILLI, loss), 1);
    let second = grant(20, 50, 500, End::Released(500 * MILLI, 501 * MILLI), 2);
    Story { grants: vec![first, second], ..Story::default() }
}

#[test]
fn a_store_may_report_a_loss_shortly_after_the_next_grant() {
    let (soon, late) = (two(40, 149, Loss::Store), two(40, 151, Loss::Store));
    let report = check(&soon);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.classed[0].class, Class::StoresWord);
    assert_eq!(report.classed[0].event.by(), Some(Duration::from_millis(99)));
    assert_eq!(check(&late).count(Rule::ToldBeforeTheNext), 1);
}

#[test]
fn a_lock_that_the_store_ends_early_overlaps_unless_the_store_documents_it() {
    let story = two(60, 60, Loss::Store);
    assert_eq!(check(&story).count(Rule::Exclusion), 1);
    let checker = Checker::new().ended_early(Duration::from_millis(10));
    let report = checker.check(&story.history()).unwrap();
    assert!(report.is_clean(), "{report}");
    let passed = two(60, 60, Loss::Deadline);
    assert_eq!(checker.check(&passed.history()).unwrap().count(Rule::Exclusion), 1);
}

#[test]
fn a_late_report_after_a_standstill_is_a_class() {
    let mut story = two(40, 300, Loss::Deadline);
    assert_eq!(check(&story).count(Rule::ToldBeforeTheNext), 1);
    let mut stood = Fault {
        fault: Fault::STANDSTILL.to_owned(),
        target: "c1".to_owned(),
        from: 45 * MILLI,
        until: Some(299 * MILLI),
    };
    story.faults.push(stood.clone());
    assert_eq!(check(&story).violations.len(), 1, "the other client stood still");
    stood.target = "c0".to_owned();
    story.faults.push(stood);
    let report = check(&story);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.classed[0].class, Class::Standstill);
}

#[test]
fn tokens_of_best_effort_are_a_class() {
    let mut story = two(40, 45, Loss::Deadline);
    story.grants[1].token = 1;
    let check = |grade| Checker::new().tokens(grade).check(&story.history()).unwrap();
    assert_eq!(check(Grade::Strict).count(Rule::TokenOrder), 1);
    let report = check(Grade::BestEffort);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.classed[0].class, Class::BestEffort);
    assert!(check(Grade::None).classed.is_empty());
}

#[test]
fn evidence_names_both_holds_with_their_times_and_tokens() {
    let mut story = two(60, 70, Loss::Deadline);
    story.grants[0].end = End::Released(60 * MILLI, 61 * MILLI);
    let report = check(&story);
    assert_eq!(
        report.violations[0].to_string(),
        "exclusion of \"a\": both hold it for 10ms\n  \
         c0 #0 (exclusive) asked 0.005000 s, granted 0.010000 s with token 1, last valid 0.060000 \
         s, releasing 0.060000 s, released 0.061000 s\n  \
         c1 #0 (exclusive) asked 0.020000 s, granted 0.050000 s with token 2, last valid 0.500000 \
         s, releasing 0.500000 s, released 0.501000 s"
    );
}
