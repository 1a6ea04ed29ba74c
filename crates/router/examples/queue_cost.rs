//! What a packet costs in each queue discipline: `cargo run --release -p transom-router --example queue_cost`.
//!
//! Sixteen flows offer a twentieth more than the link carries, so that every queue stands and signals. The flow of a packet is found in its header, where the
//! discipline keeps flows apart. Printed are nanoseconds for a packet that comes and leaves, and signals for each thousand.

use std::time::Instant as Clock;

use transom_base::time::{Duration, Instant};
use transom_router::queue::{Config, Discipline, Event, FlowHasher, Item};
use transom_wire::ip::Ecn;

const PACKETS: u64 = 400_000;
const QUEUES: [&str; 8] = [
    "drop-tail(300 packets)",
    "red(300 packets, gentle, ecn)",
    "codel(300 packets, ecn)",
    "pie(300 packets, ecn)",
    "fq-codel(300 packets)",
    "dualpi2(300 packets)",
    "cake(450kB)",
    "fq(300 packets)",
];

/// The header of a packet of TCP of this flow.
fn header(flow: u8) -> [u8; 40] {
    let mut packet = [0; 40];
    packet[0] = 0x45;
    packet[9] = 6;
    packet[12..20].copy_from_slice(&[10, 0, 0, flow, 10, 0, 1, 1]);
    packet[20..24].copy_from_slice(&[0, 80, 1, flow]);
    packet
}

fn main() {
    println!("{:<32}{:>12}{:>12}", "queue", "ns", "signals");
    for text in QUEUES {
        let Ok(config) = text.parse::<Config>() else { continue };
        // 100 Mbit/s: a packet of 1500 bytes each 120 µs.
        let Ok(mut queue) = config.on_link(100_000_000).build::<u64>() else { continue };
        let queue: &mut dyn Discipline<u64> = &mut *queue;
        let hasher = config.tells_flows_apart().then(|| FlowHasher::new([7; 16]));
        let headers: Vec<[u8; 40]> = (0..16).map(header).collect();
        let (mut state, mut signals, mut leaves) = (1u64, 0u64, Instant::ZERO);
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state ^ (state >> 31)
        };
        let begun = Clock::now();
        for number in 0..PACKETS {
            let now = Instant::from_micros(number * 114);
            while leaves <= now {
                queue.dequeue(leaves, &mut random, &mut |_| signals += 1);
                leaves += Duration::from_micros(120);
            }
            let header = &headers[(number % 16) as usize];
            let flow = hasher.as_ref().map(|hasher| hasher.flow(header)).unwrap_or_default();
            let ecn = if number % 2 == 0 { Ecn::Ect1 } else { Ecn::Ect0 };
            let item = Item::new(number, 1500, ecn).of_flow(flow);
            queue.enqueue(now, item, &mut random, &mut |event: Event<'_, u64>| {
                signals += u64::from(matches!(event, Event::Dropped { .. } | Event::Marked { .. }));
            });
        }
        let nanos = begun.elapsed().as_nanos() as u64 / PACKETS;
        println!("{text:<32}{nanos:>12}{:>12}", signals * 1000 / PACKETS);
    }
}
