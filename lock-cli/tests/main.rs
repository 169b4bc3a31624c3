//! The program `distlock` as its users see it: real processes on real stores.

#![cfg(all(target_os = "linux", feature = "sqlite"))]

mod check;
mod commands;
mod place;
mod stores;
