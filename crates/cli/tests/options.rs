//! The options of a connection in each of the ways to set them: `TcpStream`, Tokio's, the calls of Linux as C programs have them, and a program
//! under `transom exec`. Each way sets all of them, reads them again, and sends; then the packets show what the options did.
#![cfg(feature = "web")] // It has Tokio.

use crate::exec::{available, inside};
use libc::{
    AF_INET, IP_TOS, IP_TTL, IPPROTO_IP, IPPROTO_TCP, SO_KEEPALIVE, SO_RCVLOWAT, SOCK_STREAM,
    SOL_SOCKET, TCP_CONGESTION, TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_LINGER2, TCP_NODELAY,
    TCP_NOTSENT_LOWAT, TCP_USER_TIMEOUT,
};
use std::io::{self, Write};
use std::thread;
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_device::{Capture, Tapped};
use transom_net::{KeepAlive, Setting, SocketOption, Stack, TcpStream};
use transom_sansio::{Host, SocketCalls};
use transom_stack::StackConfig;
use transom_tcp::CongestionChoice;
use transom_tcp::congestion::Vegas;
use transom_tcp::time::{Duration as Span, Instant};
use transom_wire::{IpPacket, TcpPacket};

const CONGESTION: &str = "vegas";
const DATA: &[u8] = b"ten bytes.";

/// An option: what Linux calls it, a value, and the same in Rust.
struct Row {
    level: i32,
    name: i32,
    value: i32,
    option: SocketOption,
    read: fn(&TcpStream) -> io::Result<u128>,
}

fn row(
    level: i32,
    name: i32,
    value: i32,
    option: impl Into<SocketOption>,
    read: fn(&TcpStream) -> io::Result<u128>,
) -> Row {
    Row { level, name, value, option: option.into(), read }
}

fn rows() -> Vec<Row> {
    let keep = KeepAlive::default()
        .with_idle(Span::from_secs(1))
        .with_interval(Span::from_secs(7))
        .with_probes(4);
    let alive = Setting::KeepAlive(Some(keep));
    let timeout = Setting::UserTimeout(Some(Span::from_secs(50)));
    let tcp = IPPROTO_TCP;
    vec![
        row(IPPROTO_IP, IP_TTL, 33, SocketOption::TimeToLive(33), |s| Ok(s.ttl()?.into())),
        row(IPPROTO_IP, IP_TOS, 0x28, SocketOption::TypeOfService(0x28), |s| Ok(s.tos()?.into())),
        row(tcp, TCP_NODELAY, 1, Setting::NoDelay(true), |s| Ok(s.nodelay()?.into())),
        row(tcp, TCP_NOTSENT_LOWAT, 5000, Setting::NotsentLowWater(5000), |s| {
            Ok(s.notsent_lowat()?.into())
        }),
        row(SOL_SOCKET, SO_RCVLOWAT, 10, Setting::ReceiveLowWater(10), |s| {
            Ok(s.rcvlowat()? as u128)
        }),
        row(tcp, TCP_LINGER2, 30, Setting::FinWait2(Span::from_secs(30)), |s| {
            Ok(s.fin_wait_2()?.as_secs().into())
        }),
        row(tcp, TCP_USER_TIMEOUT, 50_000, timeout, |s| {
            Ok(s.user_timeout()?.map_or(0, |span| span.as_millis()))
        }),
        row(tcp, TCP_KEEPIDLE, 1, alive, |s| kept(s, |keep| keep.idle.as_millis() / 1000)),
        row(tcp, TCP_KEEPINTVL, 7, alive, |s| kept(s, |keep| keep.interval.as_millis() / 1000)),
        row(tcp, TCP_KEEPCNT, 4, alive, |s| kept(s, |keep| keep.probes.into())),
        row(SOL_SOCKET, SO_KEEPALIVE, 1, alive, |s| kept(s, |_| 1)),
    ]
}

fn kept(stream: &TcpStream, value: fn(KeepAlive) -> u64) -> io::Result<u128> {
    Ok(stream.keepalive()?.map_or(0, value).into())
}

/// What was read, and what the packets say.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    values: Vec<u128>,
    congestion: String,
    effect: Option<Effect>,
}

/// What is seen of the options in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Effect {
    ttl: u8,
    /// The type of service without its lower two bits, which are TCP's own.
    service: u8,
    /// A keep-alive was sent: a segment before the byte that comes next, without data.
    probed: bool,
}

fn expected() -> Outcome {
    Outcome {
        values: rows().iter().map(|row| row.value as u128).collect(),
        congestion: CONGESTION.into(),
        effect: Some(Effect { ttl: 33, service: 0x28, probed: true }),
    }
}

/// The effect in the packets of the end that sent the data, once it has.
fn effect<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> Option<Effect> {
    let mut found: Option<(Effect, u32)> = None;
    for packet in packets {
        let Ok(ip @ IpPacket::V4(_)) = IpPacket::parse(packet) else { continue };
        let tcp = TcpPacket::parse(ip.payload()).unwrap();
        let seq = tcp.header().seq.get();
        match &mut found {
            None if tcp.payload() == DATA => {
                let effect = Effect {
                    ttl: ip.hop_limit(),
                    service: ip.traffic_class() & 0xfc,
                    probed: false,
                };
                found = Some((effect, seq.wrapping_add(DATA.len() as u32)));
            }
            Some((effect, next)) if tcp.payload().is_empty() => {
                effect.probed |= seq.wrapping_add(1) == *next;
            }
            _ => {}
        }
    }
    found.map(|(effect, _)| effect)
}

/// The packets of a pcapng file of ours (draft-ietf-opsawg-pcapng section 4.3), in order, both ways.
fn packets_of(mut file: &[u8]) -> Vec<&[u8]> {
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    };
    let mut packets = Vec::new();
    while file.len() >= 12 && file.len() >= word(file, 4) {
        let (block, rest) = file.split_at(word(file, 4));
        if word(block, 0) == 6 {
            packets.push(&block[28..28 + word(block, 20)]);
        }
        file = rest;
    }
    packets
}

/// The packets of such a file that are from this address.
fn packets_from(file: &[u8], source: [u8; 4]) -> Vec<&[u8]> {
    packets_of(file).into_iter().filter(|packet| packet[12..16] == source).collect()
}

/// Two stacks, of which the first is captured.
struct Stacks {
    ours: Stack,
    theirs: Stack,
    file: tempfile::NamedTempFile,
}

impl Stacks {
    fn new() -> Self {
        let (near, far) = pair(&MemoryConfig::default()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let capture = Capture::new(file.reopen().unwrap()).unwrap();
        let tap = Tapped::new(near, capture, "memory").unwrap();
        let builder = |number: u8| Stack::builder().address([10, 0, 0, number].into(), 24);
        Stacks {
            ours: builder(1).start(tap).unwrap(),
            theirs: builder(2).start(far).unwrap(),
            file,
        }
    }

    /// Sets, reads, sends, and waits for the keep-alive.
    fn outcome(&self, stream: &TcpStream) -> Outcome {
        let rows = rows();
        rows.iter().for_each(|row| stream.set_option(row.option.clone()).unwrap());
        let choice = CongestionChoice::new(Vegas::default());
        stream.set_option(SocketOption::Congestion(choice)).unwrap();
        let values = rows.iter().map(|row| (row.read)(stream).unwrap()).collect();
        let congestion = stream.info().unwrap().congestion.to_string();
        let mut writer = stream.try_clone().unwrap();
        writer.write_all(DATA).unwrap();
        for _ in 0..200 {
            let file = std::fs::read(self.file.path()).unwrap();
            let effect = effect(packets_from(&file, [10, 0, 0, 1]));
            if effect.is_some_and(|effect| effect.probed) {
                return Outcome { values, congestion, effect };
            }
            thread::sleep(Duration::from_millis(100));
        }
        Outcome { values, congestion, effect: None }
    }
}

#[test]
fn a_stream_has_them() {
    let stacks = Stacks::new();
    let listener = stacks.theirs.listen("10.0.0.2:80").unwrap();
    let stream = stacks.ours.connect("10.0.0.2:80").unwrap();
    let _accepted = listener.accept().unwrap();
    assert_eq!(stacks.outcome(&stream), expected());
}

#[test]
fn a_stream_of_tokio_has_them() {
    let stacks = Stacks::new();
    let listener = stacks.theirs.listen("10.0.0.2:80").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let connect = transom_tokio::TcpStream::connect(&stacks.ours, "10.0.0.2:80");
    let stream = runtime.block_on(connect).unwrap();
    let _accepted = listener.accept().unwrap();
    assert_eq!(stacks.outcome(stream.net()), expected());
    // Those that Tokio's own type has.
    assert_eq!((stream.ttl().unwrap(), stream.nodelay().unwrap()), (33, true));
    stream.set_ttl(9).unwrap();
    assert_eq!(stream.net().ttl().unwrap(), 9);
}

/// Carries packets between two hosts, and lets the time pass until then. Returns what the first has sent.
fn run(a: &mut Host, b: &mut Host, until: Instant) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    loop {
        let mut moved = false;
        while let Some((_, packet)) = a.next_packet() {
            b.inject(b.now(), &packet).unwrap();
            sent.push(packet);
            moved = true;
        }
        while let Some((_, packet)) = b.next_packet() {
            a.inject(a.now(), &packet).unwrap();
            moved = true;
        }
        if moved {
            continue;
        }
        let next = [a.next_event(), b.next_event()].into_iter().flatten().min();
        let next = next.filter(|&at| at < until).unwrap_or(until);
        a.run_to(next).unwrap();
        b.run_to(next).unwrap();
        if next == until {
            return sent;
        }
    }
}

#[test]
fn a_socket_of_c_has_them() {
    let host = |address: &str| {
        let config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
        Host::new(config, Instant::ZERO).unwrap()
    };
    let (mut a, mut b) = (host("10.0.0.1"), host("10.0.0.2"));
    let at = "10.0.0.2:80".parse().unwrap();
    let listener = b.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    b.bind(listener, at).unwrap();
    b.listen(listener, 1).unwrap();
    let fd = a.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    // The call would wait; its packets go on meanwhile.
    assert!(a.connect(fd, at).is_err());
    let mut sent = run(&mut a, &mut b, Instant::from_millis(100));
    a.connect(fd, at).unwrap();
    for row in rows() {
        a.set_option(fd, row.level, row.name, &row.value.to_ne_bytes()).unwrap();
    }
    a.set_option(fd, IPPROTO_TCP, TCP_CONGESTION, CONGESTION.as_bytes()).unwrap();
    let number = |bytes: Vec<u8>| i32::from_ne_bytes(bytes.try_into().unwrap()) as u128;
    let values =
        rows().iter().map(|row| number(a.option(fd, row.level, row.name).unwrap())).collect();
    let name = a.option(fd, IPPROTO_TCP, TCP_CONGESTION).unwrap();
    let congestion = String::from_utf8(name).unwrap().trim_end_matches('\0').to_owned();
    a.send(fd, DATA, 0).unwrap();
    sent.extend(run(&mut a, &mut b, Instant::from_millis(3000)));
    let effect = effect(sent.iter().map(Vec::as_slice));
    assert_eq!(Outcome { values, congestion, effect }, expected());
}

#[test]
fn a_program_under_exec_has_them() {
    if !available(&["python3"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let numbers: Vec<_> = rows().iter().map(|row| (row.level, row.name, row.value)).collect();
    let client = format!(
        "import time
from socket import *
c = create_connection(('10.9.0.1', 7000)); rows = {numbers:?}
for row in rows: c.setsockopt(*row)
c.setsockopt(IPPROTO_TCP, TCP_CONGESTION, b'{CONGESTION}')
for level, name, _ in rows: print(c.getsockopt(level, name))
print(c.getsockopt(IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b'\\0').decode())
c.sendall(b'{}'); time.sleep(4)
",
        std::str::from_utf8(DATA).unwrap()
    );
    let server =
        "from socket import *\nc, _ = create_server(('', 7000)).accept()\nwhile c.recv(99): pass\n";
    std::fs::write(directory.path().join("client.py"), client).unwrap();
    std::fs::write(directory.path().join("server.py"), server).unwrap();
    let script =
        "python3 server.py & listening 7000; $TRANSOM exec --pcap p.pcapng -- python3 client.py";
    let ended = inside(directory.path(), script).success();
    let text = ended.text();
    let lines: Vec<&str> = text.lines().collect();
    let (congestion, values) = lines.split_last().unwrap();
    let file = std::fs::read(directory.path().join("p.pcapng")).unwrap();
    let outcome = Outcome {
        values: values.iter().map(|line| line.parse().unwrap()).collect(),
        congestion: (*congestion).to_owned(),
        effect: effect(packets_from(&file, [10, 9, 0, 2])),
    };
    assert_eq!(outcome, expected());
}
