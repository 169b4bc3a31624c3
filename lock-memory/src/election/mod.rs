//! Elections: changes of the leader for observers.

mod observe;
