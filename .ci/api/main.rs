//! Prints the public API of a library from rustdoc's JSON, one item a line: `.ci/public-api` compares it.

use std::{collections::HashSet, env, error::Error};

use public_api::Builder;

/// Traits of the compiler that nobody asks for.
const UNASKED: [&str; 4] = ["Freeze", "StructuralPartialEq", "Unpin", "UnwindSafe"];

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("the argument is missing: a file of rustdoc's JSON")?;
    let all = Builder::from_rustdoc_json(path).omit_blanket_impls(true);
    let short = all.clone().omit_auto_trait_impls(true).omit_auto_derived_impls(true).build()?;
    let short: HashSet<_> = short.items().map(ToString::to_string).collect();
    for item in all.build()?.items().map(ToString::to_string) {
        // Of what is derived, that it is: who loses `Clone` or `Send` breaks a program.
        let derived = item.starts_with("impl") && !UNASKED.iter().any(|name| item.contains(name));
        if derived || short.contains(&item) {
            println!("{item}");
        }
    }
    Ok(())
}
