//! `distlock token-floor`: shows or raises the floor of a store's fencing tokens.

use distlock::{Error, FencingToken, Locks, TokenFloor};
use lock_core::StoreUrl;
use serde::Serialize;
use uuid::Uuid;

use crate::{
    choice::{Choice, missing_file},
    exit::{Code, Failure},
    opt, print,
};

/// The floor, as JSON shows it.
#[derive(Serialize)]
pub(crate) struct Floor {
    /// The number that the floor was raised to; 0 if it never was.
    pub(crate) above: u64,
    /// No token so far is greater.
    newest: u64,
    /// The floor before, if the command was to raise it.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
}

impl Floor {
    pub(crate) fn new(floor: TokenFloor, before: Option<FencingToken>) -> Self {
        let before = before.map(FencingToken::value);
        Self { above: floor.above.value(), newest: floor.newest.value(), before }
    }
}

/// The value of `--above`.
enum Above {
    Number(FencingToken),
    Store(Choice),
}

pub(crate) async fn token_floor(opt: &opt::TokenFloor, store: &Choice) -> Result<(), Failure> {
    let above = opt.above.as_deref().map(Above::read).transpose()?;
    let locks = store.connect().await?;
    match above {
        Some(above) => raise(&locks, above.token(&locks).await?, opt.json).await?,
        None => {
            let floor = locks.token_floor().await?;
            match opt.json {
                true => print::json(&Floor::new(floor, None))?,
                false => print::line(floor)?,
            }
        }
    }
    Ok(locks.close().await?)
}

/// Raises the floor, and prints the result.
async fn raise(locks: &Locks, above: FencingToken, json: bool) -> Result<(), Failure> {
    let before = locks.token_floor().await?.above;
    let floor = locks.raise_token_floor(above).await?;
    if json {
        return Ok(print::json(&Floor::new(floor, Some(before)))?);
    }
    let became = match before < above {
        true => format!("raised from {before} to {}", floor.above),
        false => format!("not raised to {above}: it was {before} already"),
    };
    Ok(print::lines([became, floor.to_string()])?)
}

impl Above {
    /// Reads a number or a URL, with blanks around it as database programs print them.
    fn read(text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(FencingToken::new(number)));
        }
        let wrong = |what: &str| Failure::new(Code::Usage, format!("--above {text:?}: {what}"));
        if text.is_empty() {
            return Err(wrong(
                "expected a number, or the URL of another store; the empty answer of a query says that \
                 no row has a token yet, so nothing is to be raised",
            ));
        }
        if !text.contains(':') {
            return Err(wrong("expected a number, or the URL of another store"));
        }
        let url = StoreUrl::parse(text).map_err(|error| within(error.into()))?;
        if url.scheme() == "memory" {
            let why = "memory: is a store inside this process, which has handed out no tokens";
            return Err(within(Failure::new(Code::Usage, why)));
        }
        if let Some(path) = missing_file(&url) {
            // Connecting would create it.
            return Err(within(Failure::new(Code::Usage, format!("there is no file {path}"))));
        }
        Ok(Self::Store(Choice::one(&[text.to_owned()], true).map_err(within)?))
    }

    /// Returns the number, or the newest token of the other store.
    async fn token(self, this: &Locks) -> Result<FencingToken, Failure> {
        let choice = match self {
            Self::Number(token) => return Ok(token),
            Self::Store(choice) => choice,
        };
        let other = choice.connect().await.map_err(within)?;
        let Some(floor) = floor_of_another(this, &other).await? else {
            let why = "it is the store whose floor is to be raised, and all its holders would lose their \
                       locks; name the store whose place it takes, or a number";
            return Err(within(Failure::new(Code::Usage, why)));
        };
        other.close().await.map_err(|error| within(error.into()))?;
        if floor.newest.value() == 0 {
            let why = format!("{choice} has handed out no token: is it the store that is meant?");
            return Err(within(Failure::new(Code::Usage, why)));
        }
        Ok(floor.newest)
    }
}

fn within(failure: Failure) -> Failure {
    let code = failure.code();
    failure.within(code, "--above")
}

/// The floor of the other store. `None` if both URLs mean one store: a lock held by the one URL is
/// seen by the other.
async fn floor_of_another(this: &Locks, other: &Locks) -> Result<Option<TokenFloor>, Failure> {
    let name = format!("distlock-token-floor.{}", Uuid::new_v4().simple());
    let probe = this.lock(&name)?.acquire().await?;
    let ask = async {
        // First: after it, a server that lags behind others shows what they showed before.
        let floor = other.token_floor().await?;
        Ok((floor, other.inspect(&name).await?))
    };
    let answer = ask.await.map_err(|error: Error| within(error.into()));
    probe.release().await?;
    let (floor, seen) = answer?;
    Ok(seen.is_empty().then_some(floor))
}
