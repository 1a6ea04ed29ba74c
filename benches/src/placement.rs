//! Which CPUs the two ends have.
//!
//! On one CPU both ends share it, and the total work of both counts. With two, each end has its own, and the slower end
//! counts, as do wake-ups from one CPU to the other. Both are what somebody's machine looks like, so both are measured.

use rustix::io;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where the threads of a group run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All on one CPU.
    One,
    /// Wherever the kernel puts them.
    Free,
}

impl Placement {
    /// How reports call it.
    pub fn describe(self, cpus: usize) -> String {
        match self {
            Placement::One => "one CPU".into(),
            Placement::Free => format!("{cpus} CPUs"),
        }
    }
}

/// The CPUs this process had at the start.
#[derive(Clone, Debug)]
pub struct Cpus {
    all: CpuSet,
}

impl Cpus {
    /// Reads the calling thread's CPUs.
    ///
    /// # Errors
    /// The operating system's.
    pub fn detect() -> io::Result<Self> {
        Ok(Cpus { all: sched_getaffinity(None)? })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.count() as usize
    }

    /// Places the calling thread and those that it starts from now on.
    ///
    /// # Errors
    /// The operating system's.
    pub fn place(&self, placement: Placement) -> io::Result<()> {
        let mut wanted = self.all;
        if placement == Placement::One {
            // The last one: the first gets most of the machine's interrupts.
            let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| self.all.is_set(cpu));
            wanted.clear();
            wanted.set(last.unwrap_or(0));
        }
        sched_setaffinity(None, &wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_inherit_the_placement() {
        let cpus = Cpus::detect().unwrap();
        let count = || sched_getaffinity(None).unwrap().count() as usize;
        cpus.place(Placement::One).unwrap();
        assert_eq!(std::thread::spawn(count).join().unwrap(), 1);
        cpus.place(Placement::Free).unwrap();
        assert_eq!(std::thread::spawn(count).join().unwrap(), cpus.count());
    }
}
