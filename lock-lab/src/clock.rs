//! The clocks of a server.

mod patch;
mod vdso;

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    time::Duration,
};

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

/// The clocks of one process, which read the kernel's time plus an offset.
///
/// Programs read clocks through the vDSO, code that the kernel maps into each process. Here a
/// process gets other code in its place: a write to that page changes only the process's own copy.
#[derive(Debug)]
pub(crate) struct Clocks {
    memory: File,
    at: u64,
}

impl Clocks {
    /// Replaces the functions of a process. Call once per process, while it is stopped.
    pub(crate) fn take(pid: u32) -> io::Result<Self> {
        if !cfg!(target_arch = "x86_64") {
            let why = "the lab has machine code for x86_64 only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        let vdso = Vdso::of(pid, &memory)?;
        let patch = [patch::offsets(Shift::NONE, Shift::NONE), patch::CODE.to_vec()].concat();
        let at = vdso.room_for(patch.len())?;
        memory.write_all_at(&patch, at)?;
        for (name, entry) in patch::ENTRIES {
            let from = vdso.function(name)?;
            memory.write_all_at(&jump(from, at + entry as u64), from)?;
        }
        Ok(Self { memory, at })
    }

    /// Sets both clocks. The process must be stopped, or it may see half a change.
    pub(crate) fn set(&self, wall: Shift, monotonic: Shift) -> io::Result<()> {
        self.memory.write_all_at(&patch::offsets(wall, monotonic), self.at)
    }
}

/// The instruction at `from` that jumps to `to`, close by.
fn jump(from: u64, to: u64) -> [u8; 5] {
    const LENGTH: u64 = 5;
    let distance = to.wrapping_sub(from + LENGTH) as i32;
    let [a, b, c, d] = distance.to_le_bytes();
    [0xe9, a, b, c, d]
}
