//! What several experiments play, with whatever lock they are given.

mod late_holder;

pub(crate) use self::late_holder::late_holder;
