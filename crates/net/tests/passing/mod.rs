//! Two hosts, and a thread that passes packets between them: it can lose them, or say that the second host cannot be reached.
#![allow(dead_code, unreachable_pub)] // Not every test uses everything.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;
use transom_device::memory::{MemoryConfig, MemoryDevice, pair};
use transom_device::{Device, TxPacket};
use transom_net::{Profile, Stack, TcpStream};
use transom_tcp::time::Duration as Span;
use transom_tcp::{Rfc6298Config, TimerChoice};
use transom_wire::offload::TxOffload;
use transom_wire::{IcmpMessage, IpPacket, UnreachableCode};

/// Long enough for everything that is expected to happen.
pub const SOON: Duration = Duration::from_secs(20);

/// What becomes of the packets of the first host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    #[default]
    Passed,
    Lost,
    /// A router says that the second host cannot be reached.
    Unreachable,
}

#[derive(Default)]
struct State {
    fate: Fate,
    /// What the first host has sent.
    seen: Vec<Vec<u8>>,
    over: bool,
}

pub struct Network {
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    pub fn set(&self, fate: Fate) {
        self.state.lock().unwrap().fate = fate;
    }

    /// The packets that the first host has sent since the last call.
    pub fn seen(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.state.lock().unwrap().seen)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.state.lock().unwrap().over = true;
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Attempts to connect are given up after a fraction of a second.
pub fn hasty() -> Profile {
    let span = Span::from_millis;
    let timer =
        Rfc6298Config::default().with_initial(span(50)).with_min(span(50)).with_max(span(200));
    Profile::classic().with_timer(TimerChoice::Rfc6298(timer)).with_syn_r2(3).with_r2(Some(5))
}

/// Two hosts and the network between them. The first has a second address, 10.0.0.3.
pub fn hosts(profile: &Profile) -> (Stack, Stack, Network) {
    let (a, near) = pair(&MemoryConfig::default()).unwrap();
    let (far, b) = pair(&MemoryConfig::default()).unwrap();
    let start = |numbers: &[u8], device: MemoryDevice| {
        let builder = Stack::builder().profile(profile.clone());
        let with = |builder: transom_net::StackBuilder, &number: &u8| {
            builder.address([10, 0, 0, number].into(), 24)
        };
        numbers.iter().fold(builder, with).start(device).unwrap()
    };
    let state = Arc::new(Mutex::new(State::default()));
    let shared = Arc::clone(&state);
    let thread = Some(spawn(move || pass(near, far, &shared)));
    (start(&[1, 3], a), start(&[2], b), Network { state, thread })
}

/// Passes packets on, or does with those of the first host what is wanted.
fn pass(mut near: MemoryDevice, mut far: MemoryDevice, state: &Mutex<State>) {
    let send = |device: &mut MemoryDevice, bytes: &[u8]| {
        let packet =
            TxPacket { headers: bytes, payload: [&[], &[]], offload: TxOffload::default() };
        let _ = device.send(&packet);
    };
    while !state.lock().unwrap().over {
        while let Ok(packet) = near.recv() {
            let bytes = packet.buffer[packet.range.clone()].to_vec();
            near.recycle(packet.buffer);
            let fate = {
                let mut state = state.lock().unwrap();
                state.seen.push(bytes.clone());
                state.fate
            };
            match fate {
                Fate::Passed => send(&mut far, &bytes),
                Fate::Lost => {}
                Fate::Unreachable => {
                    if let Some(answer) = unreachable(&bytes) {
                        send(&mut near, &answer);
                    }
                }
            }
        }
        while let Ok(packet) = far.recv() {
            let bytes = packet.buffer[packet.range.clone()].to_vec();
            far.recycle(packet.buffer);
            send(&mut near, &bytes);
        }
        let fds = [near.poll_fd().unwrap(), far.poll_fd().unwrap()];
        let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 }));
    }
}

/// What a router answers.
fn unreachable(bytes: &[u8]) -> Option<Vec<u8>> {
    let offending = IpPacket::parse(bytes).unwrap();
    if offending.src().is_ipv6() {
        return None;
    }
    let quoted = &bytes[..bytes.len().min(28)];
    let message = IcmpMessage::Unreachable { code: UnreachableCode::Host, quoted };
    let router = IpAddr::from([10, 0, 0, 254]);
    let mut answer = vec![0; message.packet_len(router)];
    message.emit_packet(router, offending.src(), &mut answer).unwrap();
    Some(answer)
}

/// A connection from the first host to the second. Dropping either end resets it.
pub fn connected(a: &Stack, b: &Stack) -> (TcpStream, TcpStream) {
    let listener = b.listen("10.0.0.2:80").unwrap();
    let ours = a.connect("10.0.0.2:80").unwrap();
    let theirs = listener.accept().unwrap().0;
    for stream in [&ours, &theirs] {
        stream.set_linger(Some(Duration::ZERO)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
    }
    (ours, theirs)
}
