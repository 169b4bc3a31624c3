//! The vDSO of a process: a small ELF library that the kernel maps.

use std::{fs, fs::File, io, os::unix::fs::FileExt};

/// The type of the section with a library's symbols.
const SYMBOLS: u32 = 11;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// New code starts at a multiple of this number.
const ALIGN: usize = 64;

pub(super) struct Vdso {
    start: u64,
    image: Vec<u8>,
}

impl Vdso {
    pub(super) fn of(pid: u32, memory: &File) -> io::Result<Self> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let (start, end) = maps.lines().find_map(range).ok_or_else(|| odd("there is no vDSO"))?;
        let mut image = vec![0; (end - start) as usize];
        memory.read_exact_at(&mut image, start)?;
        Ok(Self { start, image })
    }

    pub(super) fn function(&self, name: &str) -> io::Result<u64> {
        let offset = self.symbol(name).ok_or_else(|| odd(format!("the vDSO has no {name}")))?;
        Ok(self.start + offset)
    }

    /// Returns the address of this code, if it was written to the image before.
    pub(super) fn find(&self, code: &[u8]) -> Option<u64> {
        let at = self.image.windows(code.len()).position(|bytes| bytes == code)?;
        Some(self.start + at as u64)
    }

    /// Returns an address with this many unused bytes: the image ends in zeros.
    pub(super) fn room_for(&self, bytes: usize) -> io::Result<u64> {
        let used = self.image.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let at = used.next_multiple_of(ALIGN);
        match at + bytes <= self.image.len() {
            true => Ok(self.start + at as u64),
            false => Err(odd("the vDSO has no room")),
        }
    }

    fn symbol(&self, name: &str) -> Option<u64> {
        let (first, count) = (self.number::<8>(0x28)?, self.number::<2>(0x3c)?);
        let section = |index: u64| (first + index * SECTION as u64) as usize;
        let is_symbols = |at: &usize| self.number::<4>(at + 4) == Some(SYMBOLS.into());
        let symbols = (0..count).map(section).find(is_symbols)?;
        let names = self.number::<8>(section(self.number::<4>(symbols + 40)?) + 24)?;
        let (start, size) = (self.number::<8>(symbols + 24)?, self.number::<8>(symbols + 32)?);
        let all = (start as usize..(start + size) as usize).step_by(SYMBOL);
        let mut found = all.filter(|at| self.is_named(*at, names, name) == Some(true));
        self.number::<8>(found.next()? + 8)
    }

    fn is_named(&self, symbol: usize, names: u64, name: &str) -> Option<bool> {
        let start = (names + self.number::<4>(symbol)?) as usize;
        let text = self.image.get(start..start + name.len() + 1)?;
        Some(text.strip_suffix(&[0]) == Some(name.as_bytes()))
    }

    fn number<const N: usize>(&self, at: usize) -> Option<u64> {
        let bytes = self.image.get(at..at + N)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// Reads one line of a process's maps, if it is the vDSO's.
fn range(line: &str) -> Option<(u64, u64)> {
    let (range, _) = line.strip_suffix("[vdso]")?.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

fn odd(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what.into())
}
