//! `distlock token-floor`: across two stores, and what it refuses.

use std::process::Stdio;

use crate::{
    place::{Place, said},
    stores::on_every_store,
};

on_every_store!(a_store_goes_on_above_another, a_raise_ends_who_is_below_it);

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
    // Only upwards.
    assert_eq!(floor(place, &["--above", "1"]).0, above);
    let (_, promises, _) = place
        .other(env!("CARGO_BIN_EXE_distlock"), &["stores", "--json", "--store", &url])
        .output()
        .map(|output| said(&output))
        .unwrap();
    let promises: serde_json::Value = serde_json::from_str(&promises).expect("JSON");
    assert_eq!(promises["token_floor"]["above"], last);
}

fn a_raise_ends_who_is_below_it(place: &Place) {
    let mut holder = place.start(&["run", "x", "--", "sh", "-c", "echo; read line"]);
    holder.line();
    let waiter = place.command(&["run", "x", "true"]).stderr(Stdio::piped()).spawn().unwrap();
    place.await_waiters("x", 1);
    let above = 4_000_000_000_000_000;
    assert_eq!(floor(place, &["--above", &above.to_string()]).0, above);
    assert_eq!(holder.end(), Some(79));
    // On Redis its token comes with the grant.
    let (code, _, error) = said(&waiter.wait_with_output().unwrap());
    assert!(matches!(code, Some(0 | 79)), "{code:?}: {error}");
    assert!(token(place) > above);
}

#[test]
fn what_is_no_floor_is_refused() {
    let place = Place::new();
    for (above, word) in [("9223372036854775807", "4611686018427387904"), ("much", "a number")] {
        let (code, _, error) = place.run(&["token-floor", "--above", above]);
        assert!(code == Some(64) && error.contains(word), "{code:?}: {error}");
    }
    assert_eq!(floor(&place, &[]).0, 0);
}
