//! The secrets in a URL: its password, and options that look like one.

use super::parts::is_scheme;

/// Parts of the names of options that people write although their values are secret.
const SECRETS: [&str; 7] = ["pass", "pwd", "auth", "token", "secret", "cred", "apikey"];

/// Whether the value of an option is a secret, or was meant as one. That of `password_file` is where
/// a secret is.
pub(super) fn is_secret(option: &str) -> bool {
    let option = option.to_ascii_lowercase();
    let elsewhere = option.ends_with("_file") || option.ends_with("_env");
    let option = option.replace(['_', '-'], "");
    !elsewhere && (option == "pw" || SECRETS.iter().any(|part| option.contains(part)))
}

/// Whether there is an `@` that does not end a login. It may be part of a password, or follow a
/// password with a character that ends the authority. Parsed as it is, parts of the password would
/// count as host, path or option, and be shown.
pub(super) fn has_stray_at(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix("//") else {
        // The login of a URL without its scheme.
        return rest.split_once('?').is_some_and(|(_, query)| query.contains('@'));
    };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    rest.matches('@').count() > 1 || (rest.contains('@') && !authority.contains('@'))
}

/// The URL with `***` for everything between the first `:` after the scheme and the last `@`, and
/// for the secrets among the options. Works on any text, also one that is not a URL, and hides too
/// much rather than too little.
pub(super) fn without_password(url: &str) -> String {
    without_secret_options(&without_login(url))
}

/// Without `SCHEME://`, the text before the `@` may be a login without its scheme:
/// `USER:PASSWORD@HOST`.
fn without_login(url: &str) -> String {
    let Some(at) = url.rfind('@') else { return url.to_owned() };
    let scheme = url.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme));
    let start = scheme.map_or(0, |scheme| scheme.len() + "://".len());
    let slashes = url[start..].len() - url[start..].trim_start_matches('/').len();
    let start = start + slashes;
    match url.get(start..at).and_then(|login| login.find(':')) {
        Some(colon) => format!("{}:***{}", &url[..start + colon], &url[at..]),
        None if scheme.is_none() => format!("***{}", &url[at..]),
        None => url.to_owned(),
    }
}

/// The URL with `***` instead of everything from a secret option's value on.
fn without_secret_options(url: &str) -> String {
    let starts = url.match_indices(['?', '&']).map(|(at, _)| at + 1);
    let value = |start: usize| {
        let (option, _) = url[start..].split_once('=')?;
        is_secret(option).then_some(start + option.len() + 1)
    };
    match starts.filter_map(value).min() {
        Some(value) => format!("{}***", &url[..value]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_words_mean_a_secret() {
        for option in [
            "passphrase",
            "dbpass",
            "Requirepass",
            "pw",
            "PWD",
            "cred",
            "credentials",
            "apikey",
            "api_key",
            "API-Key",
            "auth",
            "access_token",
        ] {
            assert!(is_secret(option), "{option}");
        }
        for option in ["password_file", "sentinel_password_env", "key", "ttl", "power", "ca"] {
            assert!(!is_secret(option), "{option}");
        }
    }
}
