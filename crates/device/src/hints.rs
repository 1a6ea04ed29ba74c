//! Hints about memory for the processor and the kernel. They change nothing but speed.

use std::io;
use std::ops::Range;

/// Asks the processor for the cache lines at these addresses, whatever is there; `None` where this is not known how to.
pub const PREFETCH: Option<fn(&[usize])> =
    if cfg!(target_arch = "x86_64") { Some(prefetch) } else { None };

#[cfg(target_arch = "x86_64")]
fn prefetch(addresses: &[usize]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for address in addresses.iter().filter(|address| **address != 0) {
        // SAFETY: it is a hint; an address at which nothing is makes no fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(*address as *const i8) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn prefetch(_addresses: &[usize]) {}

/// `MADV_COLLAPSE` (madvise(2), Linux 6.1): makes huge pages of what is there already, at once.
const COLLAPSE: libc::c_int = 25;

/// Asks the kernel to keep the whole pages of a range in huge pages: large tables that are read anywhere then need no walk through
/// page tables for each access. Takes as long as copying them. Before Linux 6.1 it happens by and by.
///
/// # Errors
/// The kernel's: it has no huge pages, or none to spare. Nothing has changed then.
pub fn prefer_huge_pages(range: Range<usize>) -> io::Result<()> {
    let page = page_size();
    let (start, end) = (range.start.next_multiple_of(page), range.end / page * page);
    if start >= end {
        return Ok(());
    }
    let mut result = Ok(());
    for advice in [libc::MADV_HUGEPAGE, COLLAPSE] {
        // SAFETY: both leave the contents of memory and the right to access it as they are, whoever it belongs to.
        if unsafe { libc::madvise(start as *mut libc::c_void, end - start, advice) } != 0 {
            result = Err(io::Error::last_os_error());
        }
    }
    result
}

/// The size of a page.
fn page_size() -> usize {
    // SAFETY: it only asks.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_change_nothing() {
        let memory = vec![0x5au8; 8 << 20];
        let start = memory.as_ptr().addr();
        // Without huge pages it says so.
        let asked = prefer_huge_pages(start..start + memory.len());
        eprintln!("{asked:?}");
        assert!(memory.iter().all(|byte| *byte == 0x5a));
        // Less than a page, and nothing.
        prefer_huge_pages(start + 1..start + 2).unwrap();
        prefer_huge_pages(0..0).unwrap();
        if let Some(prefetch) = PREFETCH {
            prefetch(&[0, start, usize::MAX]);
        }
    }
}
