//! The socket, its rings, and the memory that is shared with the kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use xdp::nic::NicIndex;
use xdp::slab::{HeapSlab, Slab};
use xdp::socket::{PollTimeout, XdpSocket, XdpSocketBuilder};
use xdp::umem::{FrameSize, UmemCfgBuilder};
use xdp::{RingConfigBuilder, RxRing, Umem, WakableFillRing, WakableRings, WakableTxRing};

use super::XdpError;

/// Bytes of a frame: what the kernel leaves of 4096.
pub(super) const FRAME: usize = 4096 - 256;
/// How many frames each ring of the first queue holds, and of the others. There are four times as many.
const RING: u32 = 2048;
const OTHER_RING: u32 = 512;
/// So many frames are given to the kernel at once, when so many are missing.
const REFILL: usize = 64;

/// The rings. The socket is closed before the memory is given back.
pub(super) struct Rings {
    fill: WakableFillRing,
    receive: RxRing,
    completion: xdp::CompletionRing,
    transmit: WakableTxRing,
    socket: XdpSocket,
    fd: RawFd,
    arrived: HeapSlab,
    leaving: HeapSlab,
    missing: usize,
    /// How many frames each ring holds.
    size: usize,
    memory: Umem,
}

// SAFETY: the rings and packets point into memory that is mapped for the process, not for a thread, and that lives as long as this value. They are
// used through `&mut self` alone, by one thread at a time.
unsafe impl Send for Rings {}

/// How long a queue may stay busy, and when it is tried again.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

fn failed<E>(error: E) -> XdpError
where
    E: std::error::Error + Send + Sync + 'static,
{
    XdpError::Socket(Box::new(error))
}

/// Opens a socket that is on no interface.
pub(super) fn try_socket() -> Result<(), XdpError> {
    XdpSocketBuilder::new().map_err(failed)?;
    Ok(())
}

impl Rings {
    /// Opens a socket on a queue of the interface with this number.
    ///
    /// The kernel frees a queue some time after the socket on it was closed, and says "busy" until then.
    pub(super) fn open(index: u32, queue: u32) -> Result<Self, XdpError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Self::try_open(index, queue) {
                Err(error)
                    if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline =>
                {
                    std::thread::sleep(PAUSE);
                }
                outcome => return outcome,
            }
        }
    }

    fn try_open(index: u32, queue: u32) -> Result<Self, XdpError> {
        let size = if queue == 0 { RING } else { OTHER_RING };
        let config = UmemCfgBuilder {
            frame_size: FrameSize::FourK,
            frame_count: 4 * size,
            ..UmemCfgBuilder::default()
        };
        let memory = Umem::map(config.build().map_err(failed)?).map_err(failed)?;
        let mut builder = XdpSocketBuilder::new().map_err(failed)?;
        let rings = RingConfigBuilder {
            rx_count: size,
            tx_count: size,
            fill_count: size,
            completion_count: size,
        };
        let rings = rings.build().map_err(failed)?;
        let (rings, flags) = builder.build_wakable_rings(&memory, rings).map_err(failed)?;
        let WakableRings { fill_ring, rx_ring, completion_ring, tx_ring } = rings;
        let absent = || failed(io::Error::from(io::ErrorKind::InvalidData));
        let socket = builder.bind(NicIndex::new(index), queue, flags).map_err(failed)?;
        let mut rings = Rings {
            fill: fill_ring,
            receive: rx_ring.ok_or_else(absent)?,
            completion: completion_ring,
            transmit: tx_ring.ok_or_else(absent)?,
            fd: socket.raw_fd(),
            socket,
            arrived: HeapSlab::with_capacity(1),
            leaving: HeapSlab::with_capacity(REFILL),
            missing: size as usize,
            size: size as usize,
            memory,
        };
        rings.refill();
        Ok(rings)
    }

    /// Gives the kernel frames to be filled.
    fn refill(&mut self) {
        // SAFETY: the memory outlives the socket, which is closed first.
        let given = unsafe { self.fill.enqueue(&mut self.memory, self.missing, true) };
        // It takes the rest later.
        self.missing -= given.unwrap_or(0).min(self.missing);
    }

    /// Copies the next frame into `out`, and says how long it is; `None` if there is none.
    pub(super) fn receive(&mut self, out: &mut [u8]) -> Option<usize> {
        // SAFETY: the packet is freed below, so it does not outlive the memory.
        let count = unsafe { self.receive.recv(&self.memory, &mut self.arrived) };
        if count == 0 {
            if self.missing > 0 {
                self.refill();
            }
            return None;
        }
        let packet = self.arrived.pop_back()?;
        let length = packet.len().min(out.len());
        out[..length].copy_from_slice(&packet[..length]);
        self.memory.free_packet(packet);
        self.missing += 1;
        if self.missing >= REFILL {
            self.refill();
        }
        Some(length)
    }

    /// Puts a frame, in parts, into the ring.
    pub(super) fn send<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        if self.leaving.available() == 0 {
            self.flush();
        }
        self.completion.dequeue(&mut self.memory, self.size);
        // Frames for what arrives are never taken for what leaves.
        if self.leaving.available() == 0 || self.memory.allocatable() <= self.size {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // SAFETY: the packet goes into the ring of a socket that is closed before the memory is given back.
        let mut packet = unsafe { self.memory.alloc() }.ok_or(io::ErrorKind::WouldBlock)?;
        for part in parts {
            if packet.append(part).is_err() {
                self.memory.free_packet(packet);
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
        self.leaving.push_front(packet);
        Ok(())
    }

    /// Has the kernel send what is in the ring.
    pub(super) fn flush(&mut self) {
        if self.leaving.is_empty() {
            return;
        }
        // A few rounds: the kernel takes a number of frames at a time, and says that there are more.
        for _ in 0..64 {
            // SAFETY: the memory outlives the socket.
            let sent = unsafe { self.transmit.send(&mut self.leaving, true) };
            self.completion.dequeue(&mut self.memory, self.size);
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wake(),
                _ if self.leaving.is_empty() => return,
                _ => {}
            }
        }
    }

    /// Has the kernel go on where it stopped.
    fn wake(&mut self) {
        // Polling a socket in this mode sends what is in its ring.
        let _ = self.socket.poll_write(PollTimeout::new(Some(std::time::Duration::ZERO)));
    }

    pub(super) fn raw_fd(&self) -> RawFd {
        self.fd
    }
}

impl AsFd for Rings {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket owns the descriptor and is not closed while this value is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }
}
