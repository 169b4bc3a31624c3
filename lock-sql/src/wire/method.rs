//! Login methods that the client library lacks.

use crate::layout::dialect::Dialect;

/// The words of the client library before the method's name or number.
const WORDS: [&str; 4] = [
    "unknown authentication plugin: ",
    "unknown authentication method: ",
    "unsupported authentication method: ",
    "unsupported SASL authentication mechanisms: ",
];

/// Says which login method the server wants, if the client library lacks it. A retry does not help.
pub(crate) fn lacking(dialect: Dialect, error: &sqlx::Error) -> Option<String> {
    let sqlx::Error::Protocol(text) = error else { return None };
    let method = match text.contains("mysql_cleartext_plugin disabled") {
        true => "mysql_clear_password",
        false => {
            let (_, method) = WORDS.iter().find_map(|words| text.split_once(words))?;
            // The place in the library's source follows.
            named(method.split(" (").next().unwrap_or(method))
        }
    };
    let instead = match dialect {
        Dialect::MySql => "caching_sha2_password or mysql_native_password",
        _ => "scram-sha-256, as pg_hba.conf says",
    };
    Some(format!(
        "the server wants the login method {method}, which this client lacks: give the user a \
         password ({instead})"
    ))
}

/// PostgreSQL's methods have numbers.
fn named(method: &str) -> &str {
    match method {
        "2" => "krb5",
        "7" => "gss",
        "9" => "sspi",
        method => method,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_named() {
        let lacks = |text: &str| lacking(Dialect::MySql, &sqlx::Error::Protocol(text.to_owned()));
        for (text, method) in [
            ("unknown authentication plugin: client_ed25519 (a:36)", "client_ed25519,"),
            ("error (reading it): unknown authentication method: 7 (a:8) (b:1)", "gss,"),
            ("mysql_cleartext_plugin disabled (a:29)", "mysql_clear_password,"),
        ] {
            assert!(lacks(text).unwrap().contains(method), "{text}");
        }
        assert_eq!(lacks("unexpected packet"), None);
    }
}
