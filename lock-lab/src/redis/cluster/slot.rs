//! The slots of keys.

use super::RedisCluster;

/// Returns the slot of a key: of its hash tag, if it has one.
pub(super) fn of(key: &[u8]) -> u16 {
    crc16(hash_tag(key).unwrap_or(key)) % RedisCluster::SLOTS
}

fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let rest = &key[key.iter().position(|byte| *byte == b'{')? + 1..];
    let length = rest.iter().position(|byte| *byte == b'}')?;
    (length > 0).then(|| &rest[..length])
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => (crc << 1) ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_decide() {
        assert_eq!(of(b"123456789"), 0x31C3);
        assert_eq!(of(b"{a}b"), of(b"a"));
        assert_eq!(of(b"x{a}{b}"), of(b"a"));
        assert_ne!(of(b"{}a"), of(b"a"));
    }
}
