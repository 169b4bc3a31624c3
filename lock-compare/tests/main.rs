//! The documents that are made of a report.

mod docs;
