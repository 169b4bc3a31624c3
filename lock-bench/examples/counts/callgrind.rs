//! The file that `valgrind --tool=callgrind` writes.

use std::{collections::HashMap, fs, path::Path};

use lock_lab::Counters;

use crate::{
    Failure,
    figures::{ALLOCATIONS, INSTRUCTIONS, SPAWNS},
};

const ALLOCATE: [&str; 6] =
    ["malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc"];

/// What a program did from its start to its end. A task of tokio is spawned by one call or more.
pub fn read(path: &Path) -> Result<Counters, Failure> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let profile = parse(&String::from_utf8_lossy(&text));
    if profile.get(INSTRUCTIONS) == 0 {
        return Err("callgrind has counted nothing".into());
    }
    // The program does both.
    if [ALLOCATIONS, SPAWNS].iter().any(|what| profile.get(what) == 0) {
        let why = "callgrind names no spawn of tokio, or no malloc: build with --profile counts, \
                   which keeps the names of functions";
        return Err(why.into());
    }
    Ok(profile)
}

fn parse(text: &str) -> Counters {
    let (mut counted, mut names, mut callee) = (Vec::new(), HashMap::new(), "");
    for line in text.lines() {
        let Some((key, value)) = line.split_once(['=', ':']) else { continue };
        let number =
            || value.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        match key {
            "fn" => {
                name(&mut names, value);
            }
            "cfn" => callee = name(&mut names, value),
            // Of the function that was named last.
            "calls" if allocates(callee) => counted.push((ALLOCATIONS, number())),
            "calls" if spawns(callee) => counted.push((SPAWNS, number())),
            "totals" => counted.push((INSTRUCTIONS, number())),
            _ => {}
        }
    }
    counted.into_iter().collect()
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
        let expected = [(INSTRUCTIONS, 137), (ALLOCATIONS, 4), (SPAWNS, 2)];
        assert_eq!(parse(text), Counters::from_iter(expected));
    }
}
