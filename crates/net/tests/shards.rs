//! One host on several queues, each with a shard of its own.

use std::io::{ErrorKind, Read, Write};
use std::net::{self, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{self, PATIENCE, kernel_address, receive, send, transom_address};
use transom_device::memory::{MemoryConfig, MemoryDevice, pair};
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunError};
use transom_device::{Device, TxPacket};
use transom_net::{LogFormat, LogPosition, Profile, Stack, TcpListener, TcpStream};
use transom_stack::log::{What, file};
use transom_wire::IpPacket;

/// A stack of `shards` shards next to the kernel.
fn beside_the_kernel(shards: usize) -> Option<(Namespace, Stack)> {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => {
            eprintln!("SKIPPED: no network namespace here: {error:?}");
            return None;
        }
    };
    let builder = Tun::builder()
        .queues(shards)
        .address("192.0.2.1/24".parse().unwrap())
        .address("2001:db8::1/64".parse().unwrap());
    match namespace.run(|| builder.open()).unwrap() {
        Ok(tun) => Some((namespace, support::start(tun, Profile::classic()))),
        Err(TunError::Open(error)) => {
            eprintln!("SKIPPED: no access to TUN here: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

fn echo_once(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut buffer = vec![0; 65_536];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return,
            read => stream.write_all(&buffer[..read]).unwrap(),
        }
    }
}

#[test]
fn a_listener_accepts_from_all_shards() {
    let Some((namespace, stack)) = beside_the_kernel(2) else { return };
    assert_eq!(stack.shard_count(), 2);
    let listener = stack.listen((transom_address(support::Version::V4), 7)).unwrap();
    const CONNECTIONS: u64 = 40;
    thread::scope(|scope| {
        for _ in 0..2 {
            // Two threads wait for the same listener.
            scope.spawn(|| {
                for _ in 0..CONNECTIONS / 2 {
                    echo_once(&listener);
                }
            });
        }
        for nth in 0..CONNECTIONS {
            let namespace = &namespace;
            scope.spawn(move || {
                let at = SocketAddr::new(transom_address(support::Version::V4), 7);
                let connect = || net::TcpStream::connect(at);
                let mut stream = namespace.run(connect).unwrap().unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let text = vec![nth as u8; 100_000];
                let mut back = vec![0; text.len()];
                thread::scope(|scope| {
                    let mut writer = stream.try_clone().unwrap();
                    let text = &text;
                    scope.spawn(move || {
                        writer.write_all(text).unwrap();
                        writer.shutdown(net::Shutdown::Write).unwrap();
                    });
                    stream.read_exact(&mut back).unwrap();
                });
                assert!(back == text);
            });
        }
    });
    let each: Vec<_> = (0..2).map(|shard| stack.shard(shard).unwrap().counters()).collect();
    assert_eq!(each.iter().map(|counters| counters.passive_opens).sum::<u64>(), CONNECTIONS);
    // The kernel chooses by a hash: that all 40 went one way has a chance of 2 in 2^40.
    assert!(each.iter().all(|counters| counters.passive_opens > 0), "{each:?}");
    assert_eq!(stack.counters().passive_opens, CONNECTIONS);
    assert_eq!(stack.counters().resets_sent, 0);
}

/// A thread with a driver for each shard, as `transom serve` has: each answers what is in its shard, and wakes nobody else.
#[test]
fn each_shard_has_a_loop() {
    let Some((namespace, stack)) = beside_the_kernel(2) else { return };
    const LISTENER: u64 = u64::MAX;
    const CONNECTIONS: usize = 40;
    let listener = stack.listen((transom_address(support::Version::V4), 7)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let stop = AtomicBool::new(false);
    let serve = |shard: usize| {
        let mut driver = stack.shard(shard).unwrap().driver().unwrap();
        driver.watch_listener(&listener, LISTENER);
        let (mut streams, mut changes) = (Vec::new(), Vec::new());
        let mut echoed = 0;
        while !stop.load(Ordering::Relaxed) {
            driver.wait(Some(Duration::from_millis(20)), &mut changes);
            for change in changes.drain(..) {
                if change.token == LISTENER {
                    while let Ok((stream, _)) = listener.try_accept_in(shard) {
                        stream.set_nonblocking(true).unwrap();
                        driver.watch(&stream, streams.len() as u64);
                        streams.push(stream);
                    }
                }
            }
            // Data may have come before a stream was watched.
            for stream in &mut streams {
                let mut byte = [0];
                if matches!(stream.read(&mut byte), Ok(1)) {
                    stream.write_all(&byte).unwrap();
                    echoed += 1;
                }
            }
        }
        echoed
    };
    let echoed = thread::scope(|scope| {
        let loops = [0, 1].map(|shard| scope.spawn(move || serve(shard)));
        let at = SocketAddr::new(transom_address(support::Version::V4), 7);
        for nth in 0..CONNECTIONS {
            let mut stream = namespace.run(|| net::TcpStream::connect(at)).unwrap().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&[nth as u8]).unwrap();
            let mut back = [0];
            stream.read_exact(&mut back).unwrap();
            assert_eq!(back, [nth as u8]);
        }
        stop.store(true, Ordering::Relaxed);
        loops.map(|thread| thread.join().unwrap())
    });
    assert_eq!(echoed.iter().sum::<usize>(), CONNECTIONS);
    assert!(echoed.iter().all(|&count| count > 0), "{echoed:?}");
    assert_eq!(listener.try_accept_in(2).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(listener.try_accept_in(0).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn active_connections_take_turns_and_stay() {
    let Some((namespace, stack)) = beside_the_kernel(2) else { return };
    let at = SocketAddr::new(kernel_address(support::Version::V4), 9);
    let listener = namespace.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
    let mut pairs = Vec::new();
    for _ in 0..20 {
        let ours = stack.connect(at).unwrap();
        pairs.push((ours, listener.accept().unwrap().0));
    }
    for shard in 0..2 {
        assert_eq!(stack.shard(shard).unwrap().connection_count(), 10);
    }
    // Long enough for the kernel to forget in which queue each connection was seen last. Then its hash chooses, and half of the packets come to the
    // wrong shard.
    thread::sleep(Duration::from_secs(7));
    for (nth, (ours, theirs)) in pairs.iter_mut().enumerate() {
        let mut buffer = [0; 5];
        theirs.write_all(b"hello").unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        ours.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"hello", "{nth}");
        ours.write_all(b"there").unwrap();
        theirs.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"there", "{nth}");
    }
    let counters = stack.counters();
    assert_eq!((counters.resets_sent, counters.forwards_dropped), (0, 0), "{counters:?}");
    assert!(counters.passed_on > 0, "the kernel steered all twenty rightly: {counters:?}");
    assert_eq!(stack.connection_count(), 20);
}

/// Hands each packet of the left device to the next of the others in turn, and all of theirs to it, until told to stop. Nobody could steer worse.
fn deal_out(
    mut left: MemoryDevice,
    mut right: Vec<MemoryDevice>,
    stop: Arc<AtomicBool>,
) -> thread::JoinHandle<()> {
    fn pass(from: &mut MemoryDevice, to: &mut MemoryDevice) -> bool {
        let Ok(packet) = from.recv() else { return false };
        // A full queue drops.
        let _ = to.send(&TxPacket::whole(packet.bytes()));
        from.recycle(packet.buffer);
        true
    }
    thread::spawn(move || {
        let mut turn = 0;
        while !stop.load(Ordering::Relaxed) {
            let count = right.len();
            let mut busy = pass(&mut left, &mut right[turn % count]);
            turn += usize::from(busy);
            for device in &mut right {
                busy |= pass(device, &mut left);
            }
            if !busy {
                thread::sleep(Duration::from_micros(50));
            }
        }
    })
}

struct Dealt {
    peer: Stack,
    sharded: Stack,
    stop: Arc<AtomicBool>,
    dealer: Option<thread::JoinHandle<()>>,
}

const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SHARDED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

impl Dealt {
    fn new(shards: usize) -> Dealt {
        let config = MemoryConfig::default().with_queue_packets(4096);
        let (near, left) = pair(&config).unwrap();
        let (mut devices, mut right) = (Vec::new(), Vec::new());
        for _ in 0..shards {
            let (ours, far) = pair(&config).unwrap();
            devices.push(Box::new(ours) as Box<dyn Device>);
            right.push(far);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let dealer = Some(deal_out(left, right, Arc::clone(&stop)));
        let peer = Stack::builder().address(PEER.into(), 24).start(near).unwrap();
        let sharded = Stack::builder().address(SHARDED.into(), 24).start_on(devices).unwrap();
        Dealt { peer, sharded, stop, dealer }
    }
}

impl Drop for Dealt {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(dealer) = self.dealer.take() {
            dealer.join().unwrap();
        }
    }
}

#[test]
fn packets_at_the_wrong_shard_are_handed_over() {
    const BYTES: u64 = 3_000_000;
    for shards in [2, 3] {
        let dealt = Dealt::new(shards);
        for (from, to) in [(&dealt.peer, &dealt.sharded), (&dealt.sharded, &dealt.peer)] {
            let ip = if std::ptr::eq(to, &dealt.sharded) { SHARDED } else { PEER };
            let before = dealt.sharded.counters().resets_sent;
            let listener = to.listen((ip, 80)).unwrap();
            let client = from.connect((ip, 80)).unwrap();
            let server = listener.accept().unwrap().0;
            for (mut writer, reader) in [(&client, &server), (&server, &client)] {
                reader.set_read_timeout(Some(PATIENCE)).unwrap();
                thread::scope(|scope| {
                    let sender = scope.spawn(|| send(&mut writer, 7, BYTES).unwrap());
                    let received = receive(reader.take(BYTES)).unwrap();
                    assert_eq!(sender.join().unwrap(), received);
                });
            }
            // While the connection is there, all find it. (Of what is overtaken by its end, nobody knows any more.)
            let counters = dealt.sharded.counters();
            assert_eq!(counters.resets_sent, before, "{counters:?}");
            drop((client, server));
            assert!(dealt.sharded.drain(PATIENCE) && dealt.peer.drain(PATIENCE));
        }
        let counters = dealt.sharded.counters();
        assert!(counters.passed_on > 1000, "{counters:?}");
    }
}

#[test]
fn a_segment_for_no_connection_is_refused_once() {
    let dealt = Dealt::new(3);
    for _ in 0..6 {
        let error = dealt.peer.connect((SHARDED, 81)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
    assert_eq!(dealt.sharded.counters().resets_sent, 6);
}

#[test]
fn a_listener_of_one_shard_is_reached_through_the_others() {
    let dealt = Dealt::new(3);
    let listener = dealt.sharded.shard(1).unwrap().listen((SHARDED, 80)).unwrap();
    for _ in 0..6 {
        let mut client = dealt.peer.connect((SHARDED, 80)).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
    }
    assert_eq!(dealt.sharded.shard(1).unwrap().counters().passive_opens, 6);
}

#[test]
fn a_descriptor_shows_what_waits_in_any_shard() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let dealt = Dealt::new(2);
    let listener = dealt.sharded.listen((SHARDED, 80)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let is_ready = |patience: i64| {
        let fd = listener.try_as_fd().unwrap();
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: patience, tv_nsec: 0 })).unwrap() == 1
    };
    assert!(!is_ready(0));
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    for _ in 0..4 {
        let client = dealt.peer.connect((SHARDED, 80)).unwrap();
        assert!(is_ready(60));
        let (server, from) = listener.accept().unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        assert!(!is_ready(0));
        drop((client, server));
    }
}

/// Somebody holds up one shard; the other does not notice.
#[test]
fn a_shard_works_while_another_is_held_up() {
    let Some((namespace, stack)) = beside_the_kernel(2) else { return };
    let at = SocketAddr::new(kernel_address(support::Version::V4), 9);
    let listener = namespace.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
    let pair = |shard| {
        let ours = stack.shard(shard).unwrap().connect(at).unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        (ours, listener.accept().unwrap().0)
    };
    let ((held, _theirs), (free, mut kernel)) = (pair(0), pair(1));
    let (done, wait) = std::sync::mpsc::channel();
    let (entered, enter) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        // The closure runs under the lock of its shard.
        let holder = scope.spawn(move || {
            let hold = || {
                entered.send(()).unwrap();
                wait.recv_timeout(PATIENCE).is_ok()
            };
            held.with_connection(|_, _| hold()).unwrap()
        });
        enter.recv().unwrap();
        kernel.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = [0; 1000];
        for _ in 0..100 {
            (&free).write_all(&[7; 1000]).unwrap();
            kernel.read_exact(&mut buffer).unwrap();
            kernel.write_all(&buffer).unwrap();
            (&free).read_exact(&mut buffer).unwrap();
        }
        done.send(()).unwrap();
        assert!(holder.join().unwrap(), "the other shard had to wait");
    });
}

#[test]
fn more_shards_than_queues_are_refused() {
    let (device, _) = pair(&MemoryConfig::default()).unwrap();
    let builder = Stack::builder().address(PEER.into(), 24).shards(2);
    let error = builder.start(device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("1 queues"), "{error}");
}

#[test]
fn the_packets_of_a_shard_are_ordinary_ones() {
    // A shard's ports are those whose remainder is its number: so that others know whom to ask first.
    let (device, mut wire) = pair(&MemoryConfig::default()).unwrap();
    let (other, _unused) = pair(&MemoryConfig::default()).unwrap();
    let stack = Stack::builder().address(SHARDED.into(), 24);
    let stack = stack.start_on(vec![Box::new(device), Box::new(other)]).unwrap();
    let first = stack.shard(0).unwrap();
    for _ in 0..10 {
        let at = SocketAddr::new(PEER.into(), 80);
        let stream = transom_net::TcpStream::connect_nonblocking(&first, at).unwrap();
        assert_eq!(stream.local_addr().unwrap().port() % 2, 0);
        let packet = wire.recv().unwrap();
        assert!(IpPacket::parse(packet.bytes()).unwrap().transport_checksum_ok());
    }
}

/// The log of a host has all connections of all shards, each under a name of its own, in the order of time. A program does not see the shards.
#[test]
fn one_log_has_the_connections_of_all_shards() {
    const CONNECTIONS: usize = 6;
    // The other ends stay, and say nothing.
    let (_silent, devices): (Vec<_>, Vec<_>) = (0..2)
        .map(|_| pair(&MemoryConfig::default()).unwrap())
        .map(|(near, far)| (far, Box::new(near) as Box<dyn Device>))
        .unzip();
    let stack = Stack::builder().address([10, 0, 0, 1].into(), 24).start_on(devices).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.tlog");
    let file = std::fs::File::create(&path).unwrap();
    let writer = stack.log_to(file, LogFormat::Binary).unwrap();
    let remote = SocketAddr::from(([10, 0, 0, 2], 80));
    let streams: Vec<_> =
        (0..CONNECTIONS).map(|_| TcpStream::connect_nonblocking(&stack, remote).unwrap()).collect();
    let each: Vec<_> = (0..2).map(|shard| stack.shard(shard).unwrap().connection_count()).collect();
    assert_eq!(each, [CONNECTIONS / 2; 2]);
    let read = stack.read_log(&LogPosition::default());
    assert_eq!((read.missed, read.records.len() as u64), (0, read.next.0.iter().sum::<u64>()));
    let written = writer.finish().unwrap();
    assert_eq!(written.missed, 0);
    let (_, entries) = file::read(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(entries.len() as u64, written.records);
    assert!(entries.iter().zip(0..).all(|(entry, number)| entry.sequence == number));
    let records: Vec<_> = entries.iter().map(|entry| entry.record.as_ref().unwrap()).collect();
    assert!(records.is_sorted_by_key(|record| record.at));
    let opened = records.iter().filter(|record| matches!(record.what, What::Opened { .. }));
    let names: std::collections::HashSet<_> = opened.map(|record| record.connection).collect();
    assert_eq!(names.len(), CONNECTIONS);
    assert!(stack.read_log(&stack.log_end()).records.is_empty());
    drop(streams);
}

/// What the extensions of one shard use is used up for the others.
#[test]
fn extensions_have_one_budget_in_all_shards() {
    let host = |number: u8| Stack::builder().address([10, 0, 0, number].into(), 24);
    let (near, far) = pair(&MemoryConfig::default()).unwrap();
    let (other, _silent) = pair(&MemoryConfig::default()).unwrap();
    let bob = host(2).start(far).unwrap();
    let stack = host(1).extension("vegas").unwrap();
    let stack = stack.start_on(vec![Box::new(near), Box::new(other)]).unwrap();
    let listener = bob.listen("10.0.0.2:7").unwrap();
    let mut stream = stack.shard(0).unwrap().connect("10.0.0.2:7").unwrap();
    let mut peer = listener.accept().unwrap().0;
    // Until the peer has all of it, Vegas was woken.
    stream.write_all(&[1; 100_000]).unwrap();
    peer.read_exact(&mut [0; 100_000]).unwrap();
    let used = stack.extension_time().used;
    assert!(used > Duration::ZERO);
    assert!(stack.shard(1).unwrap().extension_time().used >= used);
}
