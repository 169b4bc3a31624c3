//! The clocks of a server.

mod patch;
mod vdso;

use std::{fs::OpenOptions, io, os::unix::fs::FileExt, time::Duration};

use self::vdso::Vdso;

/// The distance of a clock from the machine's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Shift {
    /// Rounded down, so that the nanoseconds are added.
    seconds: i64,
    nanos: u32,
}

impl Shift {
    /// The machine's own clock.
    pub const NONE: Self = Self { seconds: 0, nanos: 0 };

    /// A clock that is ahead of the machine's by so much.
    pub fn ahead(by: Duration) -> Self {
        Self { seconds: by.as_secs() as i64, nanos: by.subsec_nanos() }
    }

    /// A clock that is behind the machine's by so much.
    pub fn back(by: Duration) -> Self {
        let Self { seconds, nanos } = Self::ahead(by);
        match nanos {
            0 => Self { seconds: -seconds, nanos },
            _ => Self { seconds: -seconds - 1, nanos: 1_000_000_000 - nanos },
        }
    }
}

/// Sets the clocks of a process: it reads the kernel's time plus an offset from now on, and so do
/// the processes that it starts later. The process must be stopped, or it may see half a change.
///
/// Programs read clocks through the vDSO, code that the kernel maps into each process. Here a
/// process gets other code in its place: a write to that page changes only the process's own copy.
pub(crate) fn set(pid: u32, wall: Shift, monotonic: Shift) -> io::Result<()> {
    if !cfg!(target_arch = "x86_64") {
        let why = "the lab has machine code for x86_64 only";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
    let vdso = Vdso::of(pid, &memory)?;
    let offsets = patch::offsets(wall, monotonic);
    if let Some(code) = vdso.find(&patch::CODE) {
        return memory.write_all_at(&offsets, code - offsets.len() as u64);
    }
    let patch = [offsets, patch::CODE.to_vec()].concat();
    let at = vdso.room_for(patch.len())?;
    memory.write_all_at(&patch, at)?;
    for (name, entry) in patch::ENTRIES {
        let from = vdso.function(name)?;
        memory.write_all_at(&jump(from, at + entry as u64), from)?;
    }
    Ok(())
}

/// The instruction at `from` that jumps to `to`, close by.
fn jump(from: u64, to: u64) -> [u8; 5] {
    const LENGTH: u64 = 5;
    let distance = to.wrapping_sub(from + LENGTH) as i32;
    let [a, b, c, d] = distance.to_le_bytes();
    [0xe9, a, b, c, d]
}
