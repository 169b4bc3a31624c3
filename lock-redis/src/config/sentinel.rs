//! The login at the sentinels, as a URL has it.

use lock_core::{Options, Result, Secret, User};

use super::refused;

/// Reads the user and the password from the places that the options name.
pub(super) fn login(options: &mut Options<'_>) -> Result<(Option<User>, Option<Secret>)> {
    let user = one(
        options,
        "user",
        [
            ("sentinel_user", User::text),
            ("sentinel_user_file", User::file),
            ("sentinel_user_env", User::env),
        ],
    )?;
    let password = one(
        options,
        "password",
        [
            ("sentinel_password_file", Secret::file as fn(_) -> _),
            ("sentinel_password_env", Secret::env),
        ],
    )?;
    Ok((user, password))
}

/// An option, and what its value means.
type Place<'a, T> = (&'static str, fn(&'a str) -> T);

fn one<'a, T, const PLACES: usize>(
    options: &mut Options<'a>,
    what: &str,
    places: [Place<'a, T>; PLACES],
) -> Result<Option<T>> {
    let mut given: Option<(&str, T)> = None;
    for (option, read) in places {
        let Some(value) = options.text(option) else { continue };
        if let Some((first, _)) = given {
            return Err(refused(option, value, &format!("one {what}: {first} is given, too")));
        }
        given = Some((option, read(value)));
    }
    Ok(given.map(|(_, place)| place))
}
