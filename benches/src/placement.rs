//! Which CPUs the two ends have.
//!
//! On one CPU both ends share it, and the total work of both counts. With a CPU for each end the slower end counts, as do
//! wake-ups from one CPU to the other. Left free, the kernel moves the ends together or apart as it sees fit: what
//! most programs get, and what varies most.

use rustix::io;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where the threads of a group run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All on one CPU.
    One,
    /// Wherever the kernel puts them.
    Free,
    /// Each end on a CPU of its own.
    Apart,
}

impl Placement {
    /// How reports call it.
    pub fn describe(self, cpus: usize) -> String {
        match self {
            Placement::One => "one CPU".into(),
            Placement::Free => format!("{cpus} CPUs"),
            Placement::Apart => "a CPU for each end".into(),
        }
    }
}

/// The CPUs this process had at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        match placement {
            Placement::Free => sched_setaffinity(None, &self.all),
            // The last one: the first gets most of the machine's interrupts.
            Placement::One | Placement::Apart => self.pin(self.in_order().next_back()),
        }
    }

    /// Places the calling thread, which is the other end's.
    ///
    /// # Errors
    /// The operating system's.
    pub fn place_peer(&self, placement: Placement) -> io::Result<()> {
        match placement {
            Placement::Free | Placement::One => self.place(placement),
            Placement::Apart => self.pin(self.in_order().next()),
        }
    }

    fn in_order(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..CpuSet::MAX_CPU).filter(|&cpu| self.all.is_set(cpu))
    }

    fn pin(&self, cpu: Option<usize>) -> io::Result<()> {
        let mut wanted = CpuSet::new();
        wanted.set(cpu.unwrap_or(0));
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
        cpus.place(Placement::Apart).unwrap();
        let here = sched_getaffinity(None).unwrap();
        let there = std::thread::scope(|scope| {
            let peer = scope.spawn(|| {
                cpus.place_peer(Placement::Apart).unwrap();
                sched_getaffinity(None).unwrap()
            });
            peer.join().unwrap()
        });
        assert_eq!((here.count(), there.count()), (1, 1));
        assert_eq!(here == there, cpus.count() == 1);
        cpus.place(Placement::Free).unwrap();
        assert_eq!(std::thread::spawn(count).join().unwrap(), cpus.count());
    }
}
