//! The calls of a build without metrics: each is empty.

use std::time::Duration;

use crate::{Error, LossReason, Request};

pub(crate) fn describe(_store: &'static str) {}

pub(crate) fn zeros(_store: &'static str, _request: &Request) {}

pub(crate) struct Waiting;

impl Waiting {
    pub(crate) fn begin(_store: &'static str, _request: &Request) -> Self {
        Self
    }
}

pub(crate) fn granted(_store: &'static str, _request: &Request, _waited: Duration) {}

pub(crate) fn contended(_store: &'static str, _request: &Request) {}

pub(crate) fn timed_out(_store: &'static str, _request: &Request) {}

pub(crate) fn acquire_failed(_store: &'static str, _request: &Request, _error: &Error) {}

pub(crate) fn renewed(_store: &str) {}

pub(crate) fn renewal_failed(_store: &str) {}

#[derive(Debug, Default)]
pub(crate) struct Holding;

impl Holding {
    pub(crate) fn begin(&self, _store: &'static str, _request: &Request) {}

    pub(crate) fn end(&self, _lost: Option<LossReason>) {}
}

#[derive(Debug, Default)]
pub(crate) struct Connection;

impl Connection {
    pub(crate) fn open(&self, _store: &'static str, _works: bool) {}

    pub(crate) fn turned(&self, _works: bool) {}

    pub(crate) fn close(&self) {}
}
