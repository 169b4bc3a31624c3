//! The targets of the pages' links.

use std::{fs, path::Path};

/// Each page with the target of each of its links, without links to other hosts.
fn links() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = [root.to_owned(), root.join("docs")].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "md"))
    });
    let mut links = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let page = file.strip_prefix(root).unwrap().display().to_string();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let here = targets.filter(|target| !target.contains("://"));
        links.extend(here.map(|target| (page.clone(), target.to_owned())));
    }
    links
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let links = links();
    assert!(links.len() > 20, "{links:?}");
    let broken = links.iter().filter(|(page, target)| {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let from = root.join(page);
        let to = if file.is_empty() { from } else { from.parent().unwrap().join(file) };
        !to.exists() || !heading.is_empty() && !has(&fs::read_to_string(to).unwrap(), heading)
    });
    let broken: Vec<_> = broken.collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Whether there is such a heading, in the form used in links.
fn has(text: &str, heading: &str) -> bool {
    text.lines().filter_map(|line| line.strip_prefix('#')).any(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        words.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).eq(heading.chars())
    })
}
