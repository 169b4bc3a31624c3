//! What several experiments play, with whatever lock they are given.

mod cut_off;
mod first_holder;
mod late_holder;

pub(crate) use self::{
    cut_off::CutOff,
    first_holder::{FirstHolder, Meeting, Second},
    late_holder::late_holder,
};
