//! The report as a page, the documents that are made of it, and what a broken lock comes to.

mod broken;
mod docs;
mod html;
