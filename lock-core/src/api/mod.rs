//! What people call.

pub(crate) mod adopt;
pub(crate) mod connect;
pub(crate) mod diagnose;
pub(crate) mod drain;
pub(crate) mod election;
pub(crate) mod gate;
pub(crate) mod give_back;
pub(crate) mod guard;
pub(crate) mod held;
pub(crate) mod lock;
pub(crate) mod locks;
pub(crate) mod options;
pub(crate) mod owner;
pub(crate) mod raise_floor;
pub(crate) mod run;
pub(crate) mod semaphore;
pub(crate) mod set;
pub(crate) mod signal;
