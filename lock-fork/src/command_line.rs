//! The command line of this process, as other processes see it.

use std::{fs, ptr};

/// Shows other words as the command line of this process, as far as there is room. Returns `None`
/// if the kernel does not say where it lies. The calling thread must be the only one.
#[expect(unsafe_code, reason = "the kernel shows the memory in which the arguments lie")]
pub(crate) fn show(words: &[&[u8]]) -> Option<()> {
    let (start, room) = place(&fs::read_to_string("/proc/self/stat").ok()?)?;
    let text = fitted(words, room);
    // SAFETY: The kernel says that the arguments lie in these `room` bytes. It has put them there,
    // on the stack of this process above the first frame, in pages that may be written. No
    // reference leads there: `std` copies each argument that it returns. No other thread can read
    // them now. The last byte stays NUL, so each pointer of `argv` leads to a string that ends.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(start).copy_from(text.as_ptr(), text.len()) };
    Some(())
}

/// The address of the arguments, and their length: from the fields 48 and 49 of `/proc/PID/stat`.
fn place(stat: &str) -> Option<(usize, usize)> {
    // The second field, the name in brackets, may have spaces and brackets of its own.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(48 - 3);
    let mut address = || fields.next()?.parse::<usize>().ok();
    let (start, end) = (address()?, address()?);
    // Emulators say 0.
    (0 < start && start < end).then(|| (start, end - start))
}

/// A command line of this many bytes, in NULs from the last word on. The last byte is always a NUL:
/// after another one, the kernel would show the environment, too.
fn fitted(words: &[&[u8]], room: usize) -> Vec<u8> {
    let mut text = words.join(&0_u8);
    text.truncate(room - 1);
    text.resize(room, 0);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_read_whatever_the_name_is() {
        let stat = |start: u64, end: u64| {
            let between = "0 ".repeat(44);
            format!("12 (a) b (c)) S {between}{start} {end} 900 950 0")
        };
        assert_eq!(place(&stat(100, 120)), Some((100, 20)));
        assert_eq!(place(&stat(0, 0)), None);
        assert_eq!(place(&stat(100, 100)), None);
        assert_eq!(place("12 (a) S 1 2"), None);
    }

    #[test]
    fn a_command_line_fills_its_room_and_ends_in_a_nul() {
        let words = [b"distlock".as_slice(), b"launch", b"sh"];
        assert_eq!(fitted(&words, 20), b"distlock\0launch\0sh\0\0");
        assert_eq!(fitted(&words, 19), b"distlock\0launch\0sh\0");
        assert_eq!(fitted(&words, 12), b"distlock\0la\0");
        assert_eq!(fitted(&words, 1), b"\0");
    }
}
