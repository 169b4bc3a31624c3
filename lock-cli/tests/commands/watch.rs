//! `distlock watch` without a terminal: a line for each change.

use rustix::process::Signal;

use crate::place::Place;

#[test]
fn a_holder_and_a_waiter_come_and_go() {
    let place = Place::new();
    let mut watch = place.start(&["watch", "jobs/"]);
    let (line, store) = (watch.line(), place.store());
    let unused = "no client holds or waits for a lock whose name starts with jobs/";
    assert!(line.ends_with(&format!(" {unused} in {store}")), "{line}");
    let mut holder = place.start(&["run", "jobs/a", "--", "sh", "-c", "read line"]);
    let line = watch.line();
    assert!(line.contains(" jobs/a: held by ") && line.contains("runs sh; 0 waiting"), "{line}");
    // Other names are not shown.
    assert_eq!(place.run(&["run", "other", "true"]).0, Some(0));
    let waiter = place.start(&["run", "jobs/a", "true"]);
    let line = watch.line();
    assert!(line.contains(" jobs/a: held by ") && line.ends_with("; 1 waiting"), "{line}");
    waiter.signal(Signal::TERM);
    assert_eq!(waiter.end(), Some(143));
    let line = watch.line();
    assert!(line.contains(" jobs/a: held by ") && line.ends_with("; 0 waiting"), "{line}");
    holder.say("\n");
    let line = watch.line();
    assert!(line.ends_with(" jobs/a: free"), "{line}");
}

#[test]
fn programs_get_objects() {
    let place = Place::new();
    let mut holder =
        place.start(&["run", "x", "--", "sh", "-c", "echo $DISTLOCK_TOKEN; read line"]);
    let token = holder.line();
    let mut watch = place.start(&["watch", "--json"]);
    let mut change = || serde_json::from_str::<serde_json::Value>(&watch.line()).expect("JSON");
    let now = change();
    assert_eq!((&now["name"], &now["holders"][0]["token"].to_string()), (&"x".into(), &token));
    holder.say("\n");
    assert_eq!(change()["holders"].as_array().map(Vec::len), Some(0));
}
