//! The tables of the pages, as Markdown.

use lock_report::{
    markdown::{plain, table},
    number,
};

use crate::{Cell, Choice, ClaimText, Report, Store, Verdict, html::id, outcome::TWO_MARKS};

use super::Language;

/// The longest sentence that a cell shows as a whole, in words.
const WORDS: usize = 30;
/// The page of evidence, as the pages link to it.
const EVIDENCE: &str = "comparison/report.html";

/// The origin of the figures, in one paragraph.
pub(super) fn run(report: &Report, language: Language) -> String {
    let machine = &report.machine;
    let versions = report.versions.iter().map(|(name, version)| format!("{name} {version}"));
    let versions = language.listed(&versions.collect::<Vec<_>>());
    let (claims, stores) = (report.rows.len(), report.stores.len());
    let (day, pace) = (report.day(), language.pace(report.pace));
    let place = format!("{}, {}", plain(&machine.processor), plain(&machine.system));
    let (cores, memory, took) = (machine.cores, machine.memory, report.took);
    let command = &report.command;
    language.pick(
        format!(
            "{claims} claims on {stores} stores, {pace} of {day} that took {took:.0} s.\n\
             Machine: {place}, {cores} cores, {memory} GiB.\n\
             Versions: {versions}.\n\
             Command: `{command}`.",
        ),
        format!(
            "{claims} 条说法，{stores} 种存储；{day} 的{pace}，用时 {took:.0} 秒。\n\
             机器：{place}，{cores} 核，{memory} GiB 内存。\n\
             版本：{versions}。\n\
             命令：`{command}`。",
        ),
    )
}

/// A row per claim, a column per store, with an explanation of the signs.
pub(super) fn verdicts(report: &Report, language: Language) -> String {
    let stores = report.stores.iter().map(|store| store.name().to_owned());
    let heading = [language.pick("claim", "说法").to_owned()].into_iter().chain(stores);
    let rows = report.rows.iter().map(|row| {
        let signs = report
            .stores
            .iter()
            .map(|store| row.cell(*store).map_or_else(String::new, |cell| cell.outcome.signs()));
        [titled(&row.claim, language)].into_iter().chain(signs).collect()
    });
    let table = table(&heading.collect::<Vec<_>>(), rows);
    format!("{}\n\n{}\n\n{table}", legend(report, language), two_marks(language))
}

/// The legend of a cell.
pub(super) fn two_marks(language: Language) -> &'static str {
    language
        .pick(TWO_MARKS, "每格两个标记：文章的锁，以及同一情形下的 distlock（✓ 正常，✗ 不正常）。")
}

fn legend(report: &Report, language: Language) -> String {
    let words = report.counts().map(|(verdict, count)| {
        format!("`{}` {} ({count})", verdict.sign(), language.verdict(verdict))
    });
    words.collect::<Vec<_>>().join(" · ")
}

pub(super) fn advice(report: &Report, language: Language) -> String {
    let heading = language.pick(
        ["need", "take", "do not take", "this run does not say it of", "claims"],
        ["需要", "选", "不选", "本次运行没有结论", "依据"],
    );
    let named = |choices: &[Choice]| {
        let named = choices.iter().map(|choice| choice.store.to_string());
        language.listed(&named.collect::<Vec<_>>())
    };
    let fast = |choices: &[Choice]| {
        let named = choices.iter().map(|choice| match choice.speed {
            Some(speed) => format!("{} ({} x)", choice.store, number(speed.ratio)),
            None => choice.store.to_string(),
        });
        language.listed(&named.collect::<Vec<_>>())
    };
    let advice = report.advice();
    let rows = advice.iter().map(|one| {
        let claims: Vec<_> = one.claims.iter().map(|claim| format!("C{claim}")).collect();
        let unknown: Vec<_> = one.unknown.iter().map(ToString::to_string).collect();
        let (take, leave) = (fast(&one.take), named(&one.leave));
        let need = language.need(one).to_owned();
        vec![need, take, leave, language.listed(&unknown), language.listed(&claims)]
    });
    table(&heading, rows)
}

/// The cells that differ from the documents, with their figures.
pub(super) fn differs(report: &Report, language: Language) -> String {
    let cells = report.cells().filter(|(_, cell)| cell.outcome.verdict == Verdict::Differs);
    let rows: Vec<_> = cells
        .map(|(claim, cell)| {
            let sentence = brief(cell, claim.number, language);
            vec![titled(claim, language), cell.store.to_string(), sentence]
        })
        .collect();
    if rows.is_empty() {
        return language.pick("Nothing in this run.", "本次运行中没有。").into();
    }
    let heading =
        language.pick(["claim", "store", "what was seen"], ["说法", "存储", "看到了什么（英文）"]);
    table(&heading, rows.into_iter())
}

pub(super) fn places(report: &Report, claims: &[u8], language: Language) -> String {
    let rows = claims.iter().map(|claim| {
        let by_verdict = Verdict::ALL.into_iter().filter_map(|verdict| {
            let is_so = |store: &Store| verdict_of(report, *claim, *store) == verdict;
            let stores = report.stores.iter().copied().filter(is_so).map(|store| store.to_string());
            let stores: Vec<_> = stores.collect();
            let (sign, words) = (verdict.sign(), language.verdict(verdict));
            let colon = language.pick(": ", "：");
            (!stores.is_empty())
                .then(|| format!("{sign} {words}{colon}{}", language.listed(&stores)))
        });
        let verdicts: Vec<_> = by_verdict.collect();
        vec![named(report, *claim, language), verdicts.join(language.pick("; ", "；"))]
    });
    let heading = language.pick(["claim", "verdicts"], ["说法", "结论"]);
    format!("{}\n\n{}", table(&heading, rows), again(claims, &[], language))
}

/// The observations, cell by cell, without the cells that cannot be asked.
pub(super) fn seen(report: &Report, claims: &[u8], stores: &[Store], language: Language) -> String {
    let cells = claims.iter().flat_map(|claim| stores.iter().map(move |store| (*claim, *store)));
    let asked =
        cells.filter(|(claim, store)| verdict_of(report, *claim, *store) != Verdict::CannotBeAsked);
    let rows = asked.map(|(claim, store)| {
        let verdict = verdict_of(report, claim, store);
        let sentence = report.cell(claim, store).map(|cell| brief(cell, claim, language));
        let verdict = format!("{} {}", verdict.sign(), language.verdict(verdict));
        vec![
            named(report, claim, language),
            store.to_string(),
            verdict,
            sentence.unwrap_or_default(),
        ]
    });
    let heading = language.pick(
        ["claim", "store", "verdict", "what was seen"],
        ["说法", "存储", "结论", "看到了什么（英文）"],
    );
    format!("{}\n\n{}", table(&heading, rows), again(claims, stores, language))
}

/// A cell's sentence. A long one ends between two of its parts, with a link to the evidence.
fn brief(cell: &Cell, claim: u8, language: Language) -> String {
    let sentence = &cell.outcome.sentence;
    let mut words = sentence.split_whitespace();
    let kept = words.by_ref().take(WORDS).collect::<Vec<_>>().join(" ");
    if words.next().is_none() {
        return plain(sentence);
    }
    let kept = kept.rsplit_once("; ").map_or(kept.as_str(), |(kept, _)| kept);
    let more = language.pick("more", "更多");
    format!("{}; [{more}]({EVIDENCE}#{})", plain(kept), id(claim, cell.store))
}

fn again(claims: &[u8], stores: &[Store], language: Language) -> String {
    let claims: Vec<_> = claims.iter().map(|claim| format!("C{claim}")).collect();
    let stores: Vec<_> = stores.iter().map(|store| store.scheme()).collect();
    let mut command = format!("distlock compare --claims {}", claims.join(","));
    if !stores.is_empty() {
        command += &format!(" --stores {}", stores.join(","));
    }
    language.pick(format!("To repeat it: `{command}`"), format!("自己运行：`{command}`"))
}

fn verdict_of(report: &Report, claim: u8, store: Store) -> Verdict {
    report.cell(claim, store).map_or(Verdict::NotRun, |cell| cell.outcome.verdict)
}

/// Number and title. Only the number if the report has no such row.
fn named(report: &Report, claim: u8, language: Language) -> String {
    let row = report.rows.iter().find(|row| row.claim.number == claim);
    row.map_or_else(|| format!("**C{claim}**"), |row| titled(&row.claim, language))
}

fn titled(claim: &ClaimText, language: Language) -> String {
    format!("**C{}** {}", claim.number, plain(language.title(claim)))
}
