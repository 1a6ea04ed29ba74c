//! Options of sockets whose effect shows between two hosts.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{PathMtuDiscovery, Setting, Stack, TcpListener, TcpStream, WriteOptions};
use transom_stack::ListenConfig;
use transom_tcp::AckChoice;
use transom_tcp::UnitChoice;

/// A call that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Two hosts next to each other, each with an address of each version.
fn hosts() -> (Stack, Stack) {
    let (near, far) = pair(&MemoryConfig::with_offload()).unwrap();
    let host = |number: u8| {
        let v6 = [0xfd00, 0, 0, 0, 0, 0, 0, number.into()];
        Stack::builder().address([10, 0, 0, number].into(), 24).address(v6.into(), 64)
    };
    (host(1).start(near).unwrap(), host(2).start(far).unwrap())
}

fn kind<T: std::fmt::Debug>(outcome: io::Result<T>) -> ErrorKind {
    outcome.expect_err("an error was expected").kind()
}

#[test]
fn a_listener_for_ipv6_alone_leaves_ipv4_to_others() {
    let (client, server) = hosts();
    let v6_only = || ListenConfig::default().with_v6_only(true);
    let any = "[::]:80".parse().unwrap();
    let six = TcpListener::bind_with(&server, any, v6_only()).unwrap();
    assert_eq!(kind(client.connect("10.0.0.2:80")), ErrorKind::ConnectionRefused);
    let four = server.listen("0.0.0.0:80").unwrap();
    assert_eq!(kind(TcpListener::bind_with(&server, any, v6_only())), ErrorKind::AddrInUse);
    for (listener, address) in [(&six, "[fd00::2]:80"), (&four, "10.0.0.2:80")] {
        let mut stream: TcpStream = client.connect(address).unwrap();
        let (mut accepted, peer) = listener.accept().unwrap();
        assert_eq!(stream.local_addr().unwrap(), peer);
        stream.write_all(b"hello").unwrap();
        let mut bytes = [0; 5];
        accepted.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
    }
}

/// A connection between two hosts: the end that connected, and the end that accepted.
fn connected() -> (TcpStream, TcpStream, (Stack, Stack)) {
    let (client, server) = hosts();
    let listener = server.listen("10.0.0.2:80").unwrap();
    let near = client.connect("10.0.0.2:80").unwrap();
    let (far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    (near, far, (client, server))
}

/// Segments sent for the first time.
fn segments(stream: &TcpStream) -> u64 {
    let counters = stream.info().unwrap().counters;
    counters.segments_sent - counters.retransmitted_segments
}

/// [MAY-16] What is written little by little leaves together.
#[test]
fn corking_gathers_what_is_written() {
    let (mut near, mut far, _hosts) = connected();
    near.set_nodelay(true).unwrap();
    near.set_option(Setting::Cork(true)).unwrap();
    assert!(near.settings().unwrap().cork);
    let before = segments(&near);
    let started = Instant::now();
    for _ in 0..10 {
        near.write_all(b"0123456789").unwrap();
    }
    near.set_option(Setting::Cork(false)).unwrap();
    let mut bytes = [0; 100];
    far.read_exact(&mut bytes).unwrap();
    // One segment, and another one for every 200 ms that this machine has taken to write.
    let most = 1 + started.elapsed().as_millis() as u64 / 200;
    let sent = segments(&near) - before;
    assert!(sent <= most, "{sent} segments");
}

#[test]
fn more_and_records() {
    let (near, mut far, _hosts) = connected();
    near.set_nodelay(true).unwrap();
    let more = WriteOptions::default().with_more(true);
    let record = WriteOptions::default().with_end_of_record(true);
    assert_eq!(near.write_with(b"head ", more).unwrap(), 5);
    assert_eq!(near.write_with(b"body", WriteOptions::default()).unwrap(), 4);
    let mut bytes = [0; 9];
    far.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"head body");
    let before = segments(&near);
    near.set_option(Setting::Cork(true)).unwrap();
    for _ in 0..5 {
        assert_eq!(near.write_with(b"record", record).unwrap(), 6);
    }
    near.set_option(Setting::Cork(false)).unwrap();
    let mut bytes = [0; 30];
    far.read_exact(&mut bytes).unwrap();
    assert_eq!(segments(&near) - before, 5, "one for each record");
}

#[test]
fn unsent_data_is_bounded() {
    let (mut near, far, _hosts) = connected();
    far.set_option(Setting::FinWait2(Duration::ZERO.into())).unwrap();
    near.set_option(Setting::NotsentLowWater(10_000)).unwrap();
    assert_eq!(near.settings().unwrap().notsent_low_water, 10_000);
    near.set_nonblocking(true).unwrap();
    let zeros = vec![0; 1 << 20];
    // Nobody reads: the peer's window fills up, and then what may be unsent.
    let mut written = 0;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match near.write(&zeros) {
            Ok(count) => written += count,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                let info = near.info().unwrap();
                if info.snd_wnd < 1448 {
                    let sent = info.snd_nxt.since(info.snd_una);
                    let unsent = info.unacknowledged as u64 - sent;
                    assert!(unsent <= 10_000 + 1448, "{unsent}");
                    break;
                }
            }
        }
        assert!(Instant::now() < deadline, "the window stays open after {written} bytes");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_read_waits_for_the_low_water_mark() {
    let (mut near, mut far, _hosts) = connected();
    far.set_option(Setting::ReceiveLowWater(10)).unwrap();
    assert_eq!(far.settings().unwrap().receive_low_water, 10);
    let writer = std::thread::spawn(move || {
        near.set_nodelay(true).unwrap();
        for _ in 0..4 {
            near.write_all(b"abc").unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        near
    });
    let mut bytes = [0; 100];
    let count = far.read(&mut bytes).unwrap();
    assert!(count >= 10, "{count} bytes");
    let mut near = writer.join().unwrap();
    // A full buffer is enough, for any mark.
    near.write_all(b"xyz").unwrap();
    if count < 12 {
        far.read_exact(&mut bytes[..12 - count]).unwrap();
    }
    far.read_exact(&mut bytes[..3]).unwrap();
    assert_eq!(&bytes[..3], b"xyz");
    // A timeout gives what there is; without anything it is an error.
    near.write_all(b"few").unwrap();
    far.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert_eq!(far.read(&mut bytes).unwrap(), 3);
    assert_eq!(kind(far.read(&mut bytes)), ErrorKind::WouldBlock);
    // The end does not wait.
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    near.write_all(b"end").unwrap();
    drop(near);
    assert_eq!(far.read(&mut bytes).unwrap(), 3);
    assert_eq!(far.read(&mut bytes).unwrap(), 0);
}

#[test]
fn quick_acknowledgements() {
    let (near, _far, _hosts) = connected();
    let quick = AckChoice::Quick(Duration::from_millis(200).into());
    near.exchange(UnitChoice::Acknowledgements(quick)).unwrap();
    assert!(near.quickack().unwrap());
    near.set_quickack(false).unwrap();
    assert!(!near.quickack().unwrap());
    near.set_quickack(true).unwrap();
    assert!(near.quickack().unwrap());
}

#[test]
fn fin_wait_2_and_path_mtu() {
    let (near, far, (client, _server)) = connected();
    assert_eq!(near.settings().unwrap().fin_wait_2, Duration::from_secs(60).into());
    near.set_option(Setting::FinWait2(Duration::ZERO.into())).unwrap();
    assert_eq!(near.info().unwrap().path_mtu, far.info().unwrap().path_mtu);
    near.set_option(Setting::PathMtuDiscovery(PathMtuDiscovery::Dont)).unwrap();
    drop(near);
    // The other end keeps its half open, and nobody waits for it.
    assert!(client.drain(PATIENCE), "the connection is still there");
    drop(far);
}
