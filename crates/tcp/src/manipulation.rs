//! Manipulations of data that join the copy: integrated layer processing.
//!
//! A program that sends data often changes all of it first: it swaps bytes, or encrypts. TCP copies it, and sums it where the device does not. Each of
//! these alone loads and stores all of the data. Clark and Tennenhouse proposed one loop for all of them ("Architectural Considerations for a New
//! Generation of Protocols", SIGCOMM 1990). Braun and others built their TCP in user space for it ("An Experimental User Level Implementation of TCP",
//! INRIA RR-2650, sections 1 and 4.1).
//!
//! Theory of operation. A loop over single words, as in those days, would keep a cipher from using the processor's vectors. So here a pass goes
//! piece by piece. A piece of `PIECE` bytes is copied, changed and summed before the next one, while it is in the first-level cache. From there on each
//! step costs what it computes, and memory is loaded and stored once. [`pass`] is that loop. [`Connection::write_through`] and
//! [`Connection::read_through`] run it between a program's memory and the connection's buffers.
//!
//! A manipulation knows its place in the data: it is called for all of the data, in order, in pieces of any length. The results do not depend on the
//! pieces, which tests check.
//!
//! [`Connection::write_through`]: crate::connection::Connection::write_through
//! [`Connection::read_through`]: crate::connection::Connection::read_through
//!
//! # Example
//!
//! ```
//! use transom_tcp::manipulation::{Manipulation, SwapWords, Xor, pass};
//! use transom_wire::checksum::Sum;
//!
//! let from = *b"a message";
//! let mut to = [0; 9];
//! let sum = pass(&mut (SwapWords, Xor::new([7; 32])), &mut to, &from)?;
//! assert_eq!(sum, Sum::of(&to));
//! // The other way round they undo it.
//! let mut back = [0; 9];
//! pass(&mut (Xor::new([7; 32]), SwapWords), &mut back, &to)?;
//! assert_eq!(back, from);
//! # Ok::<(), transom_wire::Error>(())
//! ```

mod swap;
mod xor;

use transom_wire::Error;
use transom_wire::checksum::Sum;

pub use swap::SwapWords;
pub use xor::Xor;

/// The bytes of a piece: with its source, half of a first-level cache of 16 KB or more.
pub(crate) const PIECE: usize = 4096;

/// The largest [unit](Manipulation::unit) there may be, in bytes.
pub const MOST_UNIT: usize = 64;

/// A change of data, byte for byte as long as before.
///
/// It is called for consecutive pieces of the data, and may keep its place in it. All pieces but the last are whole [units](Self::unit).
pub trait Manipulation {
    /// The number of bytes that can only be changed together: a power of two, up to [`MOST_UNIT`]. Other numbers count as the next such power.
    fn unit(&self) -> usize {
        1
    }

    /// Changes the next bytes where they are.
    fn change(&mut self, bytes: &mut [u8]);

    /// Copies the next bytes and changes them. The two slices are of the same length; where they are not, the shorter one counts. A manipulation may
    /// do both in one loop; the default does one after the other.
    fn copy(&mut self, to: &mut [u8], from: &[u8]) {
        let len = to.len().min(from.len());
        if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
            to.copy_from_slice(from);
            self.change(to);
        }
    }
}

impl<M: Manipulation + ?Sized> Manipulation for &mut M {
    fn unit(&self) -> usize {
        (**self).unit()
    }

    fn change(&mut self, bytes: &mut [u8]) {
        (**self).change(bytes);
    }

    fn copy(&mut self, to: &mut [u8], from: &[u8]) {
        (**self).copy(to, from);
    }
}

/// One after the other on each piece.
impl<A: Manipulation, B: Manipulation> Manipulation for (A, B) {
    fn unit(&self) -> usize {
        unit_of(&self.0).max(unit_of(&self.1))
    }

    fn change(&mut self, bytes: &mut [u8]) {
        self.0.change(bytes);
        self.1.change(bytes);
    }

    fn copy(&mut self, to: &mut [u8], from: &[u8]) {
        let len = to.len().min(from.len());
        self.0.copy(to, from);
        if let Some(to) = to.get_mut(..len) {
            self.1.change(to);
        }
    }
}

/// No change: a plain copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unchanged;

impl Manipulation for Unchanged {
    fn change(&mut self, _bytes: &mut [u8]) {}
}

/// The unit as it counts.
pub(crate) fn unit_of<M: Manipulation + ?Sized>(manipulation: &M) -> usize {
    manipulation.unit().clamp(1, MOST_UNIT).next_power_of_two()
}

/// Copies `from` to the start of `to`, changes it, and returns the Internet checksum's sum (RFC 1071) of the changed bytes: all in one pass.
///
/// Several calls may follow each other with the same manipulation. All but the last one then need whole units.
///
/// # Errors
/// [`Error::BufferTooSmall`] if `to` is shorter than `from`; then nothing is copied.
pub fn pass<M: Manipulation + ?Sized>(
    manipulation: &mut M,
    to: &mut [u8],
    from: &[u8],
) -> Result<Sum, Error> {
    let to = to.get_mut(..from.len()).ok_or(Error::BufferTooSmall)?;
    let mut sum = Sum(0);
    for (to, from) in to.chunks_mut(PIECE).zip(from.chunks(PIECE)) {
        manipulation.copy(to, from);
        // All pieces but the last are of even length, so the sums just add up.
        sum += Sum::of(to);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests;
