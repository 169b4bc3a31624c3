//! C35: a Lua script is isolated, and its writes before an error stay.

use crate::{
    Claim, Failure, Figure, Nature, Outcome, Side, Stage, Store,
    scenario::script::{self, Seen},
};

pub(super) const CLAIM: Claim = Claim {
    number: 35,
    title: "A Lua script as a transaction",
    claimed: "A Lua script is a transaction: it is isolated, but what it wrote before an error stays.",
    done: "A client counts up by two in one script, again and again, while another one reads; then a \
           script writes a key and fails. In databases the same in a transaction that is rolled back \
           at its error.",
    measured: "How often the reader sees half of it, and whether what was written before the error \
               is there.",
    threshold: "Holds if the reader never sees an odd number and the write stays.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let seen = match stage.store {
        #[cfg(feature = "redis")]
        Store::Redis => script::in_redis(stage).await?,
        #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
        Store::MySql | Store::Postgres | Store::Sqlite => script::in_a_database(stage).await?,
        _ => return Ok(Outcome::cannot_be_asked("it runs no scripts of several writes")),
    };
    let Seen { label, reads, halves, stays } = seen;
    let kept = if stays { "stays" } else { "is gone" };
    let happened = format!(
        "{halves} of {reads} reads saw half of it; what was written before the error {kept}"
    );
    let side = Side::new(label, Nature::AsPrinted, halves == 0, happened.clone());
    Ok(Outcome::holds_if(halves == 0 && stays, format!("{label}: {happened}"))
        .side(side)
        .figure(Figure::count("reads that saw half of it", halves as f64, "reads"))
        .figure(Figure::count("reads", reads as f64, "reads")))
}
