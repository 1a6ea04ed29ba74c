//! Any calls in any order, with any packets: an error or a result, never a panic, and the stack's invariants hold.
//!
//! Seeded; a failure names its seed, and `TRANSOM_SEED` runs that one alone.

use crate::support;
use libc::{
    AF_INET, AF_INET6, EFAULT, EIO, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOCK_NONBLOCK,
    SOCK_STREAM, SOL_SOCKET,
};

use crate::support::{host, ms};
use transom_sansio::{Host, PollFd, Result, SocketCalls};
use transom_tcp::time::Duration;

const SEEDS: u64 = 300;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }

    fn int(&mut self) -> i32 {
        match self.below(4) {
            0 => self.next() as i32,
            1 => -1,
            _ => self.below(300) as i32,
        }
    }
}

/// What a call gave, as far as it matters: these errors are the C boundary's alone.
fn sane<T>(result: Result<T>) {
    if let Err(error) = result {
        assert!(![EIO, EFAULT].contains(&error.0), "{error:?}");
    }
}

/// One call on one of the first few descriptors.
fn call(host: &mut Host, random: &mut Random) {
    let fd = 3 + random.below(12) as i32;
    let port = 80 + random.below(3);
    let address = [
        "0.0.0.0",
        "192.0.2.1",
        "192.0.2.2",
        "192.0.2.1",
        "192.0.2.2",
        "224.0.0.1",
        "[::]",
        "[::ffff:192.0.2.1]",
        "[::ffff:192.0.2.2]",
    ];
    let address = address[random.below(9) as usize];
    let address = support::at(&format!("{address}:{port}"));
    let flags = [0, 1, 2, 0x40, 0x41, 0x100, 0x102, 0x20, 0x4000][random.below(9) as usize];
    let mut buffer = vec![5; random.below(5000) as usize];
    match random.below(24) {
        0 | 1 => sane(host.socket(
            [AF_INET, AF_INET6][random.below(2) as usize],
            SOCK_STREAM | [0, SOCK_NONBLOCK][random.below(2) as usize],
            0,
        )),
        2 => sane(host.bind(fd, address)),
        3 => sane(host.listen(fd, random.int())),
        4 | 5 => sane(host.connect(fd, address)),
        6 => sane(host.accept(fd, 0)),
        7..=9 => sane(host.send(fd, &buffer, flags)),
        10..=12 => sane(host.recv(fd, &mut buffer, flags)),
        13 if random.below(3) == 0 => sane(host.shutdown(fd, random.below(4) as i32)),
        14 if random.below(3) == 0 => sane(host.close(fd)),
        13 | 14 => sane(host.accept(fd, SOCK_NONBLOCK)),
        15 => {
            let level = [SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6];
            let level = level[random.below(4) as usize];
            let name = random.below(45) as i32;
            let value = [random.int().to_ne_bytes(), random.int().to_ne_bytes()].concat();
            sane(host.set_option(fd, level, name, &value[..random.below(9) as usize]));
            sane(host.option(fd, level, name));
        }
        16 => {
            let mut fds = [fd, fd + 1].map(|fd| PollFd { fd, events: -1, revents: 0 });
            sane(host.poll(&mut fds, random.int()));
        }
        17 => sane(host.ioctl(fd, [0x541B, 0x5411, 0x8905, 0x894B][random.below(4) as usize])),
        18 => sane(host.set_patience(ms(random.below(3) * 100))),
        _ => {
            let later = host.now() + Duration::from_nanos(random.next() >> (28 + random.below(20)));
            sane(host.run_to(later));
        }
    }
}

/// Everything that left the hosts goes to the other one, some of it changed, late, twice or not at all.
fn carry(hosts: &mut [Host; 2], random: &mut Random) {
    for from in 0..2 {
        while let Some((_, mut packet)) = hosts[from].next_packet() {
            let to = &mut hosts[1 - from];
            if random.below(10) == 0 {
                let at = random.below(packet.len() as u64) as usize;
                packet[at] = random.next() as u8;
            }
            for _ in 0..[0, 1, 1, 1, 1, 1, 1, 2][random.below(8) as usize] {
                let at = to.now() + Duration::from_nanos(random.next() >> (40 + random.below(24)));
                sane(to.inject(at, &packet));
            }
        }
    }
}

/// Returns how many connections there were and how many packets.
fn run(seed: u64) -> [u64; 2] {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut hosts = [host(support::LOCAL), host(support::REMOTE)];
    for host in &mut hosts {
        // Somebody to talk to from the start.
        let fd = host.socket(AF_INET, SOCK_STREAM, 0).expect("a socket");
        host.bind(fd, support::at("0.0.0.0:80")).expect("a port");
        host.listen(fd, 10).expect("a listener");
    }
    for _ in 0..1000 {
        let host = &mut hosts[random.below(2) as usize];
        call(host, &mut random);
        host.stack().check().unwrap_or_else(|what| panic!("{what}"));
        carry(&mut hosts, &mut random);
    }
    // Whatever was going on ends once nobody holds it.
    for host in &mut hosts {
        for fd in 3..400 {
            let _ = host.close(fd);
        }
        let _ = host.set_patience(Duration::ZERO);
        host.run_to(host.now() + Duration::from_secs(100_000)).expect("time goes on");
        assert_eq!(host.stack().connection_count(), 0);
        assert_eq!(host.stack().half_open_count(), 0);
    }
    let counters = hosts.map(|host| host.stack().counters());
    [
        counters.iter().map(|counters| counters.passive_opens).sum(),
        counters.iter().map(|counters| counters.packets_received).sum(),
    ]
}

#[test]
fn any_calls_in_any_order() {
    if let Ok(seed) = std::env::var("TRANSOM_SEED") {
        run(seed.parse().expect("a number"));
        return;
    }
    let mut total = [0; 2];
    for seed in 0..SEEDS {
        match std::panic::catch_unwind(|| run(seed)) {
            Ok(counts) => total = [total[0] + counts[0], total[1] + counts[1]],
            Err(panic) => {
                eprintln!("seed {seed} failed; TRANSOM_SEED={seed} runs it alone");
                std::panic::resume_unwind(panic);
            }
        }
    }
    let [connections, packets] = total;
    eprintln!("{SEEDS} runs, {connections} connections, {packets} packets");
    assert!(connections > SEEDS && packets > 50 * SEEDS, "little happened");
}
