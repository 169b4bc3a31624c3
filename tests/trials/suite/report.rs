//! The skipped checks with their reasons.

use std::sync::Mutex;

/// Counts skips, which the test runner does not: it knows only passed and failed.
#[derive(Default)]
pub struct Report {
    kept: Mutex<u32>,
    skipped: Mutex<Vec<(String, String)>>,
}

impl Report {
    /// Counts a check that was kept.
    pub fn kept(&self) {
        *self.kept.lock().unwrap() += 1;
    }

    /// Records a check that does not apply.
    pub fn skipped(&self, name: &str, reason: String) {
        self.skipped.lock().unwrap().push((name.to_owned(), reason));
    }

    /// If any check has run, prints every skip with its reason, the counts, and the stores that are not compiled in.
    pub fn print(&self, missing: &[&str]) {
        let mut skipped = self.skipped.lock().unwrap().clone();
        let kept = *self.kept.lock().unwrap();
        if kept == 0 && skipped.is_empty() {
            return;
        }
        skipped.sort();
        for (name, reason) in &skipped {
            println!("skipped {name}: {reason}");
        }
        for store in missing {
            println!("not run: {store} (build with --features {store})");
        }
        println!("properties: {kept} kept, {} skipped", skipped.len());
    }
}
