//! The report in a real browser: Debian's chromium, in headless mode. Screenshots of the first
//! screen are written to `target/report`.

mod layout;

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use libtest_mimic::Trial;
use lock_compare::{Options, Pace, Report, Store, html, run};
use lock_report::browser::{self, Browser, Failure};
use serde_json::{Value, json};

const WIDE: (u32, u32) = (1600, 1000);
const PHONE: (u32, u32) = (400, 800);
const CELL: &str = ".matrix a[href='#C7-memory']";

/// The pages, with the browser that shows them.
struct Desk {
    browser: Browser,
    /// Two claims on two stores, played just now.
    real: PathBuf,
    /// The same cells repeated to the size of the whole comparison, for the layout only.
    full: PathBuf,
    /// The played cells with every kind of drawing.
    drawn: PathBuf,
}

type Test = fn(&mut Desk) -> Result<(), Failure>;

const TESTS: [(&str, Test); 8] = [
    ("a_cell_opens_by_click_and_by_key", a_cell_opens_by_click_and_by_key),
    ("a_reader_that_moves_on_is_not_interrupted", a_reader_that_moves_on_is_not_interrupted),
    ("an_address_opens_its_cell", an_address_opens_its_cell),
    ("everything_is_there_without_the_script", everything_is_there_without_the_script),
    ("everything_is_printed", everything_is_printed),
    ("nothing_overflows", nothing_overflows),
    ("all_verdicts_stand_on_the_first_screen", all_verdicts_stand_on_the_first_screen),
    ("every_text_has_contrast", every_text_has_contrast),
];

static DESK: Mutex<Option<Desk>> = Mutex::new(None);

fn desk() -> MutexGuard<'static, Option<Desk>> {
    DESK.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn trials() -> impl Iterator<Item = Trial> {
    TESTS.into_iter().map(|(name, test)| trial(name, test))
}

/// Ends the browser.
pub fn close() {
    drop(desk().take());
}

fn trial(name: &str, test: Test) -> Trial {
    let name = format!("report::{name}");
    let Some(program) = browser::installed() else {
        let why = "no browser: apt-get install chromium";
        if env::var_os("CI").is_some() {
            let why = format!("not run: {why}; CI is set, so that is a failure");
            return Trial::test(name, move || Err(why.into()));
        }
        eprintln!("not run: {name}: {why}");
        return Trial::test(name, move || Err(why.into())).with_ignored_flag(true);
    };
    Trial::test(name, move || {
        let mut desk = desk();
        if desk.is_none() {
            *desk = Some(Desk::new(&program).map_err(|failure| failure.to_string())?);
        }
        let desk = desk.as_mut().ok_or("no desk")?;
        test(desk).map_err(|failure| failure.to_string())?;
        let complaints = desk.browser.complaints().map_err(|failure| failure.to_string())?;
        complaints.is_empty().then_some(()).ok_or_else(|| complaints.join("\n").into())
    })
}

impl Desk {
    fn new(program: &Path) -> Result<Self, Failure> {
        let folder = browser::folder()?;
        let report = played()?;
        let [real, full, drawn] =
            ["real.html", "layout.html", "drawings.html"].map(|name| folder.join(name));
        fs::write(&real, html(&report))?;
        fs::write(&full, html(&layout::repeated(&report)))?;
        fs::write(&drawn, html(&layout::with_all_drawings(report)))?;
        Ok(Self { browser: Browser::start(program)?, real, full, drawn })
    }

    fn overflows(&mut self, what: &str) -> Result<(), Failure> {
        self.browser.overflows().map_err(|failure| format!("{what}: {failure}").into())
    }

    fn expect(&mut self, expression: &str, value: Value) -> Result<(), Failure> {
        let found = self.browser.value(expression)?;
        (found == value).then_some(()).ok_or_else(|| format!("{expression}: {found}").into())
    }
}

fn played() -> Result<Report, Failure> {
    let options = Options {
        claims: vec![1, 7],
        stores: vec![Store::Sqlite, Store::Memory],
        pace: Pace::Quick,
        seed: 11,
        ..Options::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(&options, &|_| {}))
}

const IS_OPEN: &str = "document.getElementById('panel').open";

fn a_cell_opens_by_click_and_by_key(desk: &mut Desk) -> Result<(), Failure> {
    desk.browser.open(&desk.real, "", WIDE)?;
    desk.expect(IS_OPEN, json!(false))?;
    desk.browser.click(CELL)?;
    desk.expect(IS_OPEN, json!(true))?;
    let shown = desk.browser.value("document.querySelector('#panel .body').innerText")?;
    let shown = shown.as_str().unwrap_or_default();
    let told = ["Claimed", "Threshold", "the only item is sold", "--claims C7 --stores memory"];
    for told in told {
        assert!(shown.contains(told), "{told:?} is not in {shown}");
    }
    let drawings = "document.querySelectorAll('#panel .plot svg[role=img]').length";
    desk.expect(drawings, json!(3))?;
    let focused = format!("document.activeElement === document.querySelector({CELL:?})");
    for key in ["Enter", " "] {
        desk.browser.press("Escape")?;
        desk.expect(IS_OPEN, json!(false))?;
        desk.expect(&focused, json!(true))?;
        desk.browser.press(key)?;
        desk.expect(IS_OPEN, json!(true))?;
    }
    desk.browser.click("#panel .close")?;
    desk.expect(IS_OPEN, json!(false))?;
    // The focus returns to the cell a moment after the panel is closed.
    desk.expect(&focused, json!(true))?;
    desk.browser.value("document.querySelector('.matrix td a').focus()")?;
    let at = "document.activeElement.getAttribute('href')";
    desk.expect(at, json!("#C1-sqlite"))?;
    desk.browser.press("ArrowRight")?;
    desk.expect(at, json!("#C1-memory"))?;
    desk.browser.press("ArrowDown")?;
    desk.expect(at, json!("#C7-memory"))?;
    let reached = "document.querySelectorAll(\".matrix td a[tabindex='0']\").length";
    desk.expect(reached, json!(1))
}

/// The event of a closed panel comes after the reader's next step.
fn a_reader_that_moves_on_is_not_interrupted(desk: &mut Desk) -> Result<(), Failure> {
    desk.browser.open(&desk.real, "", WIDE)?;
    let closed_and_then = |step: &str| {
        format!(
            "(async () => {{ const panel = document.getElementById('panel');
              const [one, other] = document.querySelectorAll('.matrix td a');
              one.click();
              const closed = new Promise((go) => panel.addEventListener('close', go, {{ once: true }}));
              panel.close();
              {step}
              await closed;
              return [document.activeElement === other,
                panel.open && document.querySelector('#panel .body').childElementCount > 0]; }})()"
        )
    };
    desk.expect(&closed_and_then("other.focus();"), json!([true, false]))?;
    desk.expect(&closed_and_then("other.click();"), json!([false, true]))
}

fn an_address_opens_its_cell(desk: &mut Desk) -> Result<(), Failure> {
    desk.browser.open(&desk.real, "#C7-sqlite", WIDE)?;
    desk.expect(IS_OPEN, json!(true))?;
    desk.browser.screenshot(&browser::folder()?.join("cell-1600-light.png"))?;
    desk.expect("document.getElementById('panel-title').innerText.includes('SQLite')", json!(true))
}

fn everything_is_there_without_the_script(desk: &mut Desk) -> Result<(), Failure> {
    desk.browser.open(&desk.real, "", WIDE)?;
    desk.browser.scripts(false)?;
    desk.browser.reload()?;
    desk.browser.click(CELL)?;
    desk.expect(IS_OPEN, json!(false))?;
    desk.expect("location.hash", json!("#C7-memory"))?;
    let seen = "(() => { const box = document.getElementById('C7-memory').getBoundingClientRect();
        return box.height > 100 && box.top < innerHeight; })()";
    desk.expect(seen, json!(true))?;
    desk.browser.scripts(true)
}

fn everything_is_printed(desk: &mut Desk) -> Result<(), Failure> {
    desk.browser.open(&desk.real, "", WIDE)?;
    // Without the evidence it has one or two pages.
    let pages = |pdf: &[u8]| pdf.windows(11).filter(|part| part == b"/Type /Page").count();
    let printed = desk.browser.print()?;
    fs::write(browser::folder()?.join("real.pdf"), &printed)?;
    let folded = desk.browser.value("document.querySelectorAll('details:not([open])').length")?;
    assert_ne!(folded, json!(0), "what was folded is folded again after printing");
    desk.browser.value("document.querySelector('#evidence').remove()")?;
    let less = desk.browser.print()?;
    let (all, less) = (pages(&printed), pages(&less));
    assert!(all > less + 2, "{all} pages with the evidence, {less} without");
    Ok(())
}

fn nothing_overflows(desk: &mut Desk) -> Result<(), Failure> {
    for page in [desk.drawn.clone(), desk.full.clone()] {
        desk.browser.open(&page, "", WIDE)?;
        for width in [320, 400, 760, 1024, 1400, 1600] {
            desk.browser.resize((width, 900))?;
            desk.overflows(&format!("{} at {width}", page.display()))?;
        }
        let unfold = "document.querySelectorAll('details').forEach((one) => { one.open = true; })";
        desk.browser.value(unfold)?;
        for width in [400, 1600] {
            desk.browser.resize((width, 900))?;
            desk.overflows(&format!("{} unfolded at {width}", page.display()))?;
            desk.browser.click(CELL)?;
            desk.expect(IS_OPEN, json!(true))?;
            desk.overflows(&format!("a cell of {} at {width}", page.display()))?;
            desk.browser.press("Escape")?;
        }
    }
    Ok(())
}

fn all_verdicts_stand_on_the_first_screen(desk: &mut Desk) -> Result<(), Failure> {
    desk.browser.open(&desk.full, "", WIDE)?;
    let bottom = "Math.max(...[...document.querySelectorAll('.matrix tr')]
        .map((row) => row.getBoundingClientRect().bottom))";
    let bottom = desk.browser.value(bottom)?.as_f64().unwrap_or(f64::INFINITY);
    assert!(bottom <= f64::from(WIDE.1), "the last row ends at {bottom}");
    desk.expect("document.querySelectorAll('.matrix td a').length", json!(44 * 7))
}

fn every_text_has_contrast(desk: &mut Desk) -> Result<(), Failure> {
    for (size, width) in [(WIDE, "1600"), (PHONE, "400")] {
        for scheme in ["light", "dark"] {
            for (page, name) in [(desk.full.clone(), "layout"), (desk.drawn.clone(), "drawings")] {
                desk.browser.open(&page, "", size)?;
                desk.browser.scheme(scheme)?;
                let shot = browser::folder()?.join(format!("{name}-{width}-{scheme}.png"));
                desk.browser.screenshot(&shot)?;
            }
            let read = desk.browser.contrast(200, 100);
            read.map_err(|failure| format!("at {width}, {scheme}: {failure}"))?;
        }
    }
    Ok(())
}
