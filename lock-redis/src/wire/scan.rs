//! Reads the keys of a server step by step (`SCAN`).

use redis::{Cmd, cmd};

/// How many keys one step looks at.
const STEP: u64 = 1000;

/// Returns the keys that fit a pattern; some of them twice. `ask` sends a step, and returns where the
/// next one begins, and the keys that were found.
pub(crate) async fn keys<E, F: Future<Output = Result<(Vec<u8>, Vec<Vec<u8>>), E>>>(
    pattern: &[u8],
    ask: impl Fn(Cmd) -> F,
) -> Result<Vec<Vec<u8>>, E> {
    let (mut cursor, mut keys) = (b"0".to_vec(), Vec::new());
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(STEP);
        let (next, mut found) = ask(scan).await?;
        keys.append(&mut found);
        // The cursor after the last step.
        if next == b"0" {
            return Ok(keys);
        }
        cursor = next;
    }
}

/// Returns a pattern of all keys that start with this text.
pub(crate) fn starting_with(text: &[u8]) -> Vec<u8> {
    let escaped = |byte: &u8| match byte {
        b'*' | b'?' | b'[' | b']' | b'\\' => vec![b'\\', *byte],
        _ => vec![*byte],
    };
    text.iter().flat_map(escaped).chain([b'*']).collect()
}
