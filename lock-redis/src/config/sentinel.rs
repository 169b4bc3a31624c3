//! The login at the sentinels, as a URL has it.

use lock_core::{Error, Options, Result, Secret, StoreUrl, User};

/// Reads the user and the password from the places that the options name.
pub(super) fn login(
    url: &StoreUrl,
    options: &mut Options<'_>,
) -> Result<(Option<User>, Option<Secret>)> {
    let users = [
        options.text("sentinel_user").map(User::text),
        options.text("sentinel_user_file").map(User::file),
        options.text("sentinel_user_env").map(User::env),
    ];
    let passwords = [
        options.text("sentinel_password_file").map(Secret::file),
        options.text("sentinel_password_env").map(Secret::env),
    ];
    let user = "one user, please: by sentinel_user, by sentinel_user_file, or by sentinel_user_env";
    let password = "one password, please: by sentinel_password_file, or by sentinel_password_env";
    Ok((one(users, || url.error(user))?, one(passwords, || url.error(password))?))
}

fn one<T, const PLACES: usize>(
    places: [Option<T>; PLACES],
    several: impl FnOnce() -> Error,
) -> Result<Option<T>> {
    let mut given = places.into_iter().flatten();
    match (given.next(), given.next()) {
        (place, None) => Ok(place),
        _ => Err(several()),
    }
}
