//! What `distlock check` prints.

use crate::place::Place;

/// The end of a check.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub out: String,
    pub error: String,
}

/// Runs the check to its end.
pub fn check(place: &Place, arguments: &[&str]) -> Answer {
    let (code, out, error) = place.run(&[&["check"], arguments].concat());
    Answer { code, out, error }
}

impl Answer {
    /// The checks with this verdict, in order.
    pub fn verdicts(&self, verdict: &str) -> Vec<String> {
        let reports: serde_json::Value = serde_json::from_str(&self.out).expect("JSON");
        let mut found = Vec::new();
        for promise in reports[0]["promises"].as_array().expect("promises") {
            for check in promise["checks"].as_array().expect("checks") {
                if check["verdict"] == verdict {
                    let [promise, check] = [&promise["name"], &check["name"]];
                    let words = [promise, check].map(|name| name.as_str().expect("a name"));
                    found.push(words.join(": "));
                }
            }
        }
        found.sort();
        found
    }
}
