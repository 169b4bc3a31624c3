//! `distlock token-floor`: what a store's fencing tokens are above.

use distlock::{FencingToken, TokenFloor};
use serde::Serialize;

use crate::{
    choice::Choice,
    exit::{Code, Failure},
    opt, print,
};

/// As everybody may see it.
#[derive(Serialize)]
pub(crate) struct Floor {
    /// What the floor was raised to; 0 if it never was.
    pub(crate) above: u64,
    /// No token so far is greater.
    newest: u64,
}

impl From<TokenFloor> for Floor {
    fn from(floor: TokenFloor) -> Self {
        Self { above: floor.above.value(), newest: floor.newest.value() }
    }
}

pub(crate) async fn token_floor(opt: &opt::TokenFloor, store: &Choice) -> Result<(), Failure> {
    let above = match &opt.above {
        Some(above) => Some(token(above).await?),
        None => None,
    };
    let locks = store.connect().await?;
    let floor = match above {
        Some(above) => locks.raise_token_floor(above).await?,
        None => locks.token_floor().await?,
    };
    match opt.json {
        true => print::json(&Floor::from(floor))?,
        false => print::line(floor)?,
    }
    Ok(locks.close().await?)
}

/// A number as it is, or the newest token of another store.
async fn token(above: &str) -> Result<FencingToken, Failure> {
    if let Ok(number) = above.parse() {
        return Ok(FencingToken::new(number));
    }
    if !above.contains(':') {
        let wrong = format!("--above {above:?}: expected a number, or the URL of another store");
        return Err(Failure::new(Code::Usage, wrong));
    }
    let within = |failure: Failure| {
        let code = failure.code();
        failure.within(code, "--above")
    };
    let other = Choice::one(&[above.to_owned()]).map_err(within)?;
    let locks = other.connect().await.map_err(within)?;
    let floor = locks.token_floor().await.map_err(|error| within(error.into()))?;
    locks.close().await.map_err(|error| within(error.into()))?;
    Ok(floor.newest)
}
