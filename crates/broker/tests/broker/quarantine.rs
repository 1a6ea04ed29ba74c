//! Another user leases a port whose last holder has ended, and wants its connections.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::frames::{self, ACK, SYN, Tap, tcp, waiting, write};
use crate::support::{
    BrokerProcess, Device, HOST4, HOST6, Holder, NOBODY, Net, PEER4, SOMEBODY, at, until,
};

const RULES: &str = "[[allow]]\nuser = 65534\nports = \"8000-8999\"\n\
    [[allow]]\nuser = 65533\nports = \"8000-8999\"\n";
/// The same without ports for the first user.
const WITHOUT_PORTS: &str = "[[allow]]\nuser = 65534\nephemeral = false\n\
    [[allow]]\nuser = 65533\nports = \"8000-8999\"\n";
const CONNECTIONS: usize = 50;
const PORT: u16 = 8000;

/// Says that it is over when it is dropped, also by a panic: threads that wait for it end.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Connections of the neighbour's kernel with a device, whose stack is the test.
struct Peers {
    /// By their ports.
    streams: BTreeMap<u16, TcpStream>,
}

impl Peers {
    fn connect(net: &Net, tun: &OwnedFd, to: SocketAddr, count: usize) -> Self {
        let end = AtomicBool::new(false);
        let mut streams = BTreeMap::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    answer_syns(tun);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let _over = Over(&end);
            for _ in 0..count {
                let mut stream = net.connect(to).unwrap();
                stream.write_all(b"hello").unwrap();
                streams.insert(stream.local_addr().unwrap().port(), stream);
            }
        });
        // What has not been read yet.
        waiting(tun);
        Peers { streams }
    }

    /// Half of them wait, and half speak. All are reset, and hear nothing.
    fn expect_resets(self) {
        let mut waiting = Vec::new();
        for (number, (port, mut stream)) in self.streams.into_iter().enumerate() {
            if number % 2 == 0
                && let Err(error) = stream.write_all(b"a secret for the first holder")
            {
                // The kernel says it once.
                assert!(is_reset(&error), "{port}: {error}");
                continue;
            }
            waiting.push((port, stream));
        }
        for (port, mut stream) in waiting {
            let mut buffer = [0; 100];
            match stream.read(&mut buffer) {
                Err(error) => assert!(is_reset(&error), "{port}: {error}"),
                Ok(length) => panic!("{port} has read {:?}", &buffer[..length]),
            }
        }
    }
}

fn is_reset(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

fn answer_syns(tun: &OwnedFd) {
    for packet in waiting(tun) {
        if frames::ends(&packet).is_some() && frames::ports(&packet).2 & SYN != 0 {
            write(tun, &frames::answer(&packet, SYN | ACK)).unwrap();
        }
    }
}

/// A process of another user that wants the port, and whatever comes with it.
struct Thief {
    holder: Holder,
    device: Device,
}

impl Thief {
    fn start(net: &Net) -> Self {
        let holder = Holder::start(net, SOMEBODY);
        let device = holder.open().unwrap();
        Thief { holder, device }
    }

    fn tun(&self) -> &OwnedFd {
        &self.device.queues[0]
    }

    /// Asks for the port until it gets it.
    fn take(&self, port: SocketAddr) {
        until("the other user has the port", || self.holder.bind(port).is_ok());
    }

    /// Sends what it can into connections of which it knows the ports, and looks for what comes: nothing of them may.
    fn attack(&self, net: &Net, mine: SocketAddr, peer: &str, ports: &BTreeSet<u16>) {
        let before = net.drops("quarantine");
        for port in ports {
            for (flags, payload) in [(SYN, &b""[..]), (SYN | ACK, b""), (ACK, b"injected")] {
                write(self.tun(), &tcp(mine, at(peer, *port), flags, payload)).unwrap();
            }
        }
        self.assert_hears_nothing(ports);
        assert!(net.drops("quarantine") >= before);
    }

    fn assert_hears_nothing(&self, ports: &BTreeSet<u16>) {
        for packet in waiting(self.tun()) {
            let Some((from, _)) = frames::ends(&packet) else { continue };
            let flags = frames::ports(&packet).2;
            // A port that was closed after its reset answers the thief's own SYN with the sequence number zero (RFC 9293 section 3.10.7.1).
            let refusal = flags == frames::RST | ACK && frames::seq(&packet) == 0;
            let of_old = ports.contains(&from.port()) && flags & SYN == 0 && !refusal;
            assert!(!of_old, "a segment of {from}'s with the flags {flags:#x}: {packet:?}");
        }
    }
}

/// The attack while `end` ends the first holder, and while the peers are reset.
fn attack(net: &Net, end: impl FnOnce(Holder, Device, &mut Option<BrokerProcess>, &Thief)) {
    let mut broker = Some(BrokerProcess::start(net, RULES));
    let holder = Holder::start(net, NOBODY);
    let device = holder.open().unwrap();
    let mine = at(HOST4, PORT);
    let port = holder.bind(mine).unwrap();
    assert_eq!(port.at, [mine]);
    let peers = Peers::connect(net, &device.queues[0], mine, CONNECTIONS);
    let ports: BTreeSet<_> = peers.streams.keys().copied().collect();
    let thief = Thief::start(net);
    end(holder, device, &mut broker, &thief);
    thief.take(mine);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                thief.assert_hears_nothing(&ports);
                std::thread::sleep(Duration::from_millis(1));
            }
            thief.assert_hears_nothing(&ports);
        });
        let watched = Over(&over);
        peers.expect_resets();
        drop(watched);
        watching.join().unwrap();
    });
    // What the peers have shown ends the quarantine long before its time.
    let quarantined = || {
        let status = net.status();
        status.broker.iter().find(|count| count.name == "quarantined").unwrap().count
    };
    until("the quarantine is over", || quarantined() == 0);
}

#[test]
fn nobody_takes_over_the_connections_of_a_killed_holder() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    attack(&net, |mut holder, device, _, _| {
        holder.kill();
        drop(device);
    });
}

#[test]
fn nobody_takes_over_connections_by_sending_into_them() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let mut holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap();
    let mine = at(HOST4, PORT);
    holder.bind(mine).unwrap();
    let peers = Peers::connect(&net, &device.queues[0], mine, CONNECTIONS);
    let ports: BTreeSet<_> = peers.streams.keys().copied().collect();
    let thief = Thief::start(&net);
    // No peer can be reset.
    net.path.as_ref().unwrap().lose(true);
    holder.kill();
    thief.take(mine);
    thief.attack(&net, mine, PEER4, &ports);
    until("the guard has dropped it all", || net.drops("quarantine") >= 3 * CONNECTIONS as u64);
    net.path.as_ref().unwrap().lose(false);
    peers.expect_resets();
    thief.assert_hears_nothing(&ports);
    // Other connections are the new holder's as usual.
    let server = &thief;
    let fresh = Peers::connect(&net, server.tun(), mine, 3);
    assert_eq!(fresh.streams.len(), 3);
}

#[test]
fn nobody_takes_over_connections_of_a_port_that_is_given_up() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    let mut kept = None;
    attack(&net, |holder, device, _, _| {
        let lease = net.lease(&device.opened.device);
        assert_eq!(lease.ports, [at(HOST4, PORT)]);
        let id = holder.ask("last-port").unwrap();
        holder.ask(&format!("remove {id}")).unwrap();
        kept = Some((holder, device));
    });
}

#[test]
fn nobody_takes_over_connections_of_a_holder_that_closes_its_device() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    let mut kept = None;
    attack(&net, |holder, device, _, _| {
        holder.ask("close").unwrap();
        holder.ask("forget").unwrap();
        drop(device);
        kept = Some(holder);
    });
}

#[test]
fn nobody_takes_over_connections_of_a_port_that_a_new_policy_takes_away() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    let mut kept = None;
    attack(&net, |holder, device, broker, _| {
        broker.as_mut().unwrap().kill();
        *broker = Some(BrokerProcess::start(&net, WITHOUT_PORTS));
        assert!(net.lease(&device.opened.device).ports.is_empty());
        // The kernel's port goes with its last socket.
        let id = holder.ask("last-port").unwrap();
        holder.ask(&format!("remove {id}")).unwrap();
        kept = Some((holder, device));
    });
}

#[test]
fn nobody_takes_over_connections_of_a_holder_that_ends_while_there_is_no_broker() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    attack(&net, |mut holder, device, broker, _| {
        // Nothing is reset meanwhile.
        net.path.as_ref().unwrap().lose(true);
        broker.as_mut().unwrap().kill();
        holder.kill();
        drop(device);
        *broker = Some(BrokerProcess::start(&net, RULES));
        net.path.as_ref().unwrap().lose(false);
    });
}

#[test]
fn a_killed_broker_loses_no_quarantine() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    attack(&net, |mut holder, device, broker, thief| {
        net.path.as_ref().unwrap().lose(true);
        holder.kill();
        drop(device);
        thief.take(at(HOST4, PORT + 1));
        until("the lease has ended", || net.status().leases.len() == 1);
        for _ in 0..2 {
            broker.as_mut().unwrap().kill();
            *broker = Some(BrokerProcess::start(&net, RULES));
        }
        net.path.as_ref().unwrap().lose(false);
    });
}

#[test]
fn a_stopped_broker_leaves_its_quarantine_to_the_next() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap();
    let mine = at(HOST4, PORT);
    holder.bind(mine).unwrap();
    let peers = Peers::connect(&net, &device.queues[0], mine, CONNECTIONS);
    let ports: BTreeSet<_> = peers.streams.keys().copied().collect();
    net.path.as_ref().unwrap().lose(true);
    transom_broker::client::stop(net.socket()).unwrap();
    broker.wait();
    assert!(!net.pins().exists());
    drop((holder, device));
    let file = net.directory.path().join("broker.sock.quarantine");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    let _broker = BrokerProcess::start(&net, RULES);
    assert!(!file.exists());
    let thief = Thief::start(&net);
    thief.take(mine);
    thief.attack(&net, mine, PEER4, &ports);
    net.path.as_ref().unwrap().lose(false);
    peers.expect_resets();
    thief.assert_hears_nothing(&ports);
}

#[test]
fn a_swept_broker_leaves_its_quarantine_to_the_next() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    for other_layout in [false, true] {
        let mut broker = BrokerProcess::start(&net, RULES);
        let holder = Holder::start(&net, NOBODY);
        let device = holder.open().unwrap();
        let mine = at(HOST4, PORT);
        holder.bind(mine).unwrap();
        let peers = Peers::connect(&net, &device.queues[0], mine, CONNECTIONS);
        let ports: BTreeSet<_> = peers.streams.keys().copied().collect();
        net.path.as_ref().unwrap().lose(true);
        broker.kill();
        if other_layout {
            for map in ["ports", "leases", "flows", "counts_of", "quarantine", "holds"] {
                let pin = |number| net.pins().join(format!("{map}_{number}"));
                std::fs::rename(pin(2), pin(1)).unwrap();
            }
        }
        let sweep = || transom_broker::daemon::sweep(&net.socket(), &net.pins());
        assert!(net.host.run(sweep).unwrap().unwrap());
        drop((holder, device));
        let _broker = BrokerProcess::start(&net, RULES);
        // Of another layout it is not known whether these are all connections: only the same user may have the port at once.
        if other_layout {
            let thief = Thief::start(&net);
            let error = thief.holder.bind(mine).unwrap_err();
            assert!(error.contains("may still be open"), "{error}");
        }
        let user = if other_layout { NOBODY } else { SOMEBODY };
        let holder = Holder::start(&net, user);
        let device = holder.open().unwrap();
        let thief = Thief { holder, device };
        thief.take(mine);
        thief.attack(&net, mine, PEER4, &ports);
        net.path.as_ref().unwrap().lose(false);
        peers.expect_resets();
        thief.assert_hears_nothing(&ports);
        drop(thief);
        transom_broker::client::stop(net.socket()).unwrap();
    }
}

#[test]
fn nobody_takes_over_connections_at_an_address_that_was_lost_and_comes_back() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    let ip = |arguments: &[&str]| {
        let status = net.host.spawn(std::process::Command::new("ip").args(arguments));
        assert!(status.unwrap().wait().unwrap().success(), "{arguments:?}");
    };
    let address = format!("{HOST4}/24");
    attack(&net, |mut holder, device, _, thief| {
        ip(&["address", "del", &address, "dev", "eth0"]);
        until("the address is not lent", || net.lease(&device.opened.device).ports.is_empty());
        // Nobody can be probed from there.
        holder.kill();
        drop(device);
        until("the lease has ended", || net.status().leases.len() == 1);
        ip(&["address", "add", &address, "dev", "eth0"]);
        until("the address is back", || thief.holder.ask("host").unwrap().contains(HOST4));
    });
}

/// The peers of another lease on this host, not of the network.
#[test]
fn nobody_takes_over_connections_with_another_lease() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    for host in [HOST4, HOST6] {
        let (mut victim, peer) = (Holder::start(&net, NOBODY), Holder::start(&net, NOBODY));
        let (device, other) = (victim.open().unwrap(), peer.open().unwrap());
        let (mine, theirs) = (at(host, PORT), at(host, 8100));
        victim.bind(mine).unwrap();
        peer.bind(theirs).unwrap();
        let (tun, far) = (&device.queues[0], &other.queues[0]);
        // A SYN, and its answer.
        let syn = tcp(theirs, mine, SYN, &[]);
        write(far, &syn).unwrap();
        frames::until(tun, &syn);
        let answer = frames::answer(&syn, SYN | ACK);
        write(tun, &answer).unwrap();
        frames::until(far, &answer);
        let thief = Thief::start(&net);
        victim.kill();
        thief.take(mine);
        let before = net.drops("quarantine");
        let data = tcp(theirs, mine, ACK, b"a secret for the first holder");
        write(far, &data).unwrap();
        // The kernel resets it; the new holder has not heard it.
        until("a reset", || {
            let packets = waiting(far);
            packets.iter().any(|packet| frames::ports(packet).2 & frames::RST != 0)
        });
        write(thief.tun(), &tcp(mine, theirs, ACK, b"injected")).unwrap();
        until("the guard has dropped it", || net.drops("quarantine") > before);
        let heard = waiting(thief.tun());
        assert!(heard.iter().all(|packet| frames::ends(packet).unwrap().0 != theirs), "{heard:?}");
    }
}

/// ICMP errors quote the sequence numbers of segments.
#[test]
fn an_icmp_error_about_an_old_connection_is_not_the_new_holders() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let tap = Tap::new(&net);
    let mut holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap();
    let (mine, old, other) = (at(HOST4, PORT), at("192.0.2.77", 4000), at("192.0.2.77", 4001));
    holder.bind(mine).unwrap();
    write(&device.queues[0], &tcp(mine, old, SYN | ACK, &[])).unwrap();
    until("the guard has passed it", || net.lease(&device.opened.device).sent_packets == 1);
    let thief = Thief::start(&net);
    holder.kill();
    thief.take(mine);
    let error = |to| {
        let quoted = tcp(mine, to, ACK, b"numbers");
        transom_testkit::packets::too_big(PEER4.parse().unwrap(), &quoted, 1000)
    };
    tap.send(&error(old));
    tap.send(&error(other));
    assert_eq!(frames::until(thief.tun(), &error(other)), [error(other)]);
}

/// A server that starts anew has its port at once, and nobody else gets anything in it meanwhile.
#[test]
fn the_same_user_has_the_port_at_once_and_no_old_segments() {
    let Some(net) = Net::with_delay(Duration::from_millis(10)) else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let mine = at(HOST4, PORT);
    let mut ports = BTreeSet::new();
    for _ in 0..3 {
        let mut holder = Holder::start(&net, NOBODY);
        let device = holder.open().unwrap();
        until("the kernel gives the port", || holder.bind(mine).is_ok());
        let peers = Peers::connect(&net, &device.queues[0], mine, 10);
        ports.extend(peers.streams.keys().copied());
        holder.kill();
        let again = Holder::start(&net, NOBODY);
        let device = again.open().unwrap();
        until("the kernel gives the port", || again.bind(mine).is_ok());
        peers.expect_resets();
        Thief { holder: again, device }.assert_hears_nothing(&ports);
    }
}

/// A client that comes again from the same port, before its quarantine is over, has its connection a moment later.
#[test]
fn a_peer_can_connect_again_from_the_same_port() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let mut holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap();
    let (mine, from) = (at(HOST4, PORT), at(PEER4, 4321));
    holder.bind(mine).unwrap();
    // The old connection is one that the neighbour knows nothing of any more.
    write(&device.queues[0], &tcp(mine, from, SYN | ACK, &[])).unwrap();
    until("the guard has passed it", || net.lease(&device.opened.device).sent_packets == 1);
    // Nothing of the neighbour's answers comes.
    net.peer.interfaces().set_up("eth0", false).unwrap();
    let thief = Thief::start(&net);
    holder.kill();
    thief.take(mine);
    net.peer.interfaces().set_up("eth0", true).unwrap();
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(Ordering::Relaxed) {
                answer_syns(thief.tun());
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let _over = Over(&end);
        let connected = net.peer.run(|| {
            let socket = transom_broker::client::bind(from, &Default::default()).unwrap();
            rustix::net::connect(&socket, &mine)
        });
        connected.unwrap().unwrap();
    });
}

/// More than a batch, and more than were remembered once.
#[test]
fn all_connections_are_probed_and_none_is_forgotten() {
    const MANY: u16 = 6_000;
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let mut holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap();
    let mine = at(HOST4, PORT);
    holder.bind(mine).unwrap();
    // Of a neighbour that does not answer: there is none at the address. So the probes go where a route of the host's says.
    for number in 0..MANY {
        write(&device.queues[0], &tcp(mine, at(PEER4, 10_000 + number), SYN | ACK, &[])).unwrap();
    }
    until("the guard has passed them", || {
        net.lease(&device.opened.device).sent_packets == u64::from(MANY)
    });
    let tap = Tap::new(&net);
    holder.kill();
    let mut left: BTreeSet<u16> = (0..MANY).map(|number| 10_000 + number).collect();
    tap.until(|packet| {
        if let Some((from, to)) = frames::ends(packet)
            && from == mine
            && frames::ports(packet).2 == ACK
        {
            left.remove(&to.port());
        }
        left.is_empty()
    });
    // The neighbour's kernel says that it knows none of them.
    until("the quarantine is over", || {
        let status = net.status();
        status.broker.iter().any(|count| count.name == "quarantined" && count.count == 0)
    });
}

/// With more connections than a device has room for, nobody knows which there are.
#[test]
fn a_port_with_unknown_connections_is_held_for_its_user() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let mut holder = Holder::start(&net, NOBODY);
    let device = holder.open().unwrap();
    let (mine, free) = (at(HOST4, PORT), at(HOST4, PORT + 1));
    holder.bind(mine).unwrap();
    for number in 0..16_500u16 {
        let peer = at("192.0.2.99", 1000 + number);
        write(&device.queues[0], &tcp(mine, peer, SYN | ACK, &[])).unwrap();
    }
    let sent = || net.lease(&device.opened.device).sent_packets;
    until("the guard has passed them", || sent() == 16_500);
    holder.kill();
    until("the lease has ended", || net.status().leases.is_empty());
    let thief = Thief::start(&net);
    let refused = || {
        let error = thief.holder.bind(mine).unwrap_err();
        if !error.contains("AddrInUse") {
            assert!(error.contains("InUse") && error.contains("it is free in"), "{error}");
        }
        !error.contains("AddrInUse")
    };
    until("the kernel gives the port", refused);
    // Others are not held, and a new broker knows as much.
    thief.holder.bind(free).unwrap();
    broker.kill();
    let _broker = BrokerProcess::start(&net, RULES);
    thief.holder.ask("host").unwrap();
    until("the kernel gives the port", refused);
    let again = Holder::start(&net, NOBODY);
    let _device = again.open().unwrap();
    until("the same user has it", || again.bind(mine).is_ok());
}

/// Looks for windows in the order of events: ends, restarts and binds at once.
#[test]
fn a_loop_on_bind_and_lease_never_wins() {
    let Some(net) = Net::with_delay(Duration::from_millis(5)) else { return };
    let mut broker = BrokerProcess::start(&net, RULES);
    let mine = at(HOST4, PORT);
    for round in 0..12 {
        let mut holder = Holder::start(&net, NOBODY);
        let device = holder.open().unwrap();
        until("the kernel gives the port", || holder.bind(mine).is_ok());
        let peers = Peers::connect(&net, &device.queues[0], mine, 8);
        let ports: BTreeSet<_> = peers.streams.keys().copied().collect();
        let thief = Thief::start(&net);
        let (over, has_it) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let thief = &thief;
            let (over, has_it, ports) = (&over, &has_it, &ports);
            let looping = scope.spawn(move || {
                let end = Instant::now() + crate::support::PATIENCE;
                while !over.load(Ordering::Relaxed) {
                    assert!(Instant::now() < end, "the other user did not get the port");
                    if !has_it.load(Ordering::Relaxed) && thief.holder.bind(mine).is_ok() {
                        has_it.store(true, Ordering::Relaxed);
                    }
                    for port in ports {
                        let spray = tcp(mine, at(PEER4, *port), SYN, &[]);
                        let _ = write(thief.tun(), &spray);
                    }
                    thief.assert_hears_nothing(ports);
                }
                thief.assert_hears_nothing(ports);
            });
            let ended = Over(over);
            // In turn: the holder alone, the broker before it, the broker after it, and a device that was closed.
            match round % 4 {
                0 => holder.kill(),
                1 => {
                    broker.kill();
                    holder.kill();
                    broker = BrokerProcess::start(&net, RULES);
                }
                2 => {
                    holder.kill();
                    broker.kill();
                    broker = BrokerProcess::start(&net, RULES);
                }
                _ => {
                    holder.ask("close").unwrap();
                    holder.ask("forget").unwrap();
                }
            }
            drop(device);
            peers.expect_resets();
            until("the other user has the port", || has_it.load(Ordering::Relaxed));
            drop(ended);
            looping.join().unwrap();
        });
    }
}
