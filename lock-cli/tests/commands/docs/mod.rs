//! The blocks of the pages. Each has a test that runs it, here those with commands of `distlock`.

mod cargo;
#[cfg(all(feature = "mysql", feature = "postgres"))]
mod databases;
mod list;
mod recipes;
mod runbook;
mod scene;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A fenced block of a page.
pub struct Block {
    /// The page, such as `docs/cli.md`.
    pub page: String,
    /// What stands behind the fence, such as `rust,no_run`.
    pub language: String,
    pub text: String,
}

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Each page in English, and its text.
pub fn pages() -> Vec<(String, String)> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/stores"] {
        let files = fs::read_dir(root().join(folder)).expect(folder);
        let names = files.map(|file| file.expect(folder).file_name().into_string().expect("text"));
        let names = names.filter(|name| name.ends_with(".md") && !name.ends_with(".zh.md"));
        pages.extend(names.map(|name| format!("{folder}/{name}")));
    }
    let read = |page: &String| fs::read_to_string(root().join(page)).expect(page);
    pages.iter().map(|page| (page.clone(), read(page))).collect()
}

pub fn blocks() -> Vec<Block> {
    pages().iter().flat_map(|(page, text)| blocks_of(page, text)).collect()
}

fn blocks_of(page: &str, text: &str) -> Vec<Block> {
    // Every second part stands between two fences.
    let parts = text.split("\n```").skip(1).step_by(2);
    let block = |part: &str| {
        let (language, text) = part.split_once('\n').expect("a block ends");
        Block { page: page.to_owned(), language: language.to_owned(), text: text.to_owned() }
    };
    parts.map(block).collect()
}

/// The block of a page that has this text.
pub fn block(page: &str, text: &str) -> String {
    let all = blocks();
    let mut found = all.iter().filter(|block| block.page == page && block.text.contains(text));
    match (found.next(), found.next()) {
        (Some(block), None) => block.text.clone(),
        (found, _) => panic!("{page} has {} with {text:?}", found.map_or("no block", |_| "two")),
    }
}
