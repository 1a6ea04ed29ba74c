//! Memory that pieces of files pass through. What was acknowledged is used for the next pieces: the kernel would clear each new page first.

use crate::sync::{Arc, Mutex, PoisonError};
use bytes::Bytes;
use std::io;

/// A file is read in pieces of this size, each a block of the send buffer. A block that is kept counts as a block of memory, so it must not keep more.
pub(crate) const PIECE: usize = transom_tcp::BLOCK;
/// So many pieces that nobody needs are kept at most.
const KEPT: usize = 64;

/// The pieces of a host that are free.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileMemory(Arc<Mutex<Vec<Box<[u8]>>>>);

/// A piece that goes back when nobody uses it any more.
struct Lent {
    memory: Option<Box<[u8]>>,
    used: usize,
    from: FileMemory,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.memory.as_deref().and_then(|memory| memory.get(..self.used)).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            let mut free = self.from.0.lock().unwrap_or_else(PoisonError::into_inner);
            if free.len() < KEPT {
                free.push(memory);
            }
        }
    }
}

impl FileMemory {
    /// Has `read` fill the front of a piece, and gives what it has filled.
    pub(crate) fn fill(
        &self,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Bytes> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let memory = free.unwrap_or_else(|| vec![0; PIECE].into());
        let mut lent = Lent { memory: Some(memory), used: 0, from: self.clone() };
        lent.used = read(lent.memory.as_deref_mut().unwrap_or_default())?;
        Ok(Bytes::from_owner(lent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_nobody_has_it() {
        let memory = FileMemory::default();
        let fill = |byte: u8, len: usize| {
            memory.fill(|piece| {
                piece[..len].fill(byte);
                Ok(len)
            })
        };
        let first = fill(1, 10).unwrap();
        let half = first.slice(5..);
        let at = first.as_ptr();
        drop(first);
        let second = fill(2, 20).unwrap();
        assert_ne!(second.as_ptr(), at);
        assert_eq!(&half[..], [1; 5]);
        drop(half);
        let third = fill(3, 4).unwrap();
        assert_eq!((third.as_ptr(), &third[..]), (at, &[3; 4][..]));
        // An error costs no memory.
        memory.fill(|_| Err(io::ErrorKind::Other.into())).unwrap_err();
        drop(second);
        let all: Vec<_> = (0..100).map(|n| fill(n, PIECE).unwrap()).collect();
        drop(all);
        assert_eq!(memory.0.lock().unwrap().len(), KEPT);
    }
}
