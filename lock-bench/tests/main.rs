//! The report as a page, the documents that are made of it, and broken locks and stores.

mod broken;
mod docs;
mod html;
