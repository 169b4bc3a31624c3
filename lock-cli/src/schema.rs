//! `distlock schema`: the tables of a database whose user may not create them.

use distlock::sql::{self, Dialect};
use lock_core::StoreUrl;

use crate::{
    choice::Choice,
    exit::{Code, Failure},
    print,
};

/// Does not connect: only the scheme of the URL counts.
pub(crate) fn schema(store: &Choice) -> Result<(), Failure> {
    let url = StoreUrl::parse(store.url())?;
    let dialect = Dialect::of_scheme(url.scheme()).ok_or_else(|| {
        let why = format!("{} has no tables; postgres, mysql and sqlite have", url.scheme());
        Failure::new(Code::Usage, why)
    })?;
    Ok(print::lines(sql::schema(dialect).lines())?)
}
