//! A path between the host and its neighbour on which packets take time, or are lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use transom_device::FrameSocket;
use transom_device::namespace::Namespace;

use super::Net;

/// Carries frames between two interfaces until it is dropped.
pub(crate) struct Path {
    end: Arc<AtomicBool>,
    lossy: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    _between: Namespace,
}

impl Path {
    pub(crate) fn join(net: &Net, delay: Duration) -> Self {
        let between = Namespace::new().unwrap();
        net.host.add_veth("eth0", &between, "left").unwrap();
        between.add_veth("right", &net.peer, "eth0").unwrap();
        let open = |name: &str| {
            between.interfaces().set_up(name, true).unwrap();
            // Its kernel has nothing to say.
            between.set_sysctl(&format!("net.ipv6.conf.{name}.disable_ipv6"), "1").unwrap();
            let index = between.interfaces().state(name).unwrap().index;
            between.run(|| FrameSocket::open(index)).unwrap().unwrap()
        };
        let sockets = [open("left"), open("right")];
        let (end, lossy) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (ends, loses) = (Arc::clone(&end), Arc::clone(&lossy));
        let carry = move || {
            let mut queue: VecDeque<(Instant, usize, Vec<u8>)> = VecDeque::new();
            let mut buffer = vec![0; FrameSocket::MAX_LEN];
            while !ends.load(Ordering::Relaxed) {
                for (from, socket) in sockets.iter().enumerate() {
                    while let Ok(Some(length)) = socket.receive(&mut buffer) {
                        if !loses.load(Ordering::Relaxed) {
                            let due = Instant::now() + delay;
                            queue.push_back((due, 1 - from, buffer[..length].to_vec()));
                        }
                    }
                }
                while queue.front().is_some_and(|(due, ..)| *due <= Instant::now()) {
                    let Some((_, to, frame)) = queue.pop_front() else { break };
                    // What the kernel does not take is lost, as anywhere.
                    let _ = sockets[to].send(&frame);
                }
                std::thread::sleep(Duration::from_micros(500));
            }
        };
        let thread = Some(std::thread::spawn(carry));
        Path { end, lossy, thread, _between: between }
    }

    /// Whether all packets are lost from now on.
    pub(crate) fn lose(&self, all: bool) {
        self.lossy.store(all, Ordering::Relaxed);
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
