//! The file that `valgrind --tool=callgrind` writes.

use std::{collections::HashMap, fs, path::Path};

use crate::Failure;

const ALLOCATE: [&str; 6] =
    ["malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc"];

/// What a program did from its start to its end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Profile {
    pub instructions: u64,
    pub allocations: u64,
    /// Calls that make a task of tokio: one or more for each task.
    pub spawns: u64,
}

pub fn read(path: &Path) -> Result<Profile, Failure> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let profile = parse(&String::from_utf8_lossy(&text));
    match profile {
        Profile { instructions: 0, .. } => Err("callgrind has counted nothing".into()),
        // The program does both.
        Profile { spawns: 0, .. } | Profile { allocations: 0, .. } => {
            Err("callgrind names no spawn of tokio, or no malloc: build with --profile counts, \
                 which keeps the names of functions"
                .into())
        }
        profile => Ok(profile),
    }
}

fn parse(text: &str) -> Profile {
    let (mut profile, mut names, mut callee) = (Profile::default(), HashMap::new(), "");
    for line in text.lines() {
        let Some((key, value)) = line.split_once(['=', ':']) else { continue };
        let number = || value.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
        match key {
            "fn" => {
                name(&mut names, value);
            }
            "cfn" => callee = name(&mut names, value),
            // Of the function that was named last.
            "calls" if allocates(callee) => profile.allocations += number(),
            "calls" if spawns(callee) => profile.spawns += number(),
            "totals" => profile.instructions = number(),
            _ => {}
        }
    }
    profile
}

fn allocates(function: &str) -> bool {
    ALLOCATE.contains(&function.trim_start_matches("__libc_"))
}

/// The compiler may have put one of these into the other.
fn spawns(function: &str) -> bool {
    function.contains("OwnedTasks") && function.contains("bind") || function.contains("new_task")
}

/// Reads a name, which is written out once: `(7) malloc`, and then `(7)`.
fn name<'a>(names: &mut HashMap<&'a str, &'a str>, text: &'a str) -> &'a str {
    match text.split_once(") ") {
        Some((number, name)) => {
            names.insert(number, name);
            name
        }
        None => names.get(text.trim_end_matches(')')).copied().unwrap_or(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_for_the_function_that_was_named() {
        let text = "events: Ir\n\nfl=(1)\nfn=(1) main\n12 5\ncfn=(2) malloc\ncalls=3 0\n12 90\n\
                    cfn=(3) tokio::runtime::task::list::OwnedTasks<S>::bind_inner\ncalls=2 7\n* 8\n\
                    fn=(4) other\ncfn=(2)\ncalls=1 0\n1 30\ncfn=(1)\ncalls=9 0\n2 4\n\
                    totals: 137\n";
        let expected = Profile { instructions: 137, allocations: 4, spawns: 2 };
        assert_eq!(parse(text), expected);
    }
}
