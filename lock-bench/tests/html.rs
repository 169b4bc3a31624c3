//! The page of a real run, also in a real browser: Chromium, in headless mode. The page and its
//! screenshots stay in `target/report`.

use std::{env, fs, time::Duration};

use lock_bench::{Failure, Options, Preset, Ratio, Report, Role, Row, Section, html, run};
use lock_report::browser::{self, Browser};

/// A run on memory, played now.
pub async fn played() -> Result<Report, Failure> {
    let options = Options {
        stores: vec!["memory:".into()],
        presets: vec![Preset::HotName, Preset::Herd],
        seconds: Duration::from_millis(200),
        rounds: 3,
        sweep: Some(("names".into(), vec![1.0, 8.0])),
        command: "distlock bench --store memory:".into(),
        ..Options::default()
    };
    run(&options, &|_| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_every_contender_and_loads_nothing() -> Result<(), Failure> {
    let report = played().await?;
    let page = html(&report);
    for section in &report.sections {
        assert!(page.contains(&format!("id=\"{}\"", section.preset)), "no {}", section.preset);
        for row in &section.rows {
            assert!(page.contains(&row.contender), "no {}", row.contender);
        }
    }
    for told in ["hand-overs in a row", "time over names", "Read this before you believe"] {
        assert!(page.contains(told), "{told:?} is not in the page");
    }
    for one in ["http://", "https://", "src=", "@import", "url(http"] {
        assert!(!page.contains(one), "the page loads something: {one}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_escaped_wherever_they_stand() -> Result<(), Failure> {
    let evil = "<script>alert(1)</script>\"'&";
    let mut report = played().await?;
    report.command = evil.into();
    report.machine.processor = evil.into();
    (report.method, report.missing) = (vec![evil.into()], vec![evil.into()]);
    for section in &mut report.sections {
        section.models = evil.into();
        for row in &mut section.rows {
            (row.store, row.contender) = (evil.into(), evil.into());
        }
    }
    report.sweeps.iter_mut().for_each(|sweep| sweep.contender = evil.into());
    let page = html(&report);
    assert_eq!(page.matches("<script").count(), 1, "only the page's own");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_text_can_be_read_and_nothing_overflows() -> Result<(), Failure> {
    let Some(program) = browser::installed() else {
        let why = "no browser: apt-get install chromium";
        assert!(env::var_os("CI").is_none(), "not run: {why}; CI is set, so that is a failure");
        eprintln!("not run: {why}");
        return Ok(());
    };
    let folder = browser::folder()?;
    let file = folder.join("speed.html");
    fs::write(&file, html(&repeated(played().await?)))?;
    let mut shown = Browser::start(&program)?;
    for size in [(1600, 1000), (400, 800)] {
        for scheme in ["light", "dark"] {
            let what = |failure: Failure| format!("at {}, {scheme}: {failure}", size.0);
            shown.open(&file, "", size)?;
            shown.scheme(scheme)?;
            shown.screenshot(&folder.join(format!("speed-{}-{scheme}.png", size.0)))?;
            shown.overflows().map_err(what)?;
            // This unfolds what is folded.
            shown.contrast(200, 100).map_err(what)?;
            shown.overflows().map_err(what)?;
            assert_eq!(shown.complaints()?, Vec::<String>::new());
        }
    }
    Ok(())
}

/// The first row repeated for all stores and roles, with the presets of all answers: for the layout
/// only, it has no real results.
fn repeated(mut report: Report) -> Report {
    let stores = ["memory", "sqlite", "etcd", "redis", "zookeeper", "mysql", "postgres"];
    let roles = [Role::Distlock, Role::Unordered, Role::FloorLeast, Role::FloorKeys, Role::Usual];
    let fleet = Section { preset: "hot-fleet".into(), ..report.sections[0].clone() };
    report.sections.push(fleet);
    for section in &mut report.sections {
        let row = section.rows[0].clone();
        let of = |store: &str, role: Role| {
            let mut row = Row { store: store.into(), role, ..row.clone() };
            row.ratio = Ratio::of(&row.figures.rate).filter(|_| role != Role::Distlock);
            // One timeline is enough.
            row.second.retain(|_| store == "redis" && role == Role::Distlock);
            row
        };
        section.rows = stores.iter().flat_map(|store| roles.map(|role| of(store, role))).collect();
    }
    report
}
