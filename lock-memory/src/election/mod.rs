//! Who leads, told to those who observe.

mod observe;
