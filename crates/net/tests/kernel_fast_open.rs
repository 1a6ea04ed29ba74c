//! TCP Fast Open with the kernel's TCP, each as client and as server (RFC 7413): cookies of the one are taken back by the other, and data goes with SYNs.

use crate::support::{
    Lab, PATIENCE, VERSIONS, Version, kernel_address, start, transom_address, tun,
};
use rustix::net::{AddressFamily, SendFlags, SocketType, sendto, socket};
use std::io::{Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::thread;
use transom_device::namespace::Namespace;
use transom_device::tun::TunOffload;
use transom_net::{Profile, TcpListener, TcpStream};
use transom_stack::ListenConfig;
use transom_tcp::FastOpenFailure;

const MSG_FASTOPEN: SendFlags = SendFlags::from_bits_retain(0x2000_0000);

/// The kernel does Fast Open as a client, and for every listener: bits 1, 2 and 0x400 of `net.ipv4.tcp_fastopen`.
const BOTH: u32 = 0x403;

fn lab(fast_open: u32) -> Option<Lab> {
    let (namespace, tun) = tun(TunOffload::Segmentation)?;
    namespace.set_sysctl("net.ipv4.tcp_fastopen", &fast_open.to_string()).unwrap();
    Some(Lab::new(namespace, start(tun, Profile::classic()), None))
}

/// A number of the kernel's statistics.
fn kernel_counts(namespace: &Namespace, name: &str) -> u64 {
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat"));
    let text = text.unwrap().unwrap();
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let mut pairs = names.split_whitespace().zip(values.split_whitespace());
        if let Some((_, value)) = pairs.find(|&(this, _)| this == name) {
            return value.parse().unwrap();
        }
    }
    panic!("the kernel does not count {name}");
}

/// The kernel connects with data, which goes with the SYN if it has a cookie.
fn kernel_connects(namespace: &Namespace, to: SocketAddr, data: &[u8]) -> net::TcpStream {
    namespace
        .run(|| {
            let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = socket(family, SocketType::STREAM, None).unwrap();
            assert_eq!(sendto(&socket, data, MSG_FASTOPEN, &to).unwrap(), data.len());
            let stream = net::TcpStream::from(socket);
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream
        })
        .unwrap()
}

/// What both ends say to each other after the request.
fn finish(mut client: impl Read + Write, mut server: impl Read + Write, end: impl FnOnce()) {
    client.write_all(b" and more").unwrap();
    let mut more = [0; 9];
    server.read_exact(&mut more).unwrap();
    assert_eq!(&more, b" and more");
    server.write_all(&[7; 100_000]).unwrap();
    let mut answer = vec![0; 100_000];
    client.read_exact(&mut answer).unwrap();
    assert!(answer.iter().all(|&byte| byte == 7));
    end();
    assert_eq!(server.read(&mut more).unwrap(), 0);
}

#[test]
fn the_kernel_connects_with_data() {
    let Some(lab) = lab(BOTH) else { return };
    for (nth, version) in VERSIONS.into_iter().enumerate() {
        let at = SocketAddr::new(transom_address(version), 80);
        let config = ListenConfig::default().with_fast_open(8);
        let listener = TcpListener::bind_with(&lab.stack, at, config).unwrap();
        for round in 0..3u64 {
            let request = vec![b'a' + round as u8; 1000];
            let (kernel, (mut ours, _)) = thread::scope(|scope| {
                let kernel = scope.spawn(|| kernel_connects(&lab.namespace, at, &request));
                let accepted = listener.accept().unwrap();
                (kernel.join().unwrap(), accepted)
            });
            ours.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut read = vec![0; 1000];
            ours.read_exact(&mut read).unwrap();
            assert_eq!(read, request);
            // The first SYN asked for the cookie.
            assert_eq!(ours.info().unwrap().fast_open.syn_data_acked, round > 0, "{version:?}");
            let fast = 2 * nth as u64 + round;
            assert_eq!(lab.stack.counters().fast_opens_passive, fast);
            assert_eq!(kernel_counts(&lab.namespace, "TCPFastOpenActive"), fast);
            finish(&kernel, &ours, || kernel.shutdown(Shutdown::Write).unwrap());
        }
        assert_eq!(lab.stack.counters().fast_open_requests, nth as u64 + 1);
    }
    assert_eq!(lab.stack.counters().fast_open_bad_cookies, 0);
}

/// The server's program answers what came with the SYN; the answer may leave before the handshake is complete.
#[test]
fn the_kernel_is_answered_early() {
    let Some(lab) = lab(BOTH) else { return };
    let at = SocketAddr::new(transom_address(Version::V4), 80);
    let config = ListenConfig::default().with_fast_open(8);
    let listener = TcpListener::bind_with(&lab.stack, at, config).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                let (mut ours, _) = listener.accept().unwrap();
                ours.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut request = [0; 4];
                ours.read_exact(&mut request).unwrap();
                ours.write_all(&[request[0]; 8000]).unwrap();
                ours.shutdown(Shutdown::Write).unwrap();
                assert_eq!(ours.read(&mut request).unwrap(), 0);
            }
        });
        for byte in 0..50u8 {
            let mut kernel = kernel_connects(&lab.namespace, at, &[byte; 4]);
            let mut answer = Vec::new();
            kernel.read_to_end(&mut answer).unwrap();
            assert_eq!(answer, [byte; 8000]);
        }
    });
    assert_eq!(lab.stack.counters().fast_opens_passive, 49);
}

#[test]
fn the_kernel_takes_data_in_our_syn() {
    let Some(lab) = lab(BOTH) else { return };
    for (nth, version) in VERSIONS.into_iter().enumerate() {
        let at = SocketAddr::new(kernel_address(version), 5999);
        let listener = lab.namespace.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
        for round in 0..4u64 {
            let request = vec![b'a' + round as u8; 1000];
            // The two ways to ask for it.
            let ours = if round % 2 == 0 {
                let (ours, taken) = TcpStream::connect_with_data(&lab.stack, at, &request).unwrap();
                assert_eq!(taken, 1000);
                ours
            } else {
                let mut ours = TcpStream::connect_on_write(&lab.stack, at).unwrap();
                ours.write_all(&request).unwrap();
                ours
            };
            let (mut kernel, _) = listener.accept().unwrap();
            kernel.set_read_timeout(Some(PATIENCE)).unwrap();
            ours.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut read = vec![0; 1000];
            kernel.read_exact(&mut read).unwrap();
            assert_eq!(read, request);
            finish(&ours, &kernel, || ours.shutdown(Shutdown::Write).unwrap());
            let info = ours.info().unwrap();
            assert_eq!(info.fast_open.syn_data_acked, round > 0, "{version:?} {round}: {info:?}");
            assert_eq!(info.counters.retransmitted_segments, 0);
            let fast = 3 * nth as u64 + round;
            assert_eq!(lab.stack.counters().fast_opens_active, fast);
            assert_eq!(kernel_counts(&lab.namespace, "TCPFastOpenPassive"), fast);
        }
    }
}

/// A kernel whose listeners do not do it: connections are made as ever, and it is not asked a second time.
#[test]
fn a_kernel_without_it_is_not_asked_again() {
    let Some(lab) = lab(1) else { return };
    let at = SocketAddr::new(kernel_address(Version::V4), 5999);
    let listener = lab.namespace.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
    for failure in [FastOpenFailure::NoCookie, FastOpenFailure::None] {
        let (ours, _) = TcpStream::connect_with_data(&lab.stack, at, b"hello").unwrap();
        let mut kernel = listener.accept().unwrap().0;
        let mut read = [0; 5];
        kernel.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"hello");
        assert_eq!(ours.info().unwrap().fast_open.failure, failure);
    }
}
