//! The words between a test and its other process, on the process's stdin and stdout.

use std::{
    fmt::Display,
    io::{self, BufRead, Write},
};

/// Says a word to the test.
pub fn say(what: impl Display) {
    println!("said {what}");
    io::stdout().flush().unwrap();
}

/// Returns whether there was an order: at the end there is none.
pub fn until_told() -> bool {
    io::stdin().read_line(&mut String::new()).unwrap() > 0
}

/// Orders the process to go on.
pub fn go(orders: &mut impl Write) {
    writeln!(orders, "go").unwrap();
}

/// Returns the next word of the process: the text after `said `.
pub fn says(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the process said no more");
        // The test runner may have begun the line.
        if let Some((_, said)) = line.trim_end().split_once("said ") {
            return said.to_owned();
        }
    }
}
