//! Tests the properties themselves: exactly one of them rejects each broken store, and none rejects
//! the whole one.

use std::collections::BTreeMap;

use lock_core::properties::{self, Checked, Late, Outcome};
use lock_memory::{Defect, MemoryHarness, MemoryStore};

/// The checks that were not kept, by property.
type Failures = BTreeMap<&'static str, Vec<(properties::Check, Checked)>>;

/// Returns the failures of a store.
async fn rejections(store: MemoryStore) -> Failures {
    let mut failures: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let harness = MemoryHarness::new(store);
    for property in properties::all() {
        for check in property.checks {
            match check.run(&harness).await {
                Ok(Outcome::Kept) => {}
                other => failures.entry(property.name).or_default().push((*check, other)),
            }
        }
    }
    failures
}

/// Returns whether the check failed, and was neither skipped nor excused as slow.
fn is_to_blame(checked: &Checked) -> bool {
    checked.as_ref().is_err_and(|failure| !failure.is::<Late>())
}

#[tokio::test(start_paused = true)]
async fn the_whole_store_keeps_every_property() {
    let failures = rejections(MemoryStore::new()).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn every_property_has_its_broken_store() {
    let properties: Vec<_> = properties::all().iter().map(|property| property.name).collect();
    let rejecting: Vec<_> = Defect::ALL.iter().map(|(_, property)| *property).collect();
    assert_eq!(properties, rejecting);
}

macro_rules! broken {
    ($($test:ident: $defect:ident,)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            let property = Defect::ALL.iter().find(|(defect, _)| *defect == Defect::$defect).unwrap().1;
            let failures = rejections(MemoryStore::broken(Defect::$defect)).await;
            assert_eq!(failures.keys().collect::<Vec<_>>(), [&property], "{failures:#?}");
            for (check, checked) in &failures[property] {
                assert!(is_to_blame(checked), "{check:?}: {checked:?}");
            }
        }
    )*};
}

broken! {
    a_store_that_grants_two_of_a_crowd: GrantsTwoOfACrowd,
    a_store_that_keeps_crashed_holders: KeepsCrashedHolders,
    a_store_that_releases_by_name: ReleasesByName,
    a_store_that_restarts_tokens: RestartsTokens,
    a_client_that_keeps_grants_of_the_departed: KeepsGrantsOfTheDeparted,
    a_client_that_tells_too_late: TellsTooLate,
    a_store_that_serves_the_last_first: ServesTheLastFirst,
    a_client_that_tries_for_a_while: TriesForAWhile,
    a_store_that_folds_case: FoldsCase,
    a_store_that_forgets_waiters_in_a_restart: ForgetsWaitersInARestart,
    a_client_that_stops_renewing: StopsRenewing,
    a_store_that_hides_the_holder: HidesTheHolder,
    a_store_that_lets_readers_pass: LetsReadersPass,
    a_store_that_upgrades_anew: UpgradesAnew,
    a_store_that_counts_holders_instead_of_permits: CountsHoldersInsteadOfPermits,
    a_store_that_revokes_in_silence: RevokesInSilence,
    a_store_that_enters_twice: EntersTwice,
    a_client_that_keeps_the_uncollected: KeepsTheUncollected,
    a_client_that_waits_in_silence: WaitsInSilence,
    a_store_that_keeps_parts_of_sets: KeepsPartsOfSets,
    a_store_that_proclaims_nothing: ProclaimsNothing,
    a_store_that_lets_readers_lead: LetsReadersLead,
    a_store_that_lets_a_ticket_be_used_twice: AdoptsTwice,
    a_store_that_marks_work_after_a_loss: MarksAfterALoss,
}
