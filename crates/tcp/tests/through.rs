//! Writing and reading through a manipulation: whatever is lost, cut and joined on the way, the data is changed once, in order.

use crate::common;
use transom_tcp::Setting;

use common::world::{Path, World, lossy};
use common::{Peer, Setup, pattern, seg};
use transom_tcp::manipulation::{Manipulation, SwapWords, Xor};
use transom_tcp::{ReadError, State, WriteError};

/// Adds its place in the data to each byte, in units of so many bytes.
struct Placed {
    at: u64,
    unit: usize,
    back: bool,
}

impl Placed {
    fn new(unit: usize, back: bool) -> Self {
        Placed { at: 0, unit, back }
    }
}

impl Manipulation for Placed {
    fn unit(&self) -> usize {
        self.unit
    }

    fn change(&mut self, bytes: &mut [u8]) {
        assert_eq!(self.at % self.unit as u64, 0, "a piece begins within a unit");
        for byte in bytes {
            let place = (self.at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
            *byte = if self.back { byte.wrapping_sub(place) } else { byte.wrapping_add(place) };
            self.at += 1;
        }
    }
}

fn data(len: usize) -> Vec<u8> {
    (0..len as u64).map(pattern).collect()
}

/// Writes all of `data` through one manipulation at one end, and reads it through another at the other.
fn transfer(
    world: &mut World,
    there: &mut dyn Manipulation,
    back: &mut dyn Manipulation,
    seed: u64,
) {
    let data = data(100_003);
    let (mut written, mut read, mut steps) = (0, Vec::new(), 0);
    world.ends[0].foreign = true;
    world.ends[1].foreign = true;
    let mut out = vec![0; 9_000];
    loop {
        let most = there
            .unit()
            .max(world.path.random.below(20_000) as usize / there.unit() * there.unit());
        let peer = &mut world.ends[0];
        let end = (written + most).min(data.len());
        if written < data.len() {
            match peer.connection.write_through(peer.now, there, &data[written..end]) {
                Ok(n) => written += n,
                Err(error) => assert_eq!(error, WriteError::WouldBlock, "seed {seed}"),
            }
            peer.pump();
            if written == data.len() {
                peer.shutdown();
            }
        }
        world.collect(0);
        let most = back.unit() + world.path.random.below(8_000) as usize;
        let peer = &mut world.ends[1];
        match peer.connection.read_through(peer.now, back, &mut out[..most]) {
            Ok(0) => break,
            Ok(n) => read.extend_from_slice(&out[..n]),
            Err(error) => assert_eq!(error, ReadError::WouldBlock, "seed {seed}"),
        }
        peer.pump();
        world.collect(1);
        steps += 1;
        assert!(world.step() && steps < 100_000, "seed {seed}: {} of {written}", read.len());
    }
    assert!(read == data, "seed {seed}: the data is not what was written");
}

#[test]
fn over_a_path_that_loses_and_reorders() {
    let path = Path { loss: 30, duplicate: 10, late: 20, delay: 10_000, jitter: 3_000 };
    for seed in 0..12 {
        let unit = [1, 4, 16, 64][seed as usize % 4];
        let mut setup = Setup::default().receive_buffers(20_000, 65_535);
        if seed % 3 == 0 {
            setup.path.max_super_segment = Some(20_000);
        }
        let mut world = lossy([&setup, &setup], path, seed);
        let (mut there, mut back) = (Placed::new(unit, false), Placed::new(unit, true));
        transfer(&mut world, &mut there, &mut back, seed);
    }
    let setup = Setup::default();
    let mut world = lossy([&setup, &setup], path, 99);
    let xor = Xor::new([0x5b; 32]);
    transfer(&mut world, &mut (SwapWords, xor), &mut (xor, SwapWords), 99);
}

/// The changed bytes are kept: a retransmission is the same bytes, and the manipulation has not run again.
#[test]
fn a_retransmission_changes_nothing_again() {
    let mut peer = Setup::default().active();
    peer.foreign = true;
    let mut there = Placed::new(1, false);
    assert_eq!(peer.connection.write_through(peer.now, &mut there, &data(500)), Ok(500));
    peer.pump();
    let first = peer.drain().pop().expect("the data leaves").payload;
    let mut wanted = data(500);
    Placed::new(1, false).change(&mut wanted);
    assert_eq!(first, wanted);
    peer.next_timer();
    let again = peer.drain().pop().expect("the data leaves again").payload;
    assert_eq!(again, first);
    assert_eq!(there.at, 500);
}

#[test]
fn a_full_buffer_takes_whole_units() {
    let mut peer = small_buffer(2_058);
    peer.foreign = true;
    let mut there = Placed::new(16, false);
    assert_eq!(peer.connection.write_through(peer.now, &mut there, &data(4_000)), Ok(2_048));
    assert_eq!(there.at, 2_048, "no more is changed than is taken");
    // Ten bytes of room are no unit.
    let full = peer.connection.write_through(peer.now, &mut there, &data(4_000));
    assert_eq!(full, Err(WriteError::WouldBlock));
    // But they are enough for the end of the data.
    assert_eq!(peer.connection.write_through(peer.now, &mut there, &data(7)), Ok(7));
    assert_eq!(peer.connection.write_through(peer.now, &mut there, &[]), Ok(0));
}

fn small_buffer(bytes: usize) -> Peer {
    let mut peer = Setup::default().active();
    peer.connection.set(Setting::SendBuffer(bytes));
    peer
}

#[test]
fn a_reader_waits_for_a_whole_unit() {
    let mut peer = Setup::default().active();
    let mut back = Placed::new(4, false);
    let mut out = [0; 100];
    peer.recv(seg().bytes(&[1, 2, 3])).drain();
    let wait = Err(ReadError::WouldBlock);
    assert_eq!(peer.connection.read_through(peer.now, &mut back, &mut out), wait);
    peer.recv(seg().bytes(&[4, 5])).drain();
    assert_eq!(peer.connection.read_through(peer.now, &mut back, &mut out[..3]), wait);
    assert_eq!(peer.connection.read_through(peer.now, &mut back, &mut out), Ok(4));
    assert_eq!(peer.connection.read_through(peer.now, &mut back, &mut out), wait);
    assert_eq!(peer.connection.read_through(peer.now, &mut back, &mut []), Ok(0));
    // The stream's last byte is no unit, and comes at its end.
    peer.recv(seg().fin()).drain();
    assert_eq!(peer.state(), State::CloseWait);
    assert_eq!(peer.connection.read_through(peer.now, &mut back, &mut out), Ok(1));
    assert_eq!(peer.connection.read_through(peer.now, &mut back, &mut out), Ok(0));
}
