//! Nothing is allocated per segment: counted, not assumed.
//!
//! Two hosts in one thread exchange data in virtual time. Once buffers and tables have their size, tens of thousands of
//! segments must go by without a single allocation, at both ends and in what carries packets between them.

use transom_benches::counting::{CountingAllocator, Counts, count, is_installed};
use transom_benches::pair::{Pair, fixed_buffers};
use transom_stack::{ConnectionId, Stack};
use transom_tcp::Profile;
use transom_tcp::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What an application writes at once.
const CHUNK: usize = 64 * 1024;
/// Rounds before counting begins: enough for slow start and the autotuning of buffers to end.
const WARM_UP: u32 = 2_000;
/// Rounds that are counted.
const ROUNDS: u32 = 1_000;

/// Which ends send.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Senders {
    Client,
    Server,
    Both,
}

/// A pair, its clock and the memory of the applications at both ends.
struct Scene {
    pair: Pair,
    now: Instant,
    out: Vec<u8>,
    into: Vec<u8>,
}

impl Scene {
    fn new(profile: Profile) -> Self {
        let now = Instant::from_secs(1);
        let pair = Pair::connect(profile, now).unwrap();
        Scene { pair, now, out: vec![1; CHUNK], into: vec![0; CHUNK] }
    }

    /// A round of a bulk transfer; returns the bytes read and the packets carried.
    fn bulk_round(&mut self, senders: Senders) -> (u64, u64) {
        // Longer than a round trip would take, so that timers and the autotuning by round trips have their say.
        self.now += Duration::from_micros(500);
        let now = self.now;
        self.pair.tick(now);
        let Pair { client, server, at_client, at_server, .. } = &mut self.pair;
        if senders != Senders::Server {
            let _ = client.write(*at_client, now, &self.out);
        }
        if senders != Senders::Client {
            let _ = server.write(*at_server, now, &self.out);
        }
        let carried = self.pair.exchange(now);
        let Pair { client, server, at_client, at_server, .. } = &mut self.pair;
        let read = read_all(client, *at_client, now, &mut self.into)
            + read_all(server, *at_server, now, &mut self.into);
        (read, carried)
    }

    /// A request of `len` bytes and an answer of the same length; returns the packets carried.
    fn request(&mut self, len: usize) -> u64 {
        self.now += Duration::from_micros(50);
        let now = self.now;
        self.pair.tick(now);
        let Pair { client, at_client, .. } = &mut self.pair;
        assert_eq!(client.write(*at_client, now, &self.out[..len]), Ok(len));
        let mut carried = self.pair.exchange(now);
        let Pair { server, at_server, .. } = &mut self.pair;
        assert_eq!(read_all(server, *at_server, now, &mut self.into), len as u64);
        assert_eq!(server.write(*at_server, now, &self.out[..len]), Ok(len));
        carried += self.pair.exchange(now);
        let Pair { client, at_client, .. } = &mut self.pair;
        assert_eq!(read_all(client, *at_client, now, &mut self.into), len as u64);
        carried
    }
}

fn read_all(host: &mut Stack, id: ConnectionId, now: Instant, into: &mut [u8]) -> u64 {
    let mut total = 0;
    while let Ok(read @ 1..) = host.read(id, now, into) {
        total += read as u64;
    }
    total
}

fn bulk(profile: Profile, senders: Senders) {
    let mut scene = Scene::new(profile);
    for _ in 0..WARM_UP {
        scene.bulk_round(senders);
    }
    let mut read = 0;
    let mut carried = 0;
    let ((), counts) = count(|| {
        for _ in 0..ROUNDS {
            let (bytes, packets) = scene.bulk_round(senders);
            read += bytes;
            carried += packets;
        }
    });
    let expected = u64::from(ROUNDS) * CHUNK as u64 * if senders == Senders::Both { 2 } else { 1 };
    assert!(read >= expected * 9 / 10, "only {read} bytes of {expected} got through");
    assert!(carried >= read / 1460, "{carried} packets cannot have carried {read} bytes");
    assert_eq!(counts.allocations, 0, "for {carried} packets");
}

#[test]
fn the_count_counts() {
    assert!(is_installed());
    let (kept, counts) = count(|| {
        drop(std::hint::black_box(vec![1u8; 300]));
        let mut grows = Vec::<u8>::with_capacity(100);
        grows.reserve_exact(1000);
        std::hint::black_box(grows)
    });
    assert_eq!(counts, Counts { allocations: 3, live_bytes: 1000 });
    drop(kept);
    let ((kept, inner), outer) = count(|| count(|| std::hint::black_box(Box::new(1u64))));
    assert_eq!(inner, Counts { allocations: 1, live_bytes: 8 });
    assert_eq!(outer, Counts::default(), "what an inner count has seen is its own");
    drop(kept);
}

#[test]
fn bulk_transfer_allocates_nothing_with_buffers_of_fixed_size() {
    for senders in [Senders::Client, Senders::Server, Senders::Both] {
        bulk(fixed_buffers(256 * 1024), senders);
    }
}

#[test]
fn bulk_transfer_allocates_nothing_once_buffers_are_tuned() {
    for senders in [Senders::Client, Senders::Server, Senders::Both] {
        bulk(Profile::classic(), senders);
    }
}

#[test]
fn request_and_response_allocate_nothing() {
    for len in [1, 64, 1_000, 10_000] {
        let mut scene = Scene::new(Profile::classic().with_nodelay(true));
        for _ in 0..WARM_UP {
            scene.request(len);
        }
        let mut carried = 0;
        let ((), counts) = count(|| (0..ROUNDS).for_each(|_| carried += scene.request(len)));
        assert!(carried >= u64::from(ROUNDS) * 2);
        assert_eq!(counts.allocations, 0, "for {carried} packets of requests of {len} bytes");
    }
}
