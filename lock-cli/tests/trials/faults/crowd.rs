//! Other processes of the machine.

use std::process::{Child, Command, Stdio};

/// Idle processes, which make every look at all processes slow. A drop ends them.
pub struct Crowd(Vec<Child>);

impl Crowd {
    pub fn gather(number: usize) -> Self {
        let one = || {
            let mut idle = Command::new("sleep");
            let idle = idle.arg("infinity").stdin(Stdio::null()).stdout(Stdio::null());
            idle.stderr(Stdio::null()).spawn().expect("one more process")
        };
        Self((0..number).map(|_| one()).collect())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // It may have been ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
