//! A reader of a ring of records that tells the programs in the kernel when it sleeps.

use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use libbpf_rs::{AsRawLibbpf, MapHandle, RingBuffer, libbpf_sys};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

use crate::BpfError;

/// Waits for the records of one ring. Before it sleeps it writes one into a word that it shares with the programs (a map of one value of eight bytes,
/// `BPF_F_MMAPABLE`). A program that has reserved a record exchanges the word for zero, and wakes the reader only if it was one. So a reader that is awake costs no
/// interrupt.
#[derive(Debug)]
pub struct Sleep {
    word: NonNull<AtomicU64>,
}

// SAFETY: the word is an atomic in memory that lives as long as this value, and belongs to no thread.
unsafe impl Send for Sleep {}

impl Sleep {
    /// Shares the word in this map.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn new(map: &MapHandle) -> Result<Self, BpfError> {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses the address.
        let at = unsafe { mmap(ptr::null_mut(), page_size(), prot, flags, map.as_fd(), 0) };
        let at = at.map_err(|error| {
            BpfError::system("cannot share memory with the programs", error.into())
        })?;
        let word = NonNull::new(at.cast()).ok_or_else(|| BpfError::missing("shared memory"))?;
        Ok(Sleep { word })
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped until this value is dropped, and has zeros at first. The programs change the word by atomic instructions only.
        unsafe { self.word.as_ref() }
    }

    /// Gives the records that are there to the ring's callback. Without any it sleeps until the programs wake it, or for `most`. It may return early and without records.
    ///
    /// # Errors
    /// The kernel's refusal. A signal is none.
    pub fn wait(&self, ring: &RingBuffer<'_>, most: Duration) -> Result<(), BpfError> {
        // 0: no records.
        let mut outcome = ring.consume_raw();
        if outcome == 0 {
            // A full barrier: a record that is not seen below is reserved later, and its program sees the word.
            self.word().swap(1, Ordering::SeqCst);
            if !has_records(ring) {
                outcome = ring.poll_raw(most);
            }
            self.word().store(0, Ordering::Relaxed);
            if outcome == 0 {
                // The others, which wake nobody.
                outcome = ring.consume_raw();
            }
        }
        // EINTR (4): a signal came in between.
        if outcome < 0 && outcome != -4 {
            return Err(BpfError::system(
                "cannot read the ring",
                std::io::Error::from_raw_os_error(-outcome),
            ));
        }
        Ok(())
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // SAFETY: it is the page that was mapped, and nobody has a reference into it.
        let _ = unsafe { munmap(self.word.as_ptr().cast(), page_size()) };
    }
}

/// Whether the ring has a record, also one that a program has only reserved.
fn has_records(ring: &RingBuffer<'_>) -> bool {
    // SAFETY: the ring lives as long as the reference, and has at least one map.
    unsafe {
        let first = libbpf_sys::ring_buffer__ring(ring.as_libbpf_object().as_ptr(), 0);
        !first.is_null() && libbpf_sys::ring__avail_data_size(first) > 0
    }
}
