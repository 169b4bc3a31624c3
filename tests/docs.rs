//! Pages with Rust blocks. The blocks are compiled, and run unless marked otherwise.
#![cfg(doctest)]

#[cfg(feature = "memory")]
#[doc = include_str!("../README.md")]
struct Readme;
#[cfg(feature = "memory")]
#[doc = include_str!("../src/README.md")]
struct PublishedReadme;
#[cfg(feature = "memory")]
#[doc = include_str!("../README.zh.md")]
struct ReadmeInChinese;
#[cfg(feature = "memory")]
#[doc = include_str!("../docs/calls.md")]
struct Calls;
#[cfg(feature = "redis")]
#[doc = include_str!("../docs/clients.md")]
struct Clients;
#[doc = include_str!("../docs/concepts.md")]
struct Concepts;
#[doc = include_str!("../docs/errors.md")]
struct Errors;
#[cfg(feature = "sqlite")]
#[doc = include_str!("../docs/fencing.md")]
struct Fencing;
#[doc = include_str!("../docs/handover.md")]
struct Handover;
#[cfg(feature = "metrics")]
#[doc = include_str!("../docs/metrics.md")]
struct Metrics;
#[doc = include_str!("../docs/other-libraries.md")]
struct OtherLibraries;
#[cfg(feature = "memory")]
#[doc = include_str!("../docs/shutdown.md")]
struct Shutdown;
#[doc = include_str!("../docs/tokens.md")]
struct Tokens;
#[cfg(feature = "memory")]
#[doc = include_str!("../docs/testing.md")]
struct Testing;
