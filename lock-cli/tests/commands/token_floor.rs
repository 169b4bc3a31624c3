//! `distlock token-floor`: across two stores, and what it refuses.

use std::process::Stdio;

use crate::{
    place::{Place, said},
    stores::on_every_store,
};

on_every_store!(
    a_store_goes_on_above_another,
    a_raise_ends_attempts_below_the_floor,
    a_store_is_not_raised_above_itself,
);

fn floor(place: &Place, arguments: &[&str]) -> (u64, u64) {
    let (code, shown, error) = place.run(&[&["token-floor", "--json"], arguments].concat());
    assert_eq!(code, Some(0), "{error}");
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    (shown["above"].as_u64().unwrap(), shown["newest"].as_u64().unwrap())
}

fn token(place: &Place) -> u64 {
    let (code, token, error) = place.run(&["run", "x", "--", "sh", "-c", "echo $DISTLOCK_TOKEN"]);
    assert_eq!(code, Some(0), "{error}");
    token.trim().parse().unwrap()
}

fn a_store_goes_on_above_another(place: &Place) {
    let (old, last) = (Place::new(), 3_000_000_000_000_000);
    assert_eq!(floor(&old, &["--above", &last.to_string()]).0, last);
    let used = token(&old);
    assert!(used > last);
    let url = format!("sqlite:{}", old.path().join("db").display());
    let (above, _) = floor(place, &["--above", &url]);
    assert!(above >= used);
    assert!(token(place) > used);
    // A floor does not fall.
    assert_eq!(floor(place, &["--above", "1"]).0, above);
    let (_, promises, _) = place
        .other(env!("CARGO_BIN_EXE_distlock"), &["stores", "--json", "--store", &url])
        .output()
        .map(|output| said(&output))
        .unwrap();
    let promises: serde_json::Value = serde_json::from_str(&promises).expect("JSON");
    assert_eq!(promises["token_floor"]["above"], last);
}

fn a_raise_ends_attempts_below_the_floor(place: &Place) {
    let holder = place.hold("x");
    let waiter = place.command(&["run", "x", "true"]).stderr(Stdio::piped()).spawn().unwrap();
    place.await_waiters("x", 1);
    let above = 4_000_000_000_000_000;
    assert_eq!(floor(place, &["--above", &above.to_string()]).0, above);
    assert_eq!(holder.end(), Some(79));
    // On Redis, the waiter's token comes with the grant.
    let (code, _, error) = said(&waiter.wait_with_output().unwrap());
    assert!(matches!(code, Some(0 | 79)), "{code:?}: {error}");
    assert!(token(place) > above);
}

fn is_refused(place: &Place, above: &str, word: &str) {
    let before = floor(place, &[]).0;
    let (code, out, error) = place.run(&["token-floor", "--above", above]);
    assert!(code == Some(64) && error.contains(word), "{above}: {code:?}: {out}{error}");
    assert_eq!(floor(place, &[]).0, before);
}

/// A raise would end all locks there.
fn a_store_is_not_raised_above_itself(place: &Place) {
    let mut holder = place.hold("x");
    is_refused(place, place.store(), "the store whose floor is to be raised");
    // The same store by another URL.
    let host = place.store().replacen("127.0.0.1", "localhost", 1);
    let more = if host.contains('?') { '&' } else { '?' };
    is_refused(place, &format!("{host}{more}ttl=7s"), "the store whose floor is to be raised");
    holder.say("\n");
    assert_eq!(holder.end(), Some(0));
    // The lock of the comparison is gone.
    let (code, names, error) = place.run(&["ls"]);
    assert!(code == Some(0) && !names.contains("token-floor"), "{code:?}: {names}{error}");
}

#[test]
fn an_invalid_floor_is_refused() {
    let place = Place::new();
    for (above, word) in [
        ("9223372036854775807", "4611686018427387904"),
        ("much", "a number"),
        ("memory:", "inside this process"),
        ("memory:x?ttl=9s", "inside this process"),
        ("", "no row has a token yet"),
        (" \n", "no row has a token yet"),
    ] {
        is_refused(&place, above, word);
    }
}

#[test]
fn a_store_without_tokens_is_refused() {
    let (place, fresh) = (Place::new(), Place::new());
    assert_eq!(floor(&fresh, &[]), (0, 0));
    is_refused(&place, fresh.store(), "no token");
    let typo = place.path().join("typo.db");
    is_refused(&place, &format!("sqlite:{}", typo.display()), "there is no file");
    assert!(!typo.exists());
}

/// `psql --tuples-only` prints such a number.
#[test]
fn a_number_may_have_blanks_around_it() {
    assert_eq!(floor(&Place::new(), &["--above", "  42\n"]).0, 42);
}

#[test]
fn the_result_of_a_raise_is_printed() {
    let place = Place::new();
    for (above, said) in [
        ("42", "raised from 0 to 42\ntokens are above 42"),
        ("50", "raised from 42 to 50\ntokens are above 50"),
        ("50", "not raised to 50: it was 50 already\ntokens are above 50"),
        ("7", "not raised to 7: it was 50 already\ntokens are above 50"),
    ] {
        let (code, out, error) = place.run(&["token-floor", "--above", above]);
        assert!(code == Some(0) && out.starts_with(said), "{code:?}: {out}{error}");
    }
    let (_, shown, _) = place.run(&["token-floor", "--above", "60", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((&shown["before"], &shown["above"]), (&50.into(), &60.into()));
}
