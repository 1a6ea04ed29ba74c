//! Integrated layer processing: copy, change and checksum of data in one pass, beside a pass for each.
//!
//! *Separate* copies all of a buffer, then changes all of it, then sums all of it, as layers do that know nothing of each other. The cipher and its
//! authenticator are two passes. *One pass* does the same piece by piece (`transom_tcp::manipulation::pass`), which is what
//! `TcpStream::write_through` does with data on its way into the send buffer. Both end with the same bytes and the same sum; the sample checks the sum.
//!
//! The buffers have 4 KB and 64 KB, which the caches hold, and 64 MB, which they do not. There is a source and a destination of that size. The rate is by
//! CPU time.

use super::Settings;
use crate::clock::thread_time;
use crate::harness::{Bound, Case, Group, Unit};
use crate::sealing::Sealing;
use anyhow::ensure;
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};
use transom_tcp::manipulation::{Manipulation, SwapWords, Unchanged, Xor, pass};
use transom_wire::checksum::Sum;

const KEY: [u8; 32] = [0x5a; 32];
/// At least so many bytes between two looks at the clock.
const TURN: usize = 1 << 20;

/// The change of the data.
#[derive(Clone, Copy)]
enum Change {
    Nothing,
    Swap,
    Xor,
    Seal,
}

/// A source and a destination.
struct Buffers {
    from: Vec<u8>,
    to: Vec<u8>,
    /// Records that were sealed, of which each needs a nonce of its own.
    records: u64,
}

impl Buffers {
    fn new(size: usize) -> Rc<RefCell<Self>> {
        let from = (0..size).map(|at| (at.wrapping_mul(31) >> 3) as u8).collect();
        Rc::new(RefCell::new(Buffers { from, to: vec![0; size], records: 0 }))
    }

    fn sealing(&mut self) -> Sealing {
        self.records += 1;
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.records.to_le_bytes());
        Sealing::new(&KEY, &nonce)
    }

    /// A pass for each.
    fn separate(&mut self, change: Change) -> Sum {
        self.to.copy_from_slice(&self.from);
        black_box(&mut self.to);
        match change {
            Change::Nothing => {}
            Change::Swap => SwapWords.change(&mut self.to),
            Change::Xor => Xor::new(KEY).change(&mut self.to),
            Change::Seal => {
                let mut sealing = self.sealing();
                sealing.encrypt(&mut self.to);
                black_box(&mut self.to);
                sealing.authenticate(&self.to);
                black_box(sealing.tag());
            }
        }
        black_box(&mut self.to);
        Sum::of(&self.to)
    }

    /// All in one.
    fn fused(&mut self, change: Change) -> Result<Sum, transom_wire::Error> {
        if let Change::Seal = change {
            let mut sealing = self.sealing();
            let sum = pass(&mut sealing, &mut self.to, &self.from);
            black_box(sealing.tag());
            return sum;
        }
        let Buffers { from, to, .. } = self;
        match change {
            Change::Swap => pass(&mut SwapWords, to, from),
            Change::Xor => pass(&mut Xor::new(KEY), to, from),
            Change::Nothing | Change::Seal => pass(&mut Unchanged, to, from),
        }
    }
}

fn sample(
    buffers: &RefCell<Buffers>,
    change: Change,
    fused: bool,
    span: Duration,
) -> anyhow::Result<f64> {
    let buffers = &mut *buffers.borrow_mut();
    let size = buffers.from.len();
    let rounds = TURN.div_ceil(size);
    let (start, started, mut bytes) = (Instant::now(), thread_time(), 0);
    let mut sum = Sum(0);
    while start.elapsed() < span {
        for _ in 0..rounds {
            sum = if fused { buffers.fused(change)? } else { buffers.separate(change) };
            black_box(sum);
        }
        bytes += rounds * size;
    }
    let elapsed = thread_time() - started;
    ensure!(sum == Sum::of(&buffers.to), "the sum is not that of the bytes");
    Ok(bytes as f64 / elapsed.as_secs_f64() / 1e9)
}

/// Names of the case with separate passes and of that with one, by size and change.
type Names = [(&'static str, &'static str); 4];

const SIZES: [(usize, Names); 3] = [
    (
        4 << 10,
        [
            ("4 KB, copy, separate", "4 KB, copy, one pass"),
            ("4 KB, words swapped, separate", "4 KB, words swapped, one pass"),
            ("4 KB, xor, separate", "4 KB, xor, one pass"),
            ("4 KB, ChaCha20-Poly1305, separate", "4 KB, ChaCha20-Poly1305, one pass"),
        ],
    ),
    (
        64 << 10,
        [
            ("64 KB, copy, separate", "64 KB, copy, one pass"),
            ("64 KB, words swapped, separate", "64 KB, words swapped, one pass"),
            ("64 KB, xor, separate", "64 KB, xor, one pass"),
            ("64 KB, ChaCha20-Poly1305, separate", "64 KB, ChaCha20-Poly1305, one pass"),
        ],
    ),
    (
        64 << 20,
        [
            ("64 MB, copy, separate", "64 MB, copy, one pass"),
            ("64 MB, words swapped, separate", "64 MB, words swapped, one pass"),
            ("64 MB, xor, separate", "64 MB, xor, one pass"),
            ("64 MB, ChaCha20-Poly1305, separate", "64 MB, ChaCha20-Poly1305, one pass"),
        ],
    ),
];

/// Builds the group.
///
/// # Errors
/// None so far.
pub fn build(_settings: Settings) -> anyhow::Result<Group> {
    let mut cases = Vec::new();
    for (size, names) in SIZES {
        let buffers = Buffers::new(size);
        let changes = [Change::Nothing, Change::Swap, Change::Xor, Change::Seal];
        for (change, (separate, fused)) in changes.into_iter().zip(names) {
            let case = |name, is_fused| {
                let buffers = buffers.clone();
                Case::new(name, move |span| sample(&buffers, change, is_fused, span))
            };
            cases.push(case(separate, false));
            cases.push(case(fused, true).figure(separate, Bound::AtLeast(1.0)));
        }
    }
    Ok(Group::new(Unit::GigabytesPerSecond, cases))
}
