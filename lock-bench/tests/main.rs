//! The report as a page, and the documents that are made of it.

mod docs;
mod html;
