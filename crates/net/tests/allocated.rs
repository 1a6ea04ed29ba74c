//! What the memory budget counts is what is allocated: readers of a file that stall hold no more than the host knows of.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use transom_device::memory::{MemoryConfig, pair};
use transom_net::Stack;

/// Bytes that the program holds.
static LIVE: AtomicI64 = AtomicI64::new(0);

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it is; counting adds to a number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CONNECTIONS: usize = 100;
/// For each connection: what both hosts remember of segments, and the unused part of received packets.
const OVERHEAD: i64 = 24 << 10;
/// Of the device and of free pieces of files, whatever the connections.
const COMMON: i64 = 6 << 20;

#[test]
fn stalled_readers_of_a_file_hold_what_is_counted() {
    let (a, b) = pair(&MemoryConfig::default()).unwrap();
    let start = |number: u8, device| {
        Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
    };
    let (a, b) = (start(1, a), start(2, b));
    let listener = b.listen("10.0.0.2:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![7; 4 << 20]).unwrap();
    let streams: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let stream = a.connect(address).unwrap();
            stream.set_nonblocking(true).unwrap();
            (stream, listener.accept().unwrap().0)
        })
        .collect();
    let before = LIVE.load(Ordering::Relaxed);
    let mut sent = vec![0; CONNECTIONS];
    // Until nobody has taken anything for a while.
    let mut quiet = 0;
    while quiet < 20 {
        let mut progress = 0;
        for ((stream, _), sent) in streams.iter().zip(&mut sent) {
            let now = stream.send_file(&file, *sent, (4 << 20) - *sent).unwrap_or(0);
            *sent += now;
            progress += now;
        }
        quiet = if progress == 0 { quiet + 1 } else { 0 };
        thread::sleep(Duration::from_millis(5));
    }
    let allocated = LIVE.load(Ordering::Relaxed) - before;
    let held = (a.memory().held + b.memory().held) as i64;
    println!(
        "{allocated} bytes are allocated, and {held} are counted: {} and {}",
        a.memory().held,
        b.memory().held
    );
    assert!(a.memory().held > CONNECTIONS * (16 << 10), "they are to stall");
    let most = held + CONNECTIONS as i64 * OVERHEAD + COMMON;
    assert!(allocated <= most, "{allocated} bytes are allocated, and {held} are counted");
}
