//! The generated blocks of a page.

use crate::{Failure, Report, Store};

use super::{Language, tables};

/// Returns a page with its generated blocks filled. `WHAT` of a block is one of
///
/// - `run`: the origin of the figures,
/// - `verdicts`: all verdicts, a row per claim,
/// - `advice`: the stores to use for each need,
/// - `differs`: the cells that differ from the documents,
/// - `where C2 C3`: the stores of each verdict of these claims,
/// - `seen C7 C44 on redis`: the observations there, in words and figures.
pub(crate) fn fill(page: &str, report: &Report, language: Language) -> Result<String, Failure> {
    lock_report::fill::<Failure>(page, |what| Ok(Block::parse(what)?.generate(report, language)))
}

#[derive(Debug, Eq, PartialEq)]
enum Block {
    Run,
    Verdicts,
    Advice,
    Differs,
    Where(Vec<u8>),
    Seen(Vec<u8>, Vec<Store>),
}

impl Block {
    fn parse(what: &str) -> Result<Self, Failure> {
        let words: Vec<_> = what.split_whitespace().collect();
        let block = match words.as_slice() {
            ["run"] => Self::Run,
            ["verdicts"] => Self::Verdicts,
            ["advice"] => Self::Advice,
            ["differs"] => Self::Differs,
            ["where", claims @ ..] => Self::Where(numbers(claims)?),
            ["seen", rest @ ..] => {
                let on = rest.iter().position(|word| *word == "on");
                let on = on.ok_or_else(|| format!("{what:?} names no stores after \"on\""))?;
                let stores = rest[on + 1..].iter().map(|store| store.parse());
                Self::Seen(numbers(&rest[..on])?, stores.collect::<Result<_, _>>()?)
            }
            _ => {
                let known = "run, verdicts, advice, differs, where and seen";
                return Err(format!("unknown block {what:?}; known are {known}").into());
            }
        };
        Ok(block)
    }

    fn generate(&self, report: &Report, language: Language) -> String {
        match self {
            Self::Run => tables::run(report, language),
            Self::Verdicts => tables::verdicts(report, language),
            Self::Advice => tables::advice(report, language),
            Self::Differs => tables::differs(report, language),
            Self::Where(claims) => tables::places(report, claims, language),
            Self::Seen(claims, stores) => tables::seen(report, claims, stores, language),
        }
    }
}

fn numbers(claims: &[&str]) -> Result<Vec<u8>, Failure> {
    let number = |word: &&str| {
        let number = word.strip_prefix('C').and_then(|digits| digits.parse().ok());
        number.ok_or_else(|| format!("{word:?} is no claim such as C7").into())
    };
    claims.iter().map(number).collect()
}
