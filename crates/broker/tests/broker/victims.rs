//! Others beside attacks: the bounds of docs/broker.md.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::frames::{ACK, SYN, tcp, write};
use crate::support::wire;
use crate::support::{
    BrokerProcess, HOST4, Holder, NOBODY, Net, PEER4, SOMEBODY, at, echoes, until,
};

const RULES: &str = "
[[allow]]
user = 65534
ports = \"8000-8999\"
packets-per-second = 5000
[[allow]]
user = 65533
ports = \"9000-9999\"
";

/// Exchanges of a victim, each of which is compared byte for byte; how long the middle one took.
fn median_exchange_time(stream: &mut TcpStream, count: usize) -> Duration {
    let mut times: Vec<_> = (0..count)
        .map(|_| {
            let since = Instant::now();
            assert!(echoes(stream, 20_000), "a victim's bytes are lost");
            since.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[count / 2]
}

/// Threads that attack until they are told to stop.
struct Attacks {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Attacks {
    /// Runs an attack again and again.
    fn add(&mut self, mut attack: impl FnMut() + Send + 'static) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(std::thread::spawn(move || {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                attack();
                rounds += 1;
            }
            rounds
        }));
    }

    fn end(self) -> Vec<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

#[test]
fn other_processes_go_on_during_attacks() {
    const COUNT: usize = 60;
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    net.kernel_echo(at(HOST4, 80));
    let victim = Holder::start(&net, SOMEBODY);
    victim.open().unwrap();
    victim.bind(at(HOST4, 9000)).unwrap();
    victim.ask(&format!("serve {}", at(HOST4, 9000))).unwrap();
    let mut streams = [80, 9000].map(|port| net.connect(at(HOST4, port)).unwrap());
    let mut without_attacks = Vec::new();
    let mut during_attacks = Vec::new();
    let attacker = Arc::new(Holder::start(&net, NOBODY));
    let mut device = attacker.open().unwrap();
    let mine = at(HOST4, 8000);
    attacker.bind(mine).unwrap();
    let flood = device.queues.remove(0);
    for _ in 0..3 {
        without_attacks.push(streams.each_mut().map(|stream| median_exchange_time(stream, COUNT)));
        let mut attacks = Attacks { stop: Arc::default(), threads: Vec::new() };
        // Packets: allowed ones past the rate, connections to everywhere, and what the guard drops.
        let tun = flood.try_clone().unwrap();
        let mut round = 0u32;
        attacks.add(move || {
            round = round.wrapping_add(1);
            let changing_peer: SocketAddr =
                at(&format!("192.0.2.{}", 10 + round % 200), (round % 60_000) as u16 + 1);
            for packet in [
                tcp(mine, at(PEER4, 9), ACK, b"x"),
                tcp(mine, changing_peer, SYN, &[]),
                tcp(at(HOST4, 80), at(PEER4, 7), ACK, b"x"),
                vec![0xff; 60],
            ] {
                let _ = write(&tun, &packet);
            }
        });
        // Ports that come and go, and requests for more devices than there may be.
        let holder = Arc::clone(&attacker);
        attacks.add(move || {
            if let Ok(port) = holder.bind(at(HOST4, 8001)) {
                holder.ask(&format!("remove {}", port.id)).unwrap();
            }
        });
        // Garbage, and lists that nobody reads.
        let path = net.socket();
        attacks.add(move || {
            // Of this thread only, and an ordinary user's: root itself asks below.
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).unwrap();
            let Ok(connection) = wire::connect(&path) else { return };
            let null = std::fs::File::open("/dev/null").unwrap();
            for bytes in [&[b'['; 60_000][..], br#"{"version":1,"request":{"list":{}}}"#] {
                let _ = wire::send(&connection, bytes, &[null.as_fd()]);
            }
        });
        during_attacks.push(streams.each_mut().map(|stream| median_exchange_time(stream, COUNT)));
        let rounds = attacks.end();
        assert!(rounds.iter().all(|count| *count > 0), "{rounds:?}");
    }
    for (name, index) in [("the kernel", 0), ("another lease", 1)] {
        let mut ratios: Vec<_> = without_attacks
            .iter()
            .zip(&during_attacks)
            .map(|(without_attacks, during_attacks)| {
                during_attacks[index].as_secs_f64() / without_attacks[index].as_secs_f64()
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        eprintln!("exchanges with {name} took {ratios:.2?} times as long beside the attacks");
    }
    // The rate held, and the broker answers.
    let sent = net.lease(&device.opened.device).sent_packets;
    assert!(sent > 0);
    drop((attacker, flood));
    until("the attacker's lease has ended", || net.status().leases.len() == 1);
}
