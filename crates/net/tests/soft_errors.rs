//! What the network reports of a connection's packets, as a program sees it (RFC 9293 section 3.9.2.2).
//!
//! A thread passes packets between two hosts, and says that the second cannot be reached whenever a test wants it to.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;
use transom_device::memory::{MemoryConfig, MemoryDevice, pair};
use transom_device::{Device, TxPacket};
use transom_net::{Profile, Stack, TcpStream};
use transom_tcp::connection::IcmpError;
use transom_tcp::profile::TimerChoice;
use transom_tcp::rto::rfc6298::Rfc6298Config;
use transom_tcp::time::Duration as Span;
use transom_wire::icmp::{self, IcmpMessage, UnreachableCode};
use transom_wire::ipv4::Ipv4Header;
use transom_wire::offload::TxOffload;
use transom_wire::{IpPacket, Protocol};

/// Long enough for everything that is expected to happen.
const SOON: Duration = Duration::from_secs(20);

struct Network {
    unreachable: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Network {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Two hosts and the network between them. Attempts to connect are given up after a fraction of a second.
fn hosts() -> (Stack, Stack, Network) {
    let (a, near) = pair(&MemoryConfig::default()).unwrap();
    let (far, b) = pair(&MemoryConfig::default()).unwrap();
    let start = |number: u8, device: MemoryDevice| {
        let span = Span::from_millis;
        let timer = Rfc6298Config {
            initial: span(50),
            min: span(50),
            max: span(200),
            ..Default::default()
        };
        let profile = Profile {
            timer: TimerChoice::Rfc6298(timer),
            syn_r2: 3,
            r2: Some(5),
            ..Profile::classic()
        };
        let builder = Stack::builder().address([10, 0, 0, number].into(), 24);
        builder.profile(profile).start(device).unwrap()
    };
    let (unreachable, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let flags = (Arc::clone(&unreachable), Arc::clone(&over));
    let thread = Some(spawn(move || pass(near, far, &flags.0, &flags.1)));
    (start(1, a), start(2, b), Network { unreachable, over, thread })
}

/// Passes packets on, or answers those of the first host.
fn pass(
    mut near: MemoryDevice,
    mut far: MemoryDevice,
    unreachable: &AtomicBool,
    over: &AtomicBool,
) {
    let send = |device: &mut MemoryDevice, bytes: &[u8]| {
        let packet =
            TxPacket { headers: bytes, payload: [&[], &[]], offload: TxOffload::default() };
        let _ = device.send(&packet);
    };
    while !over.load(Ordering::SeqCst) {
        while let Ok(packet) = near.recv() {
            let bytes = packet.buffer.bytes()[packet.range.clone()].to_vec();
            near.recycle(packet.buffer);
            if !unreachable.load(Ordering::SeqCst) {
                send(&mut far, &bytes);
                continue;
            }
            let IpPacket::V4(offending) = IpPacket::parse(&bytes).unwrap() else { continue };
            let quoted = &bytes[..bytes.len().min(28)];
            let message = IcmpMessage::Unreachable { code: UnreachableCode::Host, quoted };
            let router = [10, 0, 0, 254].into();
            let header = Ipv4Header::new(router, offending.src(), Protocol::ICMP);
            let mut answer = vec![0; 20 + message.encoded_len()];
            icmp::emit_packet(&header, &message, &mut answer).unwrap();
            send(&mut near, &answer);
        }
        while let Ok(packet) = far.recv() {
            let bytes = packet.buffer.bytes()[packet.range.clone()].to_vec();
            far.recycle(packet.buffer);
            send(&mut near, &bytes);
        }
        let fds = [near.poll_fd().unwrap(), far.poll_fd().unwrap()];
        let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 }));
    }
}

fn connected(a: &Stack, b: &Stack) -> (TcpStream, TcpStream) {
    let listener = b.listen("10.0.0.2:80").unwrap();
    let ours = a.connect("10.0.0.2:80").unwrap();
    let theirs = listener.accept().unwrap().0;
    for stream in [&ours, &theirs] {
        stream.set_linger(Some(Duration::ZERO)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
    }
    (ours, theirs)
}

/// [SHLD-25] The attempt goes on, as the report may be forged, and ends with what was reported.
#[test]
fn an_attempt_to_connect_ends_with_what_the_network_said() {
    let (a, _b, network) = hosts();
    network.unreachable.store(true, Ordering::SeqCst);
    let error = a.connect("10.0.0.2:80").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::HostUnreachable);
    assert_eq!(Errno::from_io_error(&error), Some(Errno::HOSTUNREACH));
}

/// [MUST-47] The same for a connection; in between it is told on request, once for each report.
#[test]
fn a_connection_ends_with_what_the_network_said() {
    let (a, b, network) = hosts();
    let (mut ours, _theirs) = connected(&a, &b);
    assert_eq!(ours.take_soft_error().unwrap(), None);
    network.unreachable.store(true, Ordering::SeqCst);
    ours.write_all(b"lost").unwrap();
    let mut told = None;
    while told.is_none() {
        std::thread::sleep(Duration::from_millis(1));
        told = ours.take_soft_error().unwrap();
    }
    assert_eq!(told, Some(IcmpError::HostUnreachable));
    let error = ours.read(&mut [0]).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::HOSTUNREACH));
    // It is told once, and then the stream is over.
    assert_eq!(ours.read(&mut [0]).unwrap(), 0);
    assert_eq!(ours.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

/// A call that waits is told, if that is wanted, and the connection goes on.
#[test]
fn a_call_that_waits_is_told() {
    let (a, b, network) = hosts();
    let (mut ours, mut theirs) = connected(&a, &b);
    ours.set_report_soft_errors(true).unwrap();
    let mut reader = ours.try_clone().unwrap();
    let read = spawn(move || {
        let error = reader.read(&mut [0; 4]).unwrap_err();
        (error, reader)
    });
    network.unreachable.store(true, Ordering::SeqCst);
    ours.write_all(b"late").unwrap();
    let (error, mut reader) = read.join().unwrap();
    network.unreachable.store(false, Ordering::SeqCst);
    assert_eq!(error.kind(), io::ErrorKind::HostUnreachable);
    let inside = error.get_ref().and_then(|inside| inside.downcast_ref::<IcmpError>());
    assert_eq!(inside, Some(&IcmpError::HostUnreachable));
    ours.set_report_soft_errors(false).unwrap();
    let mut bytes = [0; 4];
    theirs.read_exact(&mut bytes).unwrap();
    theirs.write_all(&bytes).unwrap();
    reader.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"late");
}
