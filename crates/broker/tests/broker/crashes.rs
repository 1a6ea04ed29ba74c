//! kill -9 of processes and brokers, in the middle of transfers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::{BrokerProcess, HOST4, HOST6, Holder, NOBODY, Net, at, echoes, until};

const RULES: &str = "[[allow]]\nuser = 65534\nports = \"8000-8999\"\n";

/// A process that serves, and a transfer with it that goes on until it is told to end.
struct Transfer {
    stream: TcpStream,
    pump: std::thread::JoinHandle<std::io::Result<()>>,
}

impl Transfer {
    fn start(net: &Net, port: u16) -> Self {
        let stream = net.connect(at(HOST4, port)).unwrap();
        let mut writer = stream.try_clone().unwrap();
        let mut reader = stream.try_clone().unwrap();
        let pump = std::thread::spawn(move || {
            let mut buffer = vec![0; 100_000];
            for round in 0u64.. {
                let bytes = round.to_be_bytes().repeat(4000);
                writer.write_all(&bytes)?;
                reader.read_exact(&mut buffer[..bytes.len()])?;
                assert!(buffer[..bytes.len()] == bytes, "something else came back");
            }
            Ok(())
        });
        Transfer { stream, pump }
    }

    /// Asserts that the other end acknowledges more bytes.
    fn assert_progress(&self) {
        // tcpi_bytes_acked of linux/tcp.h.
        let acknowledged = || {
            let info = transom_device::tcp_info(&self.stream).unwrap();
            u64::from_ne_bytes(*info.as_bytes()[120..].first_chunk().unwrap())
        };
        let before = acknowledged();
        until("the transfer goes on", || acknowledged() > before + 500_000);
    }

    /// Asserts that it is reset soon.
    fn expect_reset(self, since: Instant) {
        let error = self.pump.join().unwrap().unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
            "{error}"
        );
        assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    }
}

fn serve(net: &Net, port: u16) -> (Holder, String) {
    let holder = Holder::start(net, NOBODY);
    let device = holder.open().unwrap().opened.device;
    holder.bind(at(HOST4, port)).unwrap();
    holder.ask(&format!("serve {}", at(HOST4, port))).unwrap();
    (holder, device)
}

/// Nothing of leases is left on the host: no devices, no ports, no leases; and with the broker's end nothing at all.
fn assert_nothing_remains(net: &Net, mut broker: BrokerProcess) {
    until("the devices have gone", || {
        net.interfaces().iter().all(|name| !name.starts_with("tcpk"))
    });
    until("the leases have gone", || net.status().leases.is_empty());
    let pins = || std::fs::read_dir(net.pins()).unwrap().flatten().map(|pin| pin.file_name());
    until("the guards have gone", || {
        pins().all(|pin| !pin.to_string_lossy().starts_with("guard-"))
    });
    transom_broker::client::stop(net.socket()).unwrap();
    broker.wait();
    assert!(!net.pins().exists() && !net.socket().exists());
    let accept = || std::fs::read_to_string("/proc/sys/net/ipv4/conf/lo/accept_local").unwrap();
    assert_eq!(net.host.run(accept).unwrap().trim(), "0");
    // The kernel has everything back.
    net.kernel_echo(at(HOST4, 8000));
    assert!(echoes(&mut net.connect(at(HOST4, 8000)).unwrap(), 100_000));
}

#[test]
fn killing_a_process_resets_its_connections_and_no_others() {
    let Some(net) = Net::new() else { return };
    let broker = BrokerProcess::start(&net, RULES);
    let ((mut victim, _), (other, _)) = (serve(&net, 8000), serve(&net, 8001));
    net.kernel_echo(at(HOST4, 80));
    let transfers = [8000, 8001, 80].map(|port| Transfer::start(&net, port));
    transfers.iter().for_each(Transfer::assert_progress);
    victim.kill();
    let since = Instant::now();
    let [reset, others @ ..] = transfers;
    reset.expect_reset(since);
    others.iter().for_each(Transfer::assert_progress);
    // The port is free at once.
    let (again, _) = serve(&net, 8000);
    assert!(echoes(&mut net.connect(at(HOST4, 8000)).unwrap(), 100_000));
    drop((again, other));
    assert_nothing_remains(&net, broker);
}

/// The kernel alone resets only peers that send something.
#[test]
fn idle_peers_are_reset_too() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    for round in 0..3 {
        let (mut victim, _) = serve(&net, 8000);
        let mut idle: Vec<_> = (0..20).map(|_| net.connect(at(HOST4, 8000)).unwrap()).collect();
        for stream in &mut idle {
            assert!(echoes(stream, 100));
        }
        match round {
            0 => victim.kill(),
            // Both at once, and a new broker.
            1 => {
                broker.kill();
                victim.kill();
                broker = BrokerProcess::start(&net, RULES);
            }
            _ => {
                transom_broker::client::stop(net.socket()).unwrap();
                broker.wait();
            }
        }
        for mut stream in idle {
            let error = stream.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    }
}

/// The kernel would give a raw socket for TCP a copy of each segment.
#[test]
fn the_probe_sockets_receive_nothing() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    for host in [HOST4, HOST6] {
        net.kernel_echo(at(host, 80));
        assert!(echoes(&mut net.connect(at(host, 80)).unwrap(), 1_000_000));
    }
    for table in ["raw", "raw6"] {
        let read = || std::fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        let text = net.host.run(read).unwrap().unwrap();
        let rows: Vec<Vec<_>> =
            text.lines().skip(1).map(|line| line.split_ascii_whitespace().collect()).collect();
        assert_eq!(rows.len(), 1, "{text}");
        for row in rows {
            assert_eq!(row[4], "00000000:00000000", "queues: {text}");
            assert_eq!(*row.last().unwrap(), "0", "drops: {text}");
        }
    }
}

/// The kernel resets at once, and the broker probes the peers as soon as it hears of the end. The median is within a second; a single one may wait for a busy
/// machine.
#[test]
fn a_peer_hears_of_a_kill_within_a_second() {
    const ROUNDS: usize = 9;
    let Some(net) = Net::new() else { return };
    let broker = BrokerProcess::start(&net, RULES);
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..ROUNDS {
        let (mut victim, _) = serve(&net, 8000);
        let mut stream = net.connect(at(HOST4, 8000)).unwrap();
        assert!(echoes(&mut stream, 100));
        let since = Instant::now();
        victim.kill();
        // It only waits: nothing that it sends could be answered.
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        times.push(since.elapsed());
    }
    times.sort_unstable();
    eprintln!("from kill -9 to the peer's reset: {times:?}");
    assert!(times[ROUNDS / 2] < Duration::from_secs(1), "{times:?}");
    assert_nothing_remains(&net, broker);
}

#[test]
fn when_the_broker_is_killed_everything_goes_on_and_a_new_one_takes_over() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let (holder, device) = serve(&net, 8000);
    let transfer = Transfer::start(&net, 8000);
    for _ in 0..3 {
        transfer.assert_progress();
        broker.kill();
        transfer.assert_progress();
        // New connections too.
        assert!(echoes(&mut net.connect(at(HOST4, 8000)).unwrap(), 10_000));
        broker = BrokerProcess::start(&net, RULES);
        let lease = net.lease(&device);
        assert_eq!(lease.ports, [at(HOST4, 8000)]);
        // The process is at home with the new one as well, and so are its ports.
        let number = net.status().leases.len();
        holder.ask("host").unwrap();
        assert!(net.lease(&device).connected);
        assert_eq!(number, 1);
    }
    transfer.assert_progress();
    let port = holder.bind(at(HOST4, 8005)).unwrap();
    assert_eq!(net.lease(&device).ports.len(), 2);
    holder.ask(&format!("remove {}", port.id)).unwrap();
    drop(holder);
    transfer.expect_reset(Instant::now());
    assert_nothing_remains(&net, broker);
}

#[test]
fn a_process_that_is_killed_while_there_is_no_broker_is_cleaned_up() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let (mut victim, _) = serve(&net, 8000);
    let transfer = Transfer::start(&net, 8000);
    transfer.assert_progress();
    broker.kill();
    victim.kill();
    // A packet that arrives tells demux that the device has gone.
    let refused = net.connect(at(HOST4, 8000)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    // A peer that waits hears of it from the new broker.
    let broker = BrokerProcess::start(&net, RULES);
    transfer.expect_reset(Instant::now());
    assert_eq!(net.status().leases, []);
    assert_nothing_remains(&net, broker);
}

/// The other order: the process is killed, and the broker before it has done anything about that.
#[test]
fn a_new_broker_cleans_up_after_a_process_killed_just_before_the_old_broker() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    for _ in 0..2 {
        let ((mut victim, device), (other, _)) = (serve(&net, 8000), serve(&net, 8001));
        let (reset, lasting) = (Transfer::start(&net, 8000), Transfer::start(&net, 8001));
        reset.assert_progress();
        lasting.assert_progress();
        victim.kill();
        broker.kill();
        let since = Instant::now();
        lasting.assert_progress();
        broker = BrokerProcess::start(&net, RULES);
        reset.expect_reset(since);
        assert!(!net.interfaces().contains(&device));
        assert_eq!(net.status().leases.len(), 1);
        lasting.assert_progress();
        drop(other);
        lasting.expect_reset(Instant::now());
    }
    assert_nothing_remains(&net, broker);
}

#[test]
fn a_copy_of_the_device_does_not_outlive_a_process_that_ended_while_there_was_no_broker() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let mut holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap();
    holder.bind(at(HOST4, 8000)).unwrap();
    broker.kill();
    holder.kill();
    // The test's own copy keeps it, until there is a broker again.
    assert!(net.interfaces().contains(&device.opened.device));
    let broker = BrokerProcess::start(&net, RULES);
    assert!(!net.interfaces().contains(&device.opened.device));
    assert_nothing_remains(&net, broker);
}

#[test]
fn a_new_policy_applies_to_existing_leases() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let (holder, device) = serve(&net, 8000);
    assert_eq!(net.lease(&device).packets_per_second, None);
    let mut idle = net.connect(at(HOST4, 8000)).unwrap();
    assert!(echoes(&mut idle, 100));
    broker.kill();
    // Another rate, and a list of peers that has the neighbour.
    let other = "[[allow]]\nuser = 65534\nports = \"8000-8999\"\npackets-per-second = 100000\n";
    let mut broker = BrokerProcess::start(&net, &format!("{other}peers = [\"192.0.2.2\"]\n"));
    assert_eq!(net.lease(&device).packets_per_second, Some(100_000));
    assert!(echoes(&mut idle, 100_000));
    // One that has not.
    broker.kill();
    let mut broker = BrokerProcess::start(&net, &format!("{other}peers = [\"192.0.2.9\"]\n"));
    idle.write_all(&[7; 1000]).unwrap();
    until("the neighbour is not spoken with", || net.demuxed("peer") > 0);
    // No rule at all.
    broker.kill();
    let broker = BrokerProcess::start(&net, "[[allow]]\nuser = 65533\n");
    assert_eq!(net.status().leases, []);
    assert!(!net.interfaces().contains(&device));
    drop(holder);
    assert_nothing_remains(&net, broker);
}

#[test]
fn a_policy_that_allows_less_takes_ports_away() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let (holder, device) = serve(&net, 8000);
    holder.bind(at(HOST4, 8001)).unwrap();
    let mut idle = net.connect(at(HOST4, 8000)).unwrap();
    assert!(echoes(&mut idle, 100));
    broker.kill();
    let less = "[[allow]]\nuser = 65534\nports = \"8001\"\n";
    let broker = BrokerProcess::start(&net, less);
    assert_eq!(net.lease(&device).ports, [at(HOST4, 8001)]);
    // The peers of what is taken away hear of it.
    assert_eq!(idle.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let refused = net.connect(at(HOST4, 8000)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    drop(holder);
    assert_nothing_remains(&net, broker);
}

/// A killed broker must not keep anybody from using its ports for ever.
#[test]
fn sweep_removes_the_state_of_a_killed_broker() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let (holder, _) = serve(&net, 8000);
    let mut idle = net.connect(at(HOST4, 8000)).unwrap();
    assert!(echoes(&mut idle, 100));
    let sweep = || {
        let sweep = || transom_broker::daemon::sweep(&net.socket(), &net.pins());
        net.host.run(sweep).unwrap()
    };
    // Not while it runs.
    assert!(sweep().unwrap_err().to_string().contains("already"));
    broker.kill();
    assert!(sweep().unwrap());
    assert!(net.interfaces().iter().all(|name| !name.starts_with("tcpk")));
    assert!(!net.pins().exists() && !net.socket().exists());
    assert_eq!(idle.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let names = std::fs::read_dir(net.directory.path()).unwrap().flatten();
    let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with("broker.")), "{names:?}");
    let accept = || std::fs::read_to_string("/proc/sys/net/ipv4/conf/lo/accept_local").unwrap();
    assert_eq!(net.host.run(accept).unwrap().trim(), "0");
    assert!(!sweep().unwrap());
    // With its last socket the kernel has the port back.
    drop(holder);
    net.kernel_echo(at(HOST4, 8000));
    assert!(echoes(&mut net.connect(at(HOST4, 8000)).unwrap(), 100_000));
}

/// Maps of another version would be misunderstood.
#[test]
fn the_state_of_another_version_is_refused_and_can_be_removed() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let (holder, device) = serve(&net, 8000);
    broker.kill();
    for name in ["ports", "leases", "flows"] {
        let other = net.pins().join(format!("{name}_999"));
        std::fs::rename(net.pins().join(format!("{name}_2")), other).unwrap();
    }
    let policy = format!("uplinks = [\"eth0\"]\n{RULES}").parse().unwrap();
    let start = || transom_broker::daemon::Daemon::start(policy, &net.socket(), &net.pins());
    let started = net.host.run(start).unwrap();
    let error = started.unwrap_err().to_string();
    assert!(error.contains("another version") && error.contains("broker stop"), "{error}");
    // Everything goes on meanwhile.
    assert!(echoes(&mut net.connect(at(HOST4, 8000)).unwrap(), 100_000));
    let sweep = || transom_broker::daemon::sweep(&net.socket(), &net.pins());
    assert!(net.host.run(sweep).unwrap().unwrap());
    assert!(!net.interfaces().contains(&device) && !net.pins().exists());
    drop(holder);
    assert_nothing_remains(&net, BrokerProcess::start(&net, RULES));
}

#[test]
fn a_second_broker_is_refused_and_a_stop_ends_everything() {
    let Some(net) = Net::new() else { return };
    let broker = BrokerProcess::start(&net, RULES);
    let (_holder, _) = serve(&net, 8000);
    let transfer = Transfer::start(&net, 8000);
    transfer.assert_progress();
    let policy = format!("uplinks = [\"eth0\"]\n{RULES}").parse().unwrap();
    let start = || transom_broker::daemon::Daemon::start(policy, &net.socket(), &net.pins());
    let second = net.host.run(start).unwrap();
    assert!(second.unwrap_err().to_string().contains("already"));
    transfer.assert_progress();
    let since = Instant::now();
    assert_nothing_remains_after_stop(&net, broker);
    transfer.expect_reset(since);
}

fn assert_nothing_remains_after_stop(net: &Net, mut broker: BrokerProcess) {
    transom_broker::client::stop(net.socket()).unwrap();
    broker.wait();
    assert!(net.interfaces().iter().all(|name| !name.starts_with("tcpk")));
    assert!(!net.pins().exists() && !net.socket().exists());
}
