//! Who leads, and those who observe it.

mod leader;
pub(crate) mod observe;
pub(crate) mod observers;
