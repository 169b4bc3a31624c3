//! The token floor, as operators see and raise it.

use lock_core::{FencingToken, LockName, Result, TokenFloor};
use uuid::Uuid;

use crate::{
    layout::row::Row,
    operators::{LIMIT, patient},
    session::Session,
    wire::{script::Script, turns::Rank},
};

impl Session {
    /// How far tokens have come.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn token_floor(&self) -> Result<TokenFloor> {
        let op = ("token floor", Rank::Ask);
        let (_, rows) = self.insist(op, Script::floor, LIMIT, patient(), None).await?;
        Ok(read(&rows))
    }

    /// Raises it, unless it is as high.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        let op = ("raise the token floor", Rank::Ask);
        let raise = |script: Script| script.raise_floor(above);
        let (_, rows) = self.insist(op, raise, LIMIT, patient(), None).await?;
        Ok(read(&rows))
    }

    /// Who holds or waits with a token that is not above the floor.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn below(&self, floor: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
        let op = ("raise the token floor", Rank::Ask);
        let old = |script: Script| script.up_to(floor.above);
        let (_, rows) = self.insist(op, old, LIMIT, patient(), None).await?;
        let entry = |row: &Row| {
            let name = LockName::new(std::str::from_utf8(&row.name).ok()?).ok()?;
            Some((name, row.attempt))
        };
        Ok(rows.iter().filter_map(entry).collect())
    }
}

fn read(rows: &[Row]) -> TokenFloor {
    let token = |at: usize| FencingToken::new(rows.get(at).map_or(0, |row| row.token));
    TokenFloor::new(token(0), token(1))
}
