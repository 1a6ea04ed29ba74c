//! In steady state a device allocates nothing: counted, not assumed.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{SocketAddr, UdpSocket};

use support::{Checksum, namespace, tun, udp};
use transom_device::memory::{MemoryConfig, MemoryLink, pair};
use transom_device::tun::Tun;
use transom_device::{Device, TxPacket};

thread_local! {
    /// Allocations by this thread; others, such as the test harness, do not disturb the count.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it is; counting touches a
// thread-local without a destructor and without lazy initialisation, which does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Sends bursts of eight, some short and some long, and receives them, every other time keeping the
/// latest buffer back for a while as a receive queue would.
fn exchange(send: &mut impl Device, mut receive: Option<&mut dyn Device>) {
    let long = [1; 1500];
    let mut kept = None;
    for round in 0..200 {
        for number in 0..8 {
            let packet = if number % 2 == 0 { &long[..] } else { &long[..40] };
            send.send(&TxPacket::whole(packet)).unwrap();
        }
        for _ in 0..8 {
            let receiver: &mut dyn Device = match &mut receive {
                Some(receiver) => *receiver,
                None => send,
            };
            let packet = receiver.recv().unwrap();
            let held = kept.replace(packet.buffer);
            if round % 2 == 0
                && let Some(buffer) = kept.take()
            {
                receiver.recycle(buffer);
            }
            if let Some(buffer) = held {
                receiver.recycle(buffer);
            }
        }
    }
    if let Some(buffer) = kept {
        match receive {
            Some(receiver) => receiver.recycle(buffer),
            None => send.recycle(buffer),
        }
    }
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new([1; 100])))), 1);
}

#[test]
fn a_memory_link_allocates_nothing_in_steady_state() {
    let mut link = MemoryLink::new(&MemoryConfig::default());
    exchange(&mut link, None);
    assert_eq!(allocations(|| exchange(&mut link, None)), 0);
}

#[test]
fn a_memory_pair_allocates_nothing_in_steady_state() {
    let (mut near, mut far) = pair(&MemoryConfig::with_offload()).unwrap();
    exchange(&mut near, Some(&mut far));
    assert_eq!(allocations(|| exchange(&mut near, Some(&mut far))), 0);
}

#[test]
fn tun_allocates_nothing_in_steady_state() {
    let Some(namespace) = namespace() else { return };
    let builder = Tun::builder().address("192.0.2.1/24".parse().unwrap());
    let Some(mut tun) = tun(&namespace, builder) else { return };
    let kernel: SocketAddr = "192.0.2.1:7".parse().unwrap();
    let ours: SocketAddr = "192.0.2.2:7".parse().unwrap();
    let socket = namespace.run(|| UdpSocket::bind(kernel)).unwrap().unwrap();
    let datagram = udp(ours, kernel, &[5; 1000], Checksum::Right);
    let mut round = |count: usize| {
        let mut received = 0;
        for _ in 0..count {
            tun.send(&TxPacket::whole(&datagram)).unwrap();
            let (length, from) = socket.recv_from(&mut [0; 1500]).unwrap();
            socket.send_to(&[6; 1000][..length], from).unwrap();
            while let Ok(packet) = tun.recv() {
                received += usize::from(packet.bytes().len() == 1028);
                tun.recycle(packet.buffer);
            }
        }
        received
    };
    assert_eq!(round(100), 100);
    let mut received = 0;
    assert_eq!(allocations(|| received = round(1000)), 0);
    assert_eq!(received, 1000);
}
