//! A reader that is slower than its sender and has no flow control: whatever was dropped comes again, however it is delivered.

use std::sync::Arc;
use transom_sim::link::LinkConfig;
use transom_sim::{Pair, Side};
use transom_stack::{ConnectionId, ListenConfig, Stack, StackConfig};
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Adu, ConnectionState, Delivery, Piece};

const LEN: usize = 400_000;
/// What the reader takes at a time, and how often: 400 kB/s, where the path carries twelve times that.
const BITE: usize = 20_000;
const EVERY: Duration = Duration::from_millis(50);
const UNIT: usize = 4_000;

fn byte(at: usize) -> u8 {
    ((at * 31) ^ (at >> 8)) as u8
}

fn host(address: &str, tcp: &str) -> Stack {
    let mut config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
    config.profile = Arc::new(compose(tcp).unwrap());
    Stack::new(config, Instant::ZERO).unwrap()
}

/// Moves the bytes to a reader with these units, and says what became of its end of the connection, and the most it ever held.
fn transfer(sender: &str, reader: &str, seed: u64) -> (ConnectionState, usize) {
    let link: LinkConfig =
        "rate=40Mbit/s, delay=10ms, queue=60 packets, loss=0.5%".parse().unwrap();
    let (alice, mut bob) = (host("10.0.0.1", sender), host("10.0.0.2", reader));
    let listener = bob.listen("0.0.0.0:80".parse().unwrap(), ListenConfig::default()).unwrap();
    let mut pair = Pair::new(alice, bob, [&link, &link], seed, Instant::ZERO);
    let remote = "10.0.0.2:80".parse().unwrap();
    let client = pair.host(Side::A).connect(Instant::ZERO, None, remote, None).unwrap();
    let bytes: Vec<u8> = (0..LEN).map(byte).collect();
    let (mut written, mut server, mut most) = (0, None, 0);
    let mut had = vec![false; LEN];
    let mut reads_at = Instant::ZERO;
    loop {
        let now = pair.now();
        assert!(now < Instant::from_secs(3600), "it does not end");
        written += write(pair.host(Side::A), client, now, &bytes[written..]);
        if written == LEN {
            pair.host(Side::A).shutdown_write(client, now).unwrap();
        }
        let bob = pair.host(Side::B);
        server = server.or_else(|| bob.accept(listener).map(|(id, _)| id));
        if let Some(id) = server {
            bob.check().unwrap();
            most = most.max(bob.connection(id).unwrap().readable());
            if now >= reads_at {
                reads_at = now + EVERY;
                if read(bob, id, now, &mut had) {
                    assert!(!had.contains(&false), "something is missing");
                    return (bob.connection(id).unwrap().info(now), most);
                }
            }
        }
        pair.step(reads_at.max(now + Duration::from_millis(1)));
    }
}

fn write(host: &mut Stack, id: ConnectionId, now: Instant, bytes: &[u8]) -> usize {
    if host.connection(id).unwrap().delivery() != Delivery::Units {
        return host.write(id, now, bytes).unwrap_or(0);
    }
    // A unit begins with its number.
    let mut written = 0;
    for unit in bytes.chunks(UNIT) {
        let number = (LEN - bytes.len() + written) / UNIT;
        let unit = [&(number as u32).to_be_bytes(), unit].concat();
        if host.with_connection(id, now, |c| c.send_adu(now, &unit)).unwrap().is_err() {
            break;
        }
        written += unit.len() - 4;
    }
    written
}

/// Takes a bite. True at the end of the stream.
fn read(host: &mut Stack, id: ConnectionId, now: Instant, had: &mut [bool]) -> bool {
    let mut take = |at: usize, bytes: &[u8]| {
        let wrong = (at..).zip(bytes).find(|&(at, &got)| got != byte(at));
        assert_eq!(
            wrong.map(|(at, got)| (at, *got, byte(at))),
            None,
            "of {} bytes at {at}",
            bytes.len()
        );
        assert!(!had[at..at + bytes.len()].contains(&true), "bytes at {at} came twice");
        had[at..at + bytes.len()].fill(true);
        bytes.len()
    };
    let mut left = BITE;
    while left > 0 {
        let mut buffer = vec![0; left];
        left = left.saturating_sub(if host.connection(id).unwrap().delivery() == Delivery::Units {
            match host.with_connection(id, now, |c| c.recv_adu(now, &mut buffer)).unwrap() {
                Ok(Adu::Unit { .. }) => {
                    let number = u32::from_be_bytes(buffer[..4].try_into().unwrap());
                    take(number as usize * UNIT, &buffer[4..])
                }
                Ok(Adu::End { .. }) => return true,
                _ => return false,
            }
        } else {
            match host.with_connection(id, now, |c| c.read_unordered(now, &mut buffer)).unwrap() {
                Ok(Piece::Data { offset, len, .. }) => take(offset as usize, &buffer[..len]),
                Ok(Piece::End { total }) => {
                    assert_eq!(total, LEN as u64);
                    return true;
                }
                _ => return false,
            }
        });
    }
    false
}

#[test]
fn segments_dropped_for_want_of_memory_come_again() {
    for (sender, ordering) in [
        ("in-order", "in-order"),
        ("in-order", "unordered"),
        ("adu", "adu"),
        ("adu-unordered", "adu-unordered"),
    ] {
        for recovery in ["sack", "newreno", "rack-tlp", "go-back-n"] {
            for seed in 0..4 {
                let sender = format!("{sender} + {recovery}");
                let reader = format!("{ordering} + no-flow-control(memory=40kB)");
                let (info, most) = transfer(&sender, &reader, seed);
                assert!(info.rcv_dropped > 0, "{sender}: nothing was dropped");
                assert!(most <= 40_000, "{sender}: {most} bytes held");
                assert_eq!(info.flow, "no-flow-control");
            }
        }
    }
}

/// With flow control nothing has to be dropped, and nothing is.
#[test]
fn with_a_window_nothing_is_dropped() {
    for reader in ["unordered + fixed-window(size=40kB)", "in-order + receive-window(initial=40kB)"]
    {
        let (info, most) = transfer("sack", reader, 1);
        assert_eq!(info.rcv_dropped, 0);
        assert!(most <= 45_000, "{reader}: {most} bytes held");
    }
}
