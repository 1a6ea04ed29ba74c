//! Every option of sockets in each of the ways to set it: `TcpStream` and `TcpSocket`, Tokio's, the calls of Linux in Rust and in C, and a program under
//! `transom exec`. Each way sets all of the table's options that it has, reads them again, and sends; then the packets show what the options did.
#![cfg(feature = "web")] // It has Tokio.

use crate::exec::{available, inside};
use libc::{AF_INET, AF_INET6, EINVAL, ENOTCONN, IPPROTO_IPV6, IPPROTO_TCP, SOCK_STREAM};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_device::{Capture, Tapped};
use transom_net::{KeepAlive, Setting, SocketOption, Stack, TcpSocket, TcpStream};
use transom_sansio::options::{OPTIONS, OptionEntry};
use transom_sansio::{Address, Config, Host, SocketCalls, address, ffi};
use transom_stack::StackConfig;
use transom_tcp::congestion::Vegas;
use transom_tcp::time::{Duration as Span, Instant};
use transom_tcp::{CongestionChoice, PathMtuDiscovery};
use transom_wire::{IpPacket, TcpPacket};

const DATA: &[u8] = b"ten bytes.";

/// The socket that an option is tried with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    /// Connected, of IPv4.
    Connection,
    /// Without a connection.
    Fresh,
    /// The same of IPv6.
    Fresh6,
}

/// An option: what is set and then read, in the form that Linux gives it.
struct Row {
    name: &'static str,
    on: On,
    /// Nothing: it is only read.
    value: Option<Vec<u8>>,
    /// A number that is refused, with `EINVAL`.
    refused: Option<i32>,
    /// What is read begins with these bytes, or reading fails with this number.
    shown: Result<Vec<u8>, i32>,
    rust: Option<Rust>,
}

type Read = fn(&TcpStream) -> io::Result<Vec<u8>>;

/// The same in Rust.
struct Rust {
    before: fn(TcpSocket) -> TcpSocket,
    set: fn(&TcpStream) -> io::Result<()>,
    /// Nothing: Rust does not read it.
    read: Option<Read>,
}

impl Row {
    fn on(self, on: On) -> Row {
        Row { on, ..self }
    }

    fn refuses(self, number: i32) -> Row {
        Row { refused: Some(number), ..self }
    }

    fn shown(self, bytes: Vec<u8>) -> Row {
        Row { shown: Ok(bytes), ..self }
    }

    fn rust(
        self,
        before: fn(TcpSocket) -> TcpSocket,
        set: fn(&TcpStream) -> io::Result<()>,
        read: Read,
    ) -> Row {
        Row { rust: Some(Rust { before, set, read: Some(read) }), ..self }
    }

    /// What Rust only reads.
    fn read_by(self, read: Read) -> Row {
        self.rust(|socket| socket, |_| Ok(()), read)
    }

    /// What Rust only sets.
    fn set_by(
        self,
        before: fn(TcpSocket) -> TcpSocket,
        set: fn(&TcpStream) -> io::Result<()>,
    ) -> Row {
        Row { rust: Some(Rust { before, set, read: None }), ..self }
    }

    fn entry(&self) -> &'static OptionEntry {
        OPTIONS.iter().find(|entry| entry.name == self.name).expect("it is in the table")
    }

    fn is_v6(&self) -> bool {
        self.entry().level == IPPROTO_IPV6
    }
}

/// An option that is set to `value`, and shown so.
fn row(name: &'static str, value: Vec<u8>) -> Row {
    let shown = Ok(value.clone());
    Row { name, on: On::Connection, value: Some(value), refused: None, shown, rust: None }
}

fn number(name: &'static str, value: i32) -> Row {
    row(name, int(value))
}

fn read_only(name: &'static str, shown: Vec<u8>) -> Row {
    Row { value: None, ..row(name, shown) }
}

fn int(value: impl TryInto<i32>) -> Vec<u8> {
    value.try_into().unwrap_or(i32::MAX).to_ne_bytes().to_vec()
}

/// `struct linger`.
fn linger(seconds: u64) -> Vec<u8> {
    [int(1), int(seconds)].concat()
}

/// `struct timeval`.
fn time(span: Option<Duration>) -> Vec<u8> {
    let span = span.unwrap_or_default();
    let halves = [span.as_secs() as i64, i64::from(span.subsec_micros())];
    halves.map(i64::to_ne_bytes).concat()
}

const SPAN: Option<Duration> = Some(Duration::from_millis(2500));

fn keep() -> Option<KeepAlive> {
    let keep = KeepAlive::default().with_idle(Span::from_secs(1));
    Some(keep.with_interval(Span::from_secs(7)).with_probes(4))
}

fn kept(stream: &TcpStream, value: fn(KeepAlive) -> u64) -> io::Result<Vec<u8>> {
    Ok(int(stream.settings()?.keep_alive.map_or(0, value)))
}

fn vegas() -> CongestionChoice {
    CongestionChoice::from(Vegas::default())
}

fn rows() -> Vec<Row> {
    let alive = |row: Row, read| {
        row.rust(
            |s| s.option(Setting::KeepAlive(keep())),
            |s| s.set_option(Setting::KeepAlive(keep())),
            read,
        )
    };
    let ttl = |row: Row| {
        row.rust(
            |s| s.option(SocketOption::TimeToLive(33)),
            |s| s.set_ttl(33),
            |s| Ok(int(s.ttl()?)),
        )
    };
    let tos = |row: Row| {
        row.rust(
            |s| s.option(SocketOption::TypeOfService(0x28)),
            |s| s.set_option(SocketOption::TypeOfService(0x28)),
            |s| Ok(int(s.tos()?)),
        )
    };
    let errors = |row: Row| row.set_by(|s| s, |s| s.set_option(Setting::SoftErrors(true)));
    let discovery = |row: Row| {
        row.set_by(
            |s| s.option(Setting::PathMtuDiscovery(PathMtuDiscovery::Do)),
            |s| s.set_option(Setting::PathMtuDiscovery(PathMtuDiscovery::Do)),
        )
    };
    vec![
        number("SO_REUSEADDR", 1),
        read_only("SO_TYPE", int(SOCK_STREAM)),
        read_only("SO_ERROR", int(0)).read_by(|s| Ok(int(s.take_error()?.is_some()))),
        number("SO_SNDBUF", 50_000).shown(int(100_000)).rust(
            |s| s.option(Setting::SendBuffer(50_000)),
            |s| s.set_option(Setting::SendBuffer(50_000)),
            |s| Ok(int(2 * s.info()?.snd_buffer)),
        ),
        number("SO_RCVBUF", 50_000).shown(int(100_000)).rust(
            |s| s.option(Setting::ReceiveBuffer(50_000)),
            |s| s.set_option(Setting::ReceiveBuffer(50_000)),
            |s| Ok(int(2 * s.info()?.rcv_buffer)),
        ),
        alive(number("SO_KEEPALIVE", 1), |s| kept(s, |_| 1)),
        number("SO_OOBINLINE", 1),
        row("SO_LINGER", linger(5)).rust(
            |s| s.linger(Some(Duration::from_secs(5))),
            |s| s.set_linger(Some(Duration::from_secs(5))),
            |s| Ok(s.linger()?.map_or(vec![], |span| linger(span.as_secs()))),
        ),
        row("SO_RCVTIMEO", time(SPAN)).rust(
            |s| s.read_timeout(SPAN),
            |s| s.set_read_timeout(SPAN),
            |s| Ok(time(s.read_timeout()?)),
        ),
        row("SO_SNDTIMEO", time(SPAN)).rust(
            |s| s.write_timeout(SPAN),
            |s| s.set_write_timeout(SPAN),
            |s| Ok(time(s.write_timeout()?)),
        ),
        number("SO_RCVLOWAT", 10).rust(
            |s| s.option(Setting::ReceiveLowWater(10)),
            |s| s.set_option(Setting::ReceiveLowWater(10)),
            |s| Ok(int(s.settings()?.receive_low_water)),
        ),
        read_only("SO_SNDLOWAT", int(1)),
        read_only("SO_ACCEPTCONN", int(0)),
        read_only("SO_PROTOCOL", int(IPPROTO_TCP)),
        read_only("SO_DOMAIN", int(AF_INET)),
        number("TCP_NODELAY", 1).rust(
            |s| s.option(Setting::NoDelay(true)),
            |s| s.set_nodelay(true),
            |s| Ok(int(s.nodelay()?)),
        ),
        // A connection shows the size that it has.
        number("TCP_MAXSEG", 1000).on(On::Fresh).refuses(87),
        number("TCP_CORK", 1).rust(
            |s| s.option(Setting::Cork(true)),
            |s| s.set_option(Setting::Cork(true)),
            |s| Ok(int(s.settings()?.cork)),
        ),
        alive(number("TCP_KEEPIDLE", 1), |s| kept(s, |keep| keep.idle.as_millis() / 1000))
            .refuses(0),
        alive(number("TCP_KEEPINTVL", 7), |s| kept(s, |keep| keep.interval.as_millis() / 1000))
            .refuses(32_768),
        alive(number("TCP_KEEPCNT", 4), |s| kept(s, |keep| keep.probes.into())).refuses(128),
        number("TCP_SYNCNT", 3).refuses(0),
        number("TCP_LINGER2", 30).rust(
            |s| s.option(Setting::FinWait2(Span::from_secs(30))),
            |s| s.set_option(Setting::FinWait2(Span::from_secs(30))),
            |s| Ok(int(s.settings()?.fin_wait_2.as_millis() / 1000)),
        ),
        // TCP_ESTABLISHED.
        read_only("TCP_INFO", vec![1])
            .read_by(|s| Ok(vec![(s.info()?.state == transom_tcp::State::Established).into()])),
        number("TCP_QUICKACK", 1).rust(
            |s| s.option(Setting::QuickAck(true)),
            |s| s.set_quickack(true),
            |s| Ok(int(s.quickack()?)),
        ),
        row("TCP_CONGESTION", b"vegas".to_vec()).shown(b"vegas\0".to_vec()).rust(
            |s| s.option(SocketOption::Congestion(vegas())),
            |s| s.set_option(SocketOption::Congestion(vegas())),
            |s| Ok(format!("{}\0", s.info()?.congestion).into_bytes()),
        ),
        number("TCP_USER_TIMEOUT", 50_000).refuses(-1).rust(
            |s| s.option(Setting::UserTimeout(Some(Span::from_secs(50)))),
            |s| s.set_option(Setting::UserTimeout(Some(Span::from_secs(50)))),
            |s| Ok(int(s.settings()?.user_timeout.map_or(0, |span| span.as_millis()))),
        ),
        number("TCP_FASTOPEN", 5).on(On::Fresh).refuses(-1),
        number("TCP_FASTOPEN_CONNECT", 1).on(On::Fresh).refuses(2),
        number("TCP_NOTSENT_LOWAT", 5000).rust(
            |s| s.option(Setting::NotsentLowWater(5000)),
            |s| s.set_option(Setting::NotsentLowWater(5000)),
            |s| Ok(int(s.settings()?.notsent_low_water)),
        ),
        tos(number("IP_TOS", 0x28)),
        ttl(number("IP_TTL", 33)).refuses(256),
        errors(number("IP_RECVERR", 1)),
        discovery(number("IP_MTU_DISCOVER", 2)).refuses(6),
        read_only("IP_MTU", vec![]).read_by(|s| Ok(int(s.info()?.path_mtu))),
        ttl(number("IPV6_UNICAST_HOPS", 33).on(On::Fresh6)).refuses(256),
        tos(number("IPV6_TCLASS", 0x28).on(On::Fresh6)).refuses(256),
        errors(number("IPV6_RECVERR", 1).on(On::Fresh6)),
        discovery(number("IPV6_MTU_DISCOVER", 2).on(On::Fresh6)).refuses(6),
        Row { shown: Err(ENOTCONN), ..read_only("IPV6_MTU", vec![]).on(On::Fresh6) },
        number("IPV6_V6ONLY", 1).on(On::Fresh6),
    ]
}

#[test]
fn every_option_of_the_table_is_tried() {
    let tried: BTreeSet<_> = rows().iter().map(|row| row.name).collect();
    let all: BTreeSet<_> = OPTIONS.iter().map(|entry| entry.name).collect();
    assert_eq!(tried, all);
    assert_eq!((rows().len(), OPTIONS.len()), (all.len(), all.len()));
}

/// What one option shows: whether a value out of range was refused, and what is read, as far as that is known before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    name: &'static str,
    refused: Option<Result<(), i32>>,
    shown: Result<Vec<u8>, i32>,
}

impl Seen {
    fn new(row: &Row, refused: Option<Result<(), i32>>, shown: Result<Vec<u8>, i32>) -> Seen {
        let len = row.shown.as_ref().map_or(0, Vec::len);
        let shown = shown.map(|bytes| bytes.get(..len).unwrap_or(&bytes).to_vec());
        Seen { name: row.name, refused, shown }
    }

    /// Checks that all options show what they show in every way in.
    #[track_caller]
    fn check(seen: &[Seen]) {
        assert_eq!(seen.len(), rows().len());
        for (row, seen) in rows().iter().zip(seen) {
            let refused = row.refused.map(|_| Err(EINVAL));
            assert_eq!(*seen, Seen::new(row, refused, row.shown.clone()));
        }
    }
}

/// `setsockopt` and `getsockopt`: the socket, the level, the number, and the value.
type Set<C> = fn(&mut C, On, i32, i32, &[u8]) -> Result<(), i32>;
type Get<C> = fn(&mut C, On, i32, i32) -> Result<Vec<u8>, i32>;

/// Sets every option, and then reads it, by Linux' calls.
fn seen_by_calls<C>(calls: &mut C, set: Set<C>, get: Get<C>) -> Vec<Seen> {
    let rows = rows();
    let mut refused = Vec::new();
    for row in &rows {
        let OptionEntry { level, number, .. } = *row.entry();
        refused.push(row.refused.map(|bad| set(calls, row.on, level, number, &int(bad))));
        let value = row.value.as_deref().map(|value| set(calls, row.on, level, number, value));
        assert_eq!(value.unwrap_or(Ok(())), Ok(()), "{}", row.name);
    }
    let mut read = |row: &Row| get(calls, row.on, row.entry().level, row.entry().number);
    rows.iter().zip(refused).map(|(row, refused)| Seen::new(row, refused, read(row))).collect()
}

/// The options of Rust, read from a stream.
fn read(stream: &TcpStream, v6: bool) -> Vec<(&'static str, Vec<u8>)> {
    let chosen = rows().into_iter().filter(|row| row.is_v6() == v6);
    let values = chosen.filter_map(|row| {
        let value = row.rust.as_ref()?.read?(stream).unwrap();
        let len = row.shown.as_ref().map_or(0, Vec::len);
        Some((row.name, value.get(..len).unwrap_or(&value).to_vec()))
    });
    values.collect()
}

/// What [`read`] gives.
fn readable(v6: bool) -> Vec<(&'static str, Vec<u8>)> {
    let chosen = rows().into_iter().filter(|row| row.is_v6() == v6);
    let readable = chosen.filter(|row| row.rust.as_ref().is_some_and(|rust| rust.read.is_some()));
    readable.map(|row| (row.name, row.shown.unwrap())).collect()
}

/// Sets the options of Rust.
fn set(stream: &TcpStream, v6: bool) {
    let rust = rows().into_iter().filter(|row| row.is_v6() == v6).filter_map(|row| row.rust);
    rust.for_each(|rust| (rust.set)(stream).unwrap());
}

/// The same before there is a connection.
fn set_before(socket: TcpSocket, v6: bool) -> TcpSocket {
    let rust = rows().into_iter().filter(|row| row.is_v6() == v6).filter_map(|row| row.rust);
    rust.fold(socket, |socket, rust| (rust.before)(socket))
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

const EXPECTED: Option<Effect> = Some(Effect { ttl: 33, service: 0x28, probed: true });

/// The effect in the packets of the end that sent the data, once it has.
fn effect<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> Option<Effect> {
    let mut found: Option<(Effect, u32)> = None;
    for packet in packets {
        let Ok(ip @ IpPacket::V4(_)) = IpPacket::parse(packet) else { continue };
        let tcp = TcpPacket::parse(ip.payload()).unwrap();
        let seq = tcp.header.seq.get();
        match &mut found {
            None if tcp.payload == DATA => {
                let effect = Effect {
                    ttl: ip.hop_limit(),
                    service: ip.traffic_class() & 0xfc,
                    probed: false,
                };
                found = Some((effect, seq.wrapping_add(DATA.len() as u32)));
            }
            Some((effect, next)) if tcp.payload.is_empty() => {
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

const V4: &str = "10.0.0.2:80";
const V6: &str = "[fd00::2]:80";

impl Stacks {
    fn new() -> Self {
        let (near, far) = pair(&MemoryConfig::default()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let capture = Capture::new(file.reopen().unwrap()).unwrap();
        let tap = Tapped::new(near, capture, "memory").unwrap();
        let builder = |number: u8| {
            let v6 = [0xfd00, 0, 0, 0, 0, 0, 0, u16::from(number)];
            Stack::builder().address([10, 0, 0, number].into(), 24).address(v6.into(), 64)
        };
        Stacks {
            ours: builder(1).start(tap).unwrap(),
            theirs: builder(2).start(far).unwrap(),
            file,
        }
    }

    /// Sends, and waits for the keep-alive.
    fn effect(&self, stream: &TcpStream) -> Option<Effect> {
        let mut writer = stream.try_clone().unwrap();
        writer.write_all(DATA).unwrap();
        for _ in 0..200 {
            let file = std::fs::read(self.file.path()).unwrap();
            let effect = effect(packets_from(&file, [10, 0, 0, 1]));
            if effect.is_some_and(|effect| effect.probed) {
                return effect;
            }
            thread::sleep(Duration::from_millis(100));
        }
        None
    }
}

#[test]
fn a_stream_has_them() {
    let stacks = Stacks::new();
    for (at, v6) in [(V6, true), (V4, false)] {
        let listener = stacks.theirs.listen(at).unwrap();
        let stream = stacks.ours.connect(at).unwrap();
        let _accepted = listener.accept().unwrap();
        set(&stream, v6);
        assert_eq!(read(&stream, v6), readable(v6));
        if !v6 {
            assert_eq!(stacks.effect(&stream), EXPECTED);
        }
    }
}

#[test]
fn a_socket_has_them_before_it_is_a_stream() {
    let stacks = Stacks::new();
    for (at, v6) in [(V6, true), (V4, false)] {
        let listener = stacks.theirs.listen(at).unwrap();
        let socket = set_before(TcpSocket::new(&stacks.ours), v6);
        let stream = socket.connect(at.parse().unwrap()).unwrap();
        let _accepted = listener.accept().unwrap();
        assert_eq!(read(&stream, v6), readable(v6));
        if !v6 {
            assert_eq!(stacks.effect(&stream), EXPECTED);
        }
    }
}

#[test]
fn a_stream_of_tokio_has_them() {
    let stacks = Stacks::new();
    let listener = stacks.theirs.listen(V4).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let connect = transom_net::tokio::TcpStream::connect(&stacks.ours, V4);
    let stream = runtime.block_on(connect).unwrap();
    let _accepted = listener.accept().unwrap();
    set(&stream, false);
    assert_eq!(read(&stream, false), readable(false));
    assert_eq!(stacks.effect(&stream), EXPECTED);
    // Those that Tokio's own type has.
    assert_eq!((stream.ttl().unwrap(), stream.nodelay().unwrap()), (33, true));
    stream.set_ttl(9).unwrap();
    assert_eq!(stream.ttl().unwrap(), 9);
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

/// A host, and a descriptor of each kind.
struct Calls<H> {
    host: H,
    connection: i32,
    fresh: i32,
    fresh6: i32,
}

impl<H> Calls<H> {
    fn fd(&self, on: On) -> i32 {
        match on {
            On::Connection => self.connection,
            On::Fresh => self.fresh,
            On::Fresh6 => self.fresh6,
        }
    }
}

#[test]
fn a_socket_has_them() {
    let host = |address: &str| {
        let config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
        Host::new(config, Instant::ZERO).unwrap()
    };
    let (mut a, mut b) = (host("10.0.0.1"), host("10.0.0.2"));
    let at = V4.parse().unwrap();
    let listener = b.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    b.bind(listener, at).unwrap();
    b.listen(listener, 1).unwrap();
    let connection = a.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    // The call would wait; its packets go on meanwhile.
    assert!(a.connect(connection, at).is_err());
    let mut sent = run(&mut a, &mut b, Instant::from_millis(100));
    a.connect(connection, at).unwrap();
    let fresh = a.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    let fresh6 = a.socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    let mut calls = Calls { host: a, connection, fresh, fresh6 };
    let seen = seen_by_calls(
        &mut calls,
        |calls, on, level, number, value| {
            let fd = calls.fd(on);
            calls.host.set_option(fd, level, number, value).map_err(|error| error.0)
        },
        |calls, on, level, number| {
            let fd = calls.fd(on);
            calls.host.option(fd, level, number).map_err(|error| error.0)
        },
    );
    Seen::check(&seen);
    calls.host.send(connection, DATA, 0).unwrap();
    sent.extend(run(&mut calls.host, &mut b, Instant::from_millis(3000)));
    assert_eq!(effect(sent.iter().map(Vec::as_slice)), EXPECTED);
}

/// The functions that C programs call, on a connection of a host with itself.
#[test]
fn a_socket_of_c_has_them() {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&[10, 0, 0, 1]);
    let address = [Address { family: AF_INET as u16, prefix: 24, bytes }];
    let config = Config { addresses: address.as_ptr(), address_count: 1, ..Config::default() };
    // SAFETY: the configuration and its address live until the call returns, and it says how many there are.
    let host = unsafe { ffi::ts_create(&config) };
    assert_eq!(ffi::ts_set_patience(host, 1_000_000_000), 0);
    let socket = |family| ffi::ts_socket(host, family, SOCK_STREAM, 0);
    let at = address::encode("10.0.0.1:80".parse().unwrap());
    let (place, len) = (at.as_ptr().cast::<c_void>(), at.len() as u32);
    let (listener, connection) = (socket(AF_INET), socket(AF_INET));
    // SAFETY: the address is as long as the call is told, and lives until it returns.
    assert_eq!(unsafe { ffi::ts_bind(host, listener, place, len) }, 0);
    assert_eq!(ffi::ts_listen(host, listener, 1), 0);
    // SAFETY: the same.
    assert_eq!(unsafe { ffi::ts_connect(host, connection, place, len) }, 0);
    let mut calls = Calls { host, connection, fresh: socket(AF_INET), fresh6: socket(AF_INET6) };
    let seen = seen_by_calls(
        &mut calls,
        |calls, on, level, number, value| {
            let (fd, len) = (calls.fd(on), value.len() as u32);
            // SAFETY: the value is as long as the call is told, and lives until it returns.
            let status = unsafe {
                ffi::ts_setsockopt(calls.host, fd, level, number, value.as_ptr().cast(), len)
            };
            if status == 0 { Ok(()) } else { Err(-status) }
        },
        |calls, on, level, number| {
            let (mut value, mut len) = ([0; 512], 512);
            let fd = calls.fd(on);
            // SAFETY: there is as much room as the call is told.
            let status = unsafe {
                let place = value.as_mut_ptr().cast();
                ffi::ts_getsockopt(calls.host, fd, level, number, place, &mut len)
            };
            if status == 0 { Ok(value[..len as usize].to_vec()) } else { Err(-status) }
        },
    );
    assert_eq!(ffi::ts_destroy(host), 0);
    Seen::check(&seen);
}

#[test]
fn a_program_under_exec_has_them() {
    if !available(&["python3"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let rows = rows();
    let lines = rows.iter().map(|row| {
        let OptionEntry { level, number, .. } = *row.entry();
        let value =
            row.value.as_deref().map_or("None".to_owned(), |value| format!("'{}'", hex(value)));
        let refused = row.refused.map_or("None".to_owned(), |bad| format!("'{}'", hex(&int(bad))));
        format!("('{:?}', {level}, {number}, {value}, {refused}),\n", row.on)
    });
    let client = format!(
        "import time
from socket import *
sockets = {{
    'Connection': create_connection(('10.9.0.1', 7000)),
    'Fresh': socket(AF_INET), 'Fresh6': socket(AF_INET6)}}
rows = [{}]
refused = []
def trial(call):
    try: return call()
    except OSError as error: return error.errno
def read(on, level, number, *_):
    return trial(lambda: sockets[on].getsockopt(level, number, 512).hex() + 'h')
# With another type of service, the kernel forgets the MTU until it sends.
first = [read(*row) for row in rows]
for on, level, number, value, bad in rows:
    def put(value): sockets[on].setsockopt(level, number, bytes.fromhex(value))
    refused.append(bad and trial(lambda: put(bad)))
    if value: put(value)
for row, bad, shown in zip(rows, refused, first): print(bad, read(*row) if row[3] else shown)
sockets['Connection'].sendall(b'{}'); time.sleep(4)
",
        lines.collect::<String>(),
        std::str::from_utf8(DATA).unwrap()
    );
    let server =
        "from socket import *\nc, _ = create_server(('', 7000)).accept()\nwhile c.recv(99): pass\n";
    std::fs::write(directory.path().join("client.py"), client).unwrap();
    std::fs::write(directory.path().join("server.py"), server).unwrap();
    let script =
        "python3 server.py & listening 7000; $TRANSOM exec --pcap p.pcapng -- python3 client.py";
    let text = inside(directory.path(), script).success().text();
    assert_eq!(text.lines().count(), rows.len(), "{text}");
    let seen = rows.iter().zip(text.lines()).map(|(row, line)| {
        let (refused, shown) = line.split_once(' ').unwrap();
        let refused = row.refused.map(|_| refused.parse().map_or(Ok(()), Err));
        let shown = match shown.strip_suffix('h') {
            Some(hex) => Ok((0..hex.len() / 2)
                .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
                .collect()),
            None => Err(shown.parse().unwrap()),
        };
        Seen::new(row, refused, shown)
    });
    Seen::check(&seen.collect::<Vec<_>>());
    let file = std::fs::read(directory.path().join("p.pcapng")).unwrap();
    assert_eq!(effect(packets_from(&file, [10, 9, 0, 2])), EXPECTED);
}
