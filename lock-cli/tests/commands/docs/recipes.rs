//! The recipes of `docs/cli.md` and `docs/scripts.md`, as they stand. Only the store and the
//! folders are others.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{
    block,
    scene::{bash, printed, program},
};
use crate::{commands::terminal::Terminal, place::Place};

const UPLOAD: &str = "#!/bin/sh\necho \"$DISTLOCK_NAME\"\n";

#[cfg(feature = "redis")]
#[test]
fn a_pipeline_takes_a_permit() {
    crate::stores::on("redis", |place| {
        let lines = block("docs/cli.md", "--permits 3").replace("redis://10.0.0.1", place.store());
        program(place, "upload.sh", UPLOAD);
        assert_eq!(printed(bash(place, &lines)), "uploads\n");
    });
}

#[test]
fn what_consul_does_is_done() {
    let place = Place::new();
    program(&place, "upload.sh", UPLOAD);
    let lines = block("docs/other-libraries.md", "distlock run uploads");
    assert_eq!(printed(bash(&place, &lines)), "uploads\n");
}

#[cfg(feature = "etcd")]
mod hosts {
    use rustix::process::Signal;

    use super::super::{
        block,
        scene::{PROGRAM, program},
    };
    use crate::place::{Place, Process, said};

    /// The folder of the place takes the place of `/usr/local`.
    fn installed(place: &Place, line: &str) -> String {
        let folder = place.path().join("bin");
        if !folder.join("distlock").exists() {
            std::os::unix::fs::symlink(PROGRAM, folder.join("distlock")).expect("a link");
        }
        line.replace("/usr/local/bin/", &format!("{}/", folder.display()))
    }

    #[test]
    fn one_host_runs_the_job_of_the_crontab() {
        crate::stores::on("etcd", |place| {
            let lines = block("docs/cli.md", "--at-least 1m");
            let (store, job) = lines.split_once('\n').expect("two lines");
            assert!(store.starts_with("DISTLOCK_STORE=etcd://"), "{store}");
            program(place, "bin/backup.sh", "#!/bin/sh\necho done\n");
            let job = job.strip_prefix("0 3 * * *  ").expect("its time");
            let job = format!("exec {}", installed(place, job));
            let cron = || place.other("sh", &["-c", &job]);
            let mut first = Process::of(cron());
            assert_eq!(first.line(), "done");
            assert_eq!(cron().output().expect("a shell").status.code(), Some(75));
            // It would hold the lock for the rest of the minute.
            first.signal(Signal::TERM);
            first.end();
            assert!(!place.is_busy("nightly"), "it was left to its TTL");
        });
    }

    #[test]
    fn one_host_does_the_job_once_per_period() {
        crate::stores::on("etcd", |place| {
            let lines = block("docs/cli.md", "--once-per 20h");
            program(place, "bin/backup.sh", "#!/bin/sh\necho works\n");
            let (_, job) = lines.split_once("\n0 3 * * *  ").expect("its time");
            let job = format!("exec {}", installed(place, job));
            let cron = || said(&place.other("sh", &["-c", &job]).output().expect("a shell"));
            let (code, out, error) = cron();
            assert_eq!((code, out.as_str()), (Some(0), "works\n"), "{error}");
            let (code, out, error) = cron();
            assert_eq!((code, out.as_str()), (Some(0), ""), "{error}");
            assert!(error.contains("done on "), "{error}");
            assert_eq!(place.run(&["revoke", "nightly", "--done", "--yes"]).0, Some(0));
            assert_eq!(cron().1, "works\n");
        });
    }

    #[test]
    fn the_unit_runs_its_service_while_it_leads() {
        crate::stores::on("etcd", |place| {
            let unit = block("docs/cli.md", "ExecStart=");
            let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key));
            let store = value("Environment=DISTLOCK_STORE=").expect("the store");
            assert!(store.starts_with("etcd://"), "{store}");
            program(place, "bin/scheduler", "#!/bin/sh\necho leads\nexec sleep 1000\n");
            let start = installed(place, value("ExecStart=").expect("a command"));
            let start = start.replace("%H", "web-1");
            let words: Vec<_> = start.split(' ').collect();
            let mut service = Process::of(place.other(words[0], &words[1..]));
            assert_eq!(service.line(), "leads");
            assert_eq!(place.run(&["leader", "scheduler"]).1, "web-1\n");
            // To the first process alone.
            assert_eq!(value("KillMode="), Some("mixed"));
            service.signal(Signal::TERM);
            assert_eq!(service.end(), Some(143));
        });
    }
}

#[test]
fn an_operator_holds_a_lock_until_a_key() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    terminal.press(&format!("{}\n", block("docs/cli.md", "distlock hold deploy")));
    terminal.until("holding deploy with token ");
    assert!(place.is_busy("deploy"));
    terminal.press("\x03");
    terminal.press("echo code=$?=\n");
    terminal.until("code=0=");
    assert!(!place.is_busy("deploy"));
}

#[test]
fn completions_and_man_pages_are_set_up() {
    let place = Place::new();
    let lines = block("docs/cli.md", "distlock completions bash");
    let shown = printed(bash(&place, &format!("{lines}\ncomplete -p distlock")));
    assert!(shown.contains(" distlock"), "{shown}");
    assert!(place.path().join(".local/share/man/man1/distlock.1").exists());
}

#[test]
fn a_script_has_a_lock_beside_it() {
    let place = Place::new();
    for step in ["collect", "publish"] {
        program(&place, step, "#!/bin/sh\necho \"$*\"\n");
    }
    let shown = printed(bash(&place, &block("docs/scripts.md", "coproc distlock hold report")));
    let (collected, published) = shown.trim_end().split_once('\n').expect("two lines");
    assert_eq!(collected, published);
    let token = collected.strip_prefix("--fence ").expect("a token");
    assert!(token.parse::<u64>().is_ok_and(|token| token > 0), "{token}");
    assert_eq!(place.run(&["run", "report", "--wait", "1m", "true"]).0, Some(0));
}

#[test]
fn a_step_begins_while_the_lock_is_certain() {
    let place = Place::new();
    program(&place, "in-time.sh", &block("docs/scripts.md", "DISTLOCK_DEADLINE_MS"));
    program(&place, "migrate", "#!/bin/sh\necho \"$*\"\n");
    let lines = block("docs/scripts.md", "./in-time.sh ./migrate");
    assert_eq!(printed(bash(&place, &lines)), "--step 7\n");
}

/// `docs/stores/sqlite.md`.
#[test]
fn a_group_has_a_file() {
    let place = Place::new();
    let folder = place.path().join("locks").display().to_string();
    let group = rustix::process::getgid().as_raw();
    let lines = block("docs/stores/sqlite.md", "install -d").replace("/var/lib/shop", &folder);
    printed(bash(&place, &lines.replace("-g shop", &format!("-g {group}"))));
    let mut holder = place.start(&["hold", "x", "--store", &format!("sqlite:{folder}/locks.db")]);
    assert!(holder.line().starts_with("holding x "));
    let mode = |name: &str| {
        let file = fs::metadata(format!("{folder}/{name}")).expect(name);
        file.permissions().mode() & 0o7777
    };
    assert_eq!([mode(""), mode("locks.db"), mode("locks.db-wal")], [0o2770, 0o660, 0o660]);
}
