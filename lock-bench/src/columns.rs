//! The columns of all tables: a heading, and the text of a row's cell.

use crate::{
    Role, Row,
    words::{count, dash, named, ratio, role, time},
};

pub(crate) type Column = (&'static str, fn(&Row) -> String);

pub(crate) const STORE: Column = ("store", |row| row.store.clone());
pub(crate) const CONTENDER: Column = ("contender", |row| row.contender.clone());
pub(crate) const ROLE: Column = ("what it is", |row| role(row.role).into());
/// Contender and role in one.
pub(crate) const NAMED: Column = ("", named);
pub(crate) const RATE: Column = ("acquisitions/s", |row| count(Some(&row.figures.rate)));
pub(crate) const RATIO: Column = ("x distlock", |row| match row.role {
    Role::Distlock => "1".into(),
    _ => ratio(row.ratio),
});
pub(crate) const P50: Column = ("acquire 50 %", |row| time(Some(&row.figures.acquire.p50)));
pub(crate) const P99: Column = ("99 %", |row| time(Some(&row.figures.acquire.p99)));
pub(crate) const P999: Column = ("99.9 %", |row| time(Some(&row.figures.acquire.p999)));
pub(crate) const SLOWEST: Column = ("slowest", |row| time(Some(&row.figures.acquire.max)));
pub(crate) const HANDOVER: Column =
    ("hand-over 50 %", |row| time(row.figures.handover.as_ref().map(|times| &times.p50)));
pub(crate) const HANDOVER99: Column =
    ("99 %", |row| time(row.figures.handover.as_ref().map(|times| &times.p99)));
pub(crate) const TURNS: Column = ("least and most turns", |row| match &row.figures.fairness {
    Some(fair) => format!("{} to {}", count(Some(&fair.least)), count(Some(&fair.most))),
    None => dash(),
});
pub(crate) const ORDER: Column = ("out of order", |row| match &row.figures.fairness {
    Some(fair) => format!("{} %", count(Some(&fair.out_of_order))),
    None => dash(),
});
pub(crate) const SPREAD: Column =
    ("p99 / p50", |row| count(row.figures.fairness.as_ref().map(|fair| &fair.spread)));
pub(crate) const REQUESTS: Column = ("requests", |row| count(row.figures.requests.as_ref()));
pub(crate) const WAKES: Column = ("wakes", |row| count(row.figures.wakes.as_ref()));
pub(crate) const CONNECTED: Column = ("connections", |row| count(row.figures.connections.as_ref()));
pub(crate) const WATCHES: Column = ("watches", |row| count(row.figures.watches.as_ref()));
pub(crate) const CLIENT_CPU: Column = ("client CPU", |row| time(Some(&row.figures.client_cpu)));
pub(crate) const SERVER_CPU: Column = ("server CPU", |row| time(row.figures.server_cpu.as_ref()));

/// What a killed holder or leader costs.
pub(crate) static OUTAGE: [Column; 3] =
    [STORE, CONTENDER, ("time until the next grant", HANDOVER.1)];
/// All figures of a preset.
pub(crate) static ALL: [Column; 20] = [
    STORE, CONTENDER, ROLE, RATE, RATIO, P50, P99, P999, SLOWEST, HANDOVER, HANDOVER99, TURNS,
    ORDER, SPREAD, REQUESTS, WAKES, CONNECTED, WATCHES, CLIENT_CPU, SERVER_CPU,
];
/// What a page of `docs/` shows of a preset.
pub(crate) static SUMMARY: [Column; 10] =
    [STORE, CONTENDER, ROLE, RATE, RATIO, P50, P99, HANDOVER, REQUESTS, CLIENT_CPU];
