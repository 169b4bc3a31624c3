//! The rights of the page: run its own style and script, and load nothing.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// Returns the content security policy for a style and a script, by their hashes.
pub(crate) fn policy(style: &str, script: &str) -> String {
    let (style, script) = (hash(style), hash(script));
    format!(
        "default-src 'none'; style-src {style}; script-src {script}; img-src data:; \
         base-uri 'none'; form-action 'none'"
    )
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_hash_is_the_one_of_the_specification() {
        // The example of https://www.w3.org/TR/CSP2/#script-src-hash-usage
        let hash = super::hash("alert('Hello, world.');");
        assert_eq!(hash, "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='");
    }
}
