use transom_stack::{config::StackConfig, listener::ListenConfig, stack::Stack};
use transom_tcp::{packet::BufferPool, time::Instant};
use transom_wire::offload::RxOffload;
fn carry(from: &mut Stack, to: &mut Stack, pool: &mut BufferPool, now: Instant) -> u64 {
    let mut carried = 0;
    while let Some(packet) = from.poll_transmit(now) {
        let mut buffer = pool.take();
        let bytes = buffer.bytes_mut();
        let mut at = 0;
        for part in [packet.headers, packet.payload[0], packet.payload[1]] {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        if let Some(b) = to.on_owned_packet(now, buffer, 0..at, RxOffload::default()) {
            pool.put(b);
        }
        while let Some(b) = to.reclaim() {
            pool.put(b);
        }
        carried += 1;
    }
    carried
}
fn main() {
    let total: u64 = std::env::args().nth(1).map_or(1 << 32, |s| s.parse().unwrap());
    let clock = std::time::Instant::now();
    let now = || Instant::from_nanos(1_000_000_000 + clock.elapsed().as_nanos() as u64);
    let host =
        |a: &str| Stack::new(StackConfig::new(vec![(a.parse().unwrap(), 24)]), now()).unwrap();
    let (mut a, mut b) = (host("10.0.0.1"), host("10.0.0.2"));
    let l = b.listen("0.0.0.0:80".parse().unwrap(), ListenConfig::default()).unwrap();
    let mut pool = BufferPool::new(1500, 8192);
    let c = a.connect(now(), None, "10.0.0.2:80".parse().unwrap(), None).unwrap();
    while carry(&mut a, &mut b, &mut pool, now()) + carry(&mut b, &mut a, &mut pool, now()) > 0 {}
    let (s, _) = b.accept(l).unwrap();
    let data = vec![3u8; 65536];
    let mut out = vec![0u8; 65536];
    let mut got = 0u64;
    let mut packets = 0;
    let start = std::time::Instant::now();
    while got < total {
        let _ = a.write(c, now(), &data);
        packets += carry(&mut a, &mut b, &mut pool, now());
        while let Ok(n) = b.read(s, now(), &mut out) {
            if n == 0 {
                break;
            }
            got += n as u64;
        }
        carry(&mut b, &mut a, &mut pool, now());
        a.on_timeout(now());
        b.on_timeout(now());
        while a.poll_event().is_some() {}
        while b.poll_event().is_some() {}
    }
    let e = start.elapsed();
    println!(
        "{:.2} Gb/s, {packets} packets, {:.0} ns each; {:?}",
        got as f64 * 8.0 / e.as_nanos() as f64,
        e.as_nanos() as f64 / packets as f64,
        a.connection(c).map(|c| (
            c.info(now()).cwnd,
            c.info(now()).snd_buffer,
            c.info(now()).counters
        ))
    );
}
