//! Links the program at a fixed address on Linux with glibc.
//!
//! A position-independent program has 18,000 addresses relocated in 70 pages each time that it
//! starts, and `distlock run` starts for each command. Stack, heap and libraries stay at random
//! addresses. Static programs are left as they are.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_static = target("FEATURE").split(',').any(|feature| feature == "crt-static");
    if target("OS") == "linux" && target("ENV") == "gnu" && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
