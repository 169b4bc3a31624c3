//! Written histories can be read by this version, also with the additions of later versions.

use lock_history::{Fault, FormatError, Header, History, Kind, Misfit, Recorder};
use proptest::prelude::*;

use crate::story::story;

fn read(text: &str) -> Result<History, FormatError> {
    History::from_lines(text.lines())
}

fn written(history: &History) -> String {
    history.lines().collect::<Vec<_>>().join("\n")
}

proptest! {
    #[test]
    fn a_history_is_read_as_it_was_written(
        seed: u64,
        rounds in 0_usize..10,
        name in ".{1,20}",
        token: Option<u64>,
        at: u64,
        until: Option<u64>,
    ) {
        let mut history = story(seed, rounds).history();
        let recorder = Recorder::default();
        let log = recorder.client(name.as_str()).asked(at, name.as_str(), Kind::Shared);
        log.granted(at, token);
        log.valid(at, false);
        log.revoked(at);
        log.rejected(at, seed);
        log.ended(at, name.as_str());
        let target = name.clone();
        recorder.fault(Fault { fault: name.clone(), target, from: at, until });
        let mut header = Header::new(name.clone(), seed, "etcd");
        header.versions.insert("etcd".to_owned(), "3.4.23".to_owned());
        history.merge(recorder.history(header.clone()));
        history.header = header;
        prop_assert_eq!(read(&written(&history)).unwrap(), history);
    }

    #[test]
    fn other_text_is_refused_and_never_panics(text in "\\PC{0,80}") {
        let _ = read(&text);
        let header = written(&History::new(Header::new("run", 1, "store")));
        let _ = read(&format!("{header}\n{text}"));
    }
}

#[test]
fn a_line_is_as_documented() {
    let recorder = Recorder::default();
    let log = recorder.client("c").asked(1, "a", Kind::Permits { permits: 2, limit: 3 });
    log.granted(2, Some(7));
    let until = Some(9);
    let (fault, target) = ("cut".to_owned(), "n1>n2".to_owned());
    recorder.fault(Fault { fault, target, from: 4, until });
    let lines: Vec<_> = recorder.history(Header::new("run", 5, "etcd")).lines().collect();
    assert_eq!(
        lines,
        [
            r#"{"history":1,"run":"run","seed":5,"store":"etcd","versions":{}}"#,
            r#"{"fault":"cut","target":"n1>n2","from":4,"until":9}"#,
            r#"{"at":1,"client":"c","attempt":0,"event":"asked","name":"a","kind":"permits","permits":2,"limit":3}"#,
            r#"{"at":2,"client":"c","attempt":0,"event":"granted","token":7}"#,
        ]
    );
}

#[test]
fn fields_of_later_versions_are_ignored() {
    let history = read(
        r#"{"history":1,"run":"r","seed":1,"store":"s","versions":{},"machine":"m"}

        {"at":1,"client":"c","attempt":0,"event":"asked","name":"a","kind":"exclusive","why":"x"}
        {"at":2,"client":"c","attempt":0,"event":"granted","more":[1,{}]}
        {"fault":"cut","target":"n1","from":1,"depth":3}"#,
    )
    .unwrap();
    assert_eq!((history.events.len(), history.faults.len()), (2, 1));
    assert_eq!(history.faults[0].until, None);
}

#[test]
fn another_version_and_wrong_lines_are_refused_by_their_number() {
    assert!(matches!(read(""), Err(FormatError::Empty)));
    assert!(matches!(read(r#"{"history":2}"#), Err(FormatError::Version { found: 2 })));
    let header = r#"{"history":1,"run":"r","seed":1,"store":"s"}"#;
    let error = read(&format!("{header}\n\n{{\"at\":1}}")).unwrap_err();
    assert!(matches!(error, FormatError::Line { number: 3, .. }), "{error}");
}

#[test]
fn events_that_cannot_follow_each_other_are_refused() {
    let misfit = |play: fn(&lock_history::AttemptLog)| -> Misfit {
        let recorder = Recorder::default();
        play(&recorder.client("c").asked(5, "a", Kind::Exclusive));
        recorder.history(Header::new("run", 1, "store")).attempts().unwrap_err()
    };
    misfit(|log| log.granted(4, None));
    misfit(|log| log.valid(6, true));
    misfit(|log| [6, 7].into_iter().for_each(|at| log.granted(at, None)));
    misfit(|log| {
        log.granted(6, None);
        log.released(7);
    });
    let text = misfit(|log| {
        log.ended(6, "dropped");
        log.granted(7, Some(1));
    });
    assert_eq!(text.to_string(), "c #0 at 0.000000 s: Granted { token: Some(1) } cannot come here");
}
