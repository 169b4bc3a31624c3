//! The formats that the feature `serde` writes and reads.

use std::time::{Duration, SystemTime};

use lock_core::{
    Entry, FencingToken, Guarantees, Holder, Kind, Leader, LockName, LossReason, Requirement,
    Secret, StoreUrl,
};
use serde_json::{from_value, json, to_value};
use uuid::Uuid;

fn holder() -> Holder {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250);
    Holder::new(Some("the night shift".to_owned()), Some(FencingToken::new(7)))
        .queued(Some(at))
        .granted(Some(at + Duration::from_secs(3)))
}

#[test]
fn a_token_is_a_number_and_a_name_is_text_that_is_checked() {
    assert_eq!(to_value(FencingToken::new(7)).unwrap(), json!(7));
    assert_eq!(from_value::<FencingToken>(json!(7)).unwrap(), FencingToken::new(7));
    let name = LockName::new("orders/42").unwrap();
    assert_eq!(to_value(&name).unwrap(), json!("orders/42"));
    assert_eq!(from_value::<LockName>(json!("orders/42")).unwrap(), name);
    let refused = from_value::<LockName>(json!("")).unwrap_err().to_string();
    assert!(refused.contains("must not be empty"), "{refused}");
}

#[test]
fn entries_and_leaders_come_back_as_they_were() {
    let entry = Entry::new(Some(Uuid::from_u128(1)), holder())
        .with_kind(Kind::Permit { weight: 2, limit: 3 })
        .with_ttl_left(Duration::from_millis(1500))
        .holding();
    let written = to_value(&entry).unwrap();
    assert_eq!(written["kind"], json!({"permit": {"weight": 2, "limit": 3}}));
    assert_eq!(from_value::<Entry>(written).unwrap(), entry);
    let leader = Leader::new(FencingToken::new(7), b"10.0.0.7".to_vec(), holder());
    assert_eq!(from_value::<Leader>(to_value(&leader).unwrap()).unwrap(), leader);
}

#[test]
fn guarantees_are_written_and_configuration_is_read() {
    let written = to_value(Guarantees::least("a store")).unwrap();
    assert_eq!((&written["store"], &written["wake"]), (&json!("a store"), &json!("poll")));
    assert_eq!(written["kinds"], json!(["exclusive"]));
    assert_eq!(
        from_value::<Requirement>(json!("strict_fencing")).unwrap(),
        Requirement::StrictFencing
    );
    assert_eq!(to_value(LossReason::EntryGone).unwrap(), json!("entry_gone"));
    let url: StoreUrl = from_value(json!("redis://me:secret@10.0.0.1")).unwrap();
    assert_eq!(url.password(), Some("secret"));
    let refused = from_value::<StoreUrl>(json!("redis//me:secret@10.0.0.1")).unwrap_err();
    assert!(!refused.to_string().contains("secret"), "{refused}");
}

#[test]
fn a_password_is_text_or_its_place() {
    for text in ["p455", "file", "env"] {
        assert_eq!(from_value::<Secret>(json!(text)).unwrap(), Secret::text(text));
    }
    assert_eq!(from_value::<Secret>(json!({"file": "/p"})).unwrap(), Secret::file("/p"));
    assert_eq!(from_value::<Secret>(json!({"env": "P"})).unwrap(), Secret::env("P"));
    for wrong in [json!({"word": "p455"}), json!({"file": "/p455", "env": "P455"}), json!(455)] {
        let refused = from_value::<Secret>(wrong).unwrap_err().to_string();
        assert!(!refused.to_ascii_lowercase().contains("455"), "{refused}");
    }
}
