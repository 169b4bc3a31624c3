//! The languages of the documents, and the words of generated text.

use crate::{Advice, ClaimText, Pace, Verdict};

use super::titles;

/// A language of the documents. Claims' sentences are English in both.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Language {
    English,
    /// Chinese, in simplified characters.
    Chinese,
}

impl Language {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// Part of its file names before the extension: nothing, or `.zh`.
    pub(crate) fn suffix(self) -> &'static str {
        self.pick("", ".zh")
    }

    pub(super) fn pick<T>(self, english: T, chinese: T) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }

    pub(super) fn verdict(self, verdict: Verdict) -> &'static str {
        let chinese = match verdict {
            Verdict::Holds => "成立",
            Verdict::Breaks => "如文章所说出错",
            Verdict::Differs => "与文章不符",
            Verdict::NoDifference => "没有差别",
            Verdict::CannotBeAsked => "不适用",
            Verdict::NotRun => "未运行",
            Verdict::Failed => "实验失败",
        };
        self.pick(verdict.words(), chinese)
    }

    pub(super) fn pace(self, pace: Pace) -> &'static str {
        match pace {
            Pace::Quick => self.pick("a quick run", "快速运行"),
            Pace::Full => self.pick("a full run", "完整运行"),
        }
    }

    /// Returns a claim's title, in English if there is no translation.
    pub(super) fn title(self, claim: &ClaimText) -> &str {
        match self {
            Self::English => &claim.title,
            Self::Chinese => titles::claim(claim.number).unwrap_or(&claim.title),
        }
    }

    /// Returns a need in one sentence, in English if there is no translation.
    pub(super) fn need(self, advice: &Advice) -> &'static str {
        match self {
            Self::English => advice.need,
            Self::Chinese => titles::need(advice.need).unwrap_or(advice.need),
        }
    }

    pub(super) fn listed(self, words: &[String]) -> String {
        words.join(self.pick(", ", "、"))
    }
}
