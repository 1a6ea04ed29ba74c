//! Three network namespaces in a row, with the kernel's TCP at both ends and a slow link behind the middle one:
//!
//! ```text
//! sender  near ==== in  router  out ==== far  receiver
//!                                 tbf, 10 Mbit/s, 75,000 bytes
//! ```

// Each test program uses a part of it.
#![allow(dead_code)]

mod audit;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use transom_device::interface::IpPrefix;
use transom_device::interface::RootQueue;
use transom_device::namespace::Namespace;
use transom_forwarder::{Deployment, Refusal, Status};
use transom_router::queue::Threshold;
use transom_router::window::{ControlConfig, PolicyConfig, TargetWindowConfig};

use audit::{Audit, Audited};

/// The interface whose queue is the bottleneck, in the router.
pub(crate) const BOTTLENECK: &str = "out";
/// Bytes that its queue holds.
pub(crate) const LIMIT: u64 = 75_000;
/// No test waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Net {
    pub(crate) sender: Namespace,
    pub(crate) router: Namespace,
    pub(crate) receiver: Namespace,
    /// Of the sender and of the receiver, of both families.
    pub(crate) addresses: [(IpAddr, IpAddr); 2],
}

/// Whether the kernel is asked to leave checksums and segmentation to the cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offloads {
    On,
    Off,
}

/// The three namespaces, or `None` and a word about it where that cannot be had.
pub(crate) fn network(offloads: Offloads) -> Option<Net> {
    let net = joined(
        offloads,
        [
            ("near", "10.1.0.2/24", "fd01::2/64"),
            ("in", "10.1.0.1/24", "fd01::1/64"),
            (BOTTLENECK, "10.2.0.1/24", "fd02::1/64"),
            ("far", "10.2.0.2/24", "fd02::2/64"),
        ],
    )?;
    let routes = [
        (&net.sender, "near", "10.2.0.0/24", "10.1.0.1", "fd02::/64", "fd01::1"),
        (&net.receiver, "far", "10.1.0.0/24", "10.2.0.1", "fd01::/64", "fd02::1"),
    ];
    for (namespace, name, v4, by4, v6, by6) in routes {
        let mut interfaces = namespace.interfaces();
        interfaces.add_route(name, v4.parse().unwrap(), Some(by4.parse().unwrap())).unwrap();
        interfaces.add_route(name, v6.parse().unwrap(), Some(by6.parse().unwrap())).unwrap();
    }
    net.router.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
    net.router.set_sysctl("net.ipv6.conf.all.forwarding", "1").unwrap();
    let limit = LIMIT.to_string();
    run(
        &net.router,
        "tc",
        &[
            "qdisc", "add", "dev", BOTTLENECK, "root", "tbf", "rate", "10mbit", "burst", "5kb",
            "limit", &limit,
        ],
    );
    Some(net)
}

/// The same, but the router forwards nothing: both hosts are in one network, and somebody has to be the wire. No queue is slow.
pub(crate) fn wire(offloads: Offloads) -> Option<Net> {
    joined(
        offloads,
        [
            ("near", "10.1.0.2/24", "fd01::2/64"),
            ("in", "", ""),
            (BOTTLENECK, "", ""),
            ("far", "10.1.0.3/24", "fd01::3/64"),
        ],
    )
}

/// The namespaces, with their four interfaces, which are up and have these addresses.
fn joined(offloads: Offloads, ends: [(&str, &str, &str); 4]) -> Option<Net> {
    if !installed("tc") || !installed("ethtool") {
        return None;
    }
    let made = || -> std::io::Result<Net> {
        let (sender, router, receiver) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        let address = |prefix: &str| prefix.parse::<IpPrefix>().unwrap().address();
        let addresses = [(ends[0].1, ends[0].2), (ends[3].1, ends[3].2)]
            .map(|(v4, v6)| (address(v4), address(v6)));
        Ok(Net { sender, router, receiver, addresses })
    };
    let net = match made() {
        Ok(net) => net,
        Err(error) => {
            eprintln!("SKIPPED: no network namespaces here: {error}");
            return None;
        }
    };
    net.sender.add_veth(ends[0].0, &net.router, ends[1].0).unwrap();
    net.router.add_veth(ends[2].0, &net.receiver, ends[3].0).unwrap();
    let places = [&net.sender, &net.router, &net.router, &net.receiver];
    for (namespace, (name, v4, v6)) in places.into_iter().zip(ends) {
        let mut interfaces = namespace.interfaces();
        for address in [v4, v6].into_iter().filter(|address| !address.is_empty()) {
            interfaces.add_address(name, address.parse().unwrap()).unwrap();
        }
        interfaces.set_up(name, true).unwrap();
        drop(interfaces);
        if offloads == Offloads::Off {
            let words =
                ["-K", name, "tx", "off", "rx", "off", "gso", "off", "tso", "off", "gro", "off"];
            run(namespace, "ethtool", &words);
        }
    }
    for (namespace, (_, _, v6)) in places.into_iter().zip(ends) {
        if let Ok(prefix) = v6.parse::<IpPrefix>() {
            assert!(namespace.interfaces().wait_until_local(prefix.address(), PATIENCE).unwrap());
        }
    }
    Some(net)
}

/// Whether a program is there; says so if not.
pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// The paper's policy for a queue of [`LIMIT`] bytes.
pub(crate) fn policy() -> ControlConfig {
    let target = TargetWindowConfig::new(Threshold::Bytes(40_000), Threshold::Bytes(20_000));
    ControlConfig::new(PolicyConfig::TargetWindow(target))
}

/// Both families, and connections opened by either side.
pub(crate) const WAYS: [Way; 4] = [
    Way { six: false, reverse: false, senders: &[] },
    Way { six: false, reverse: true, senders: &[] },
    Way { six: true, reverse: false, senders: &[] },
    Way { six: true, reverse: true, senders: &[] },
];

/// The same, which writes SYNs as well, and grants little from the beginning.
pub(crate) fn policy_for_syns() -> ControlConfig {
    let text = "target-window(upper=40kB, lower=20kB, initial=8kB, most=32kB, syn-windows)";
    ControlConfig::new(text.parse().unwrap())
}

/// With offloads off: lets flows of all kinds through, and looks at every packet on both sides of the router.
pub(crate) fn audited(net: &Net, deployment: &mut dyn Deployment) {
    assert_eq!(all_audited(net, deployment).lowered, 0, "a SYN was changed");
}

/// The same with [`policy_for_syns`].
pub(crate) fn audited_with_syns(net: &Net, deployment: &mut dyn Deployment) {
    let audited = all_audited(net, deployment);
    assert_eq!(audited.lowered, audited.syns, "they advertise 64 kB");
}

fn all_audited(net: &Net, deployment: &mut dyn Deployment) -> Audited {
    let audit = Audit::begin(net);
    for way in WAYS {
        net.transfer(way, 10, 100_000);
    }
    let audited = audit.end();
    let status = deployment.status(100).unwrap();
    // The queue drops SYNs as well, and then the other side's may come again.
    assert!(audited.syns >= 40, "one SYN of the receiver for each flow: {audited:?}");
    assert!(audited.rewritten > 100, "hardly anything was done: {audited:?}");
    assert_eq!(status.counters.rewritten, (audited.rewritten + audited.lowered) as u64);
    assert_eq!((status.counters.confirmed, status.counters.table_full), (40, 0));
    assert_eq!(
        (status.counters.unknown, status.counters.implausible, status.counters.failed),
        (0, 0, 0)
    );
    // Of those that were heard of lately something is told; 10.x or fd0x, whose ports are not the same.
    assert!(
        !status.flows.is_empty()
            && status.flows.iter().all(|flow| flow.mss == 1460 || flow.mss == 1440)
    );
    audited
}

/// With offloads on: the same flows, whose bytes have to arrive.
pub(crate) fn intact(net: &Net, deployment: &mut dyn Deployment) {
    for way in WAYS {
        net.transfer(way, 10, 100_000);
    }
    let counters = deployment.status(0).unwrap().counters;
    assert_eq!(
        (counters.confirmed, counters.unknown, counters.implausible, counters.failed),
        (40, 0, 0, 0)
    );
    assert!(counters.rewritten > 100, "hardly anything was done: {counters:?}");
}

/// What a policy does to acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Rewrite,
    Hold,
    Nothing,
}

/// Every policy there is, what it does, and whether it remembers flows.
const POLICIES: [(&str, Does, bool); 7] = [
    ("target-window(upper=20kB, lower=10kB)", Does::Rewrite, true),
    ("target-window(upper=20kB, lower=10kB, rule=section-3.2)", Does::Rewrite, true),
    ("target-window(upper=20kB, lower=10kB, naive)", Does::Rewrite, false),
    ("fair-share(queue=30kB, rate=10Mbit/s)", Does::Rewrite, true),
    ("explicit-window(queue=30 packets, mss=1460B)", Does::Rewrite, false),
    ("ack-delay(above=10kB, rate=10Mbit/s, most=50ms)", Does::Hold, false),
    ("none", Does::Nothing, true),
];

/// Transfers of both families under each policy: whatever it does, every byte arrives.
pub(crate) fn every_policy(net: &Net, mut start: impl FnMut(&str) -> Option<Box<dyn Deployment>>) {
    for (policy, does, remembers) in POLICIES {
        let Some(mut deployment) = start(policy) else { return };
        // A policy without a flow table takes the window as it is written in the header.
        let scaling = if remembers { "1" } else { "0" };
        net.sender.set_sysctl("net.ipv4.tcp_window_scaling", scaling).unwrap();
        for way in [WAYS[0], WAYS[2]] {
            net.transfer(way, 5, 150_000);
        }
        let status = deployment.status(100).unwrap();
        let counters = status.counters;
        let [rewritten, held] = [counters.rewritten, counters.held].map(|count| count > 0);
        assert_eq!(
            (rewritten, held),
            (does == Does::Rewrite, does == Does::Hold),
            "{policy}: {counters:?}"
        );
        assert_eq!(counters.confirmed, if remembers { 10 } else { 0 }, "{policy}: {counters:?}");
        // Late packets of flows under the policy before are unknown.
        let odd = (counters.implausible, counters.failed, counters.lost);
        assert_eq!(odd, (0, 0, 0), "{policy}");
        assert!(policy.starts_with(&status.policy), "{policy} is {}", status.policy);
    }
}

/// Ten transfers of 1 MB (figures 4 and 5 of the paper, with the queue in bytes), by senders of all kinds: without control, and then with it.
/// What was dropped with it.
pub(crate) fn compared(
    net: &Net,
    start: impl FnOnce() -> Option<Box<dyn Deployment>>,
) -> Option<Drops> {
    let way = Way { senders: senders(), ..Way::default() };
    let without = net.transfer(way, 10, 1_000_000);
    let mut deployment = start()?;
    let with = net.transfer(way, 10, 1_000_000);
    let counters = deployment.status(0).unwrap().counters;
    eprintln!("without control {without:?}, with it {with:?}");
    assert_eq!((counters.confirmed, counters.unknown, counters.implausible), (10, 0, 0));
    assert!(without.late > 0 && without.all > 0, "the queue was never full: {without:?}");
    // Slow start is over before the first acknowledgement has come back from a full queue; the paper loses there too.
    assert!(with.all < without.all, "{with:?}, {without:?} without control");
    assert!(with.late * 10 < without.late, "{with:?}, {without:?} without control");
    Some(with)
}

/// The kernel's congestion controls that behave most differently, as far as it has them.
pub(crate) fn senders() -> &'static [&'static str] {
    const KINDS: &[&str] = &["cubic", "reno", "bbr"];
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let known = std::fs::read_to_string(file).unwrap();
    // Not all: those from the front that there are, at least one of which there always is.
    let there = |kind: &&&str| known.split_whitespace().any(|word| word == **kind);
    let count = KINDS.iter().take_while(there).count();
    if count < KINDS.len() {
        eprintln!("SKIPPED: senders with {:?}: this kernel has {known}", &KINDS[count..]);
    }
    &KINDS[..count]
}

/// Runs a program inside a namespace; it must succeed. What it printed.
pub(crate) fn run(namespace: &Namespace, program: &str, words: &[&str]) -> String {
    let output = namespace.run(|| Command::new(program).args(words).output()).unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Net {
    /// The bottleneck's queue.
    pub(crate) fn queue(&self) -> RootQueue {
        let mut interfaces = self.router.interfaces();
        let index = interfaces.state(BOTTLENECK).unwrap().index;
        interfaces.root_queue(index).unwrap()
    }

    /// Sends `bytes` over each of `flows` connections at the same time, from the sender to the receiver, and checks every byte that arrives.
    /// What the bottleneck dropped meanwhile.
    pub(crate) fn transfer(&self, to: Way, flows: usize, bytes: usize) -> Drops {
        let before = self.queue().drops;
        let arrived = AtomicUsize::new(0);
        let done = AtomicBool::new(false);
        let watched = thread::scope(|scope| {
            let (arrived, done) = (&arrived, &done);
            let watching = scope.spawn(move || {
                while arrived.load(Ordering::Relaxed) < flows * bytes * 2 / 5
                    && !done.load(Ordering::Relaxed)
                {
                    thread::sleep(Duration::from_millis(5));
                }
                self.queue().drops
            });
            let moved =
                catch_unwind(AssertUnwindSafe(|| self.carry_all(to, flows, bytes, arrived)));
            done.store(true, Ordering::Relaxed);
            moved.unwrap_or_else(|panic| resume_unwind(panic));
            watching.join().unwrap()
        });
        let after = self.queue().drops;
        Drops { all: after - before, late: after - watched }
    }

    fn carry_all(&self, to: Way, flows: usize, bytes: usize, arrived: &AtomicUsize) {
        let (listening, connecting): (&Namespace, &Namespace) = match to.reverse {
            false => (&self.receiver, &self.sender),
            true => (&self.sender, &self.receiver),
        };
        let (four, six) = self.addresses[usize::from(!to.reverse)];
        let address = if to.six { six } else { four };
        let listener = listening.run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
        let at = listener.local_addr().unwrap();
        thread::scope(|scope| {
            let accepting = scope.spawn(move || {
                thread::scope(|scope| {
                    for flow in 0..flows {
                        let (stream, from) = listener.accept().unwrap();
                        if to.reverse {
                            to.choose(&stream, flow);
                        }
                        // The name by which both ends know the flow.
                        let salt = from.port();
                        scope.spawn(move || carry(stream, !to.reverse, salt, bytes, arrived));
                    }
                });
            });
            connecting
                .run(|| {
                    thread::scope(|scope| {
                        for flow in 0..flows {
                            let stream = connect(at);
                            if !to.reverse {
                                to.choose(&stream, flow);
                            }
                            let salt = stream.local_addr().unwrap().port();
                            scope.spawn(move || carry(stream, to.reverse, salt, bytes, arrived));
                        }
                    });
                })
                .unwrap();
            accepting.join().unwrap();
        });
    }
}

/// Packets dropped during a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drops {
    /// From the beginning.
    pub(crate) all: u32,
    /// After two fifths of the data had arrived, when slow start is over.
    pub(crate) late: u32,
}

/// How a transfer goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// Over IPv6.
    pub(crate) six: bool,
    /// The receiver of the data opens the connection.
    pub(crate) reverse: bool,
    /// The senders' congestion controls, dealt out in turn; the system's own if there are none.
    pub(crate) senders: &'static [&'static str],
}

impl Way {
    fn choose(self, stream: &TcpStream, flow: usize) {
        if let Some(name) = self.senders.get(flow % self.senders.len().max(1)) {
            rustix::net::sockopt::set_tcp_congestion(stream, name).unwrap();
        }
    }
}

fn connect(to: SocketAddr) -> TcpStream {
    TcpStream::connect_timeout(&to, PATIENCE).unwrap()
}

/// Takes in or sends `bytes` bytes of a pattern that nothing else has.
fn carry(mut stream: TcpStream, takes: bool, salt: u16, bytes: usize, arrived: &AtomicUsize) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let pattern: Vec<u8> = (0..bytes)
        .map(|at| (at as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3] ^ salt as u8)
        .collect();
    if takes {
        let mut received = Vec::new();
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let length = stream.read(&mut buffer).unwrap();
            if length == 0 {
                break;
            }
            arrived.fetch_add(length, Ordering::Relaxed);
            received.extend_from_slice(&buffer[..length]);
        }
        assert!(received == pattern, "{} bytes arrived, of {bytes}, or others", received.len());
    } else {
        stream.write_all(&pattern).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}

/// What was started, or nothing and a word about it where the system has no means for it.
pub(crate) fn started<T: Deployment + 'static>(
    result: Result<T, Refusal>,
) -> Option<Box<dyn Deployment>> {
    match result {
        Ok(started) => Some(Box::new(started)),
        Err(
            error @ (Refusal::Capability { .. }
            | Refusal::NoQueues(_)
            | Refusal::Tool { .. }
            | Refusal::NoTypes
            | Refusal::BigEndian),
        ) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// The status that fulfils the condition, within a minute.
pub(crate) fn wait_until(
    deployment: &mut dyn Deployment,
    done: impl Fn(&Status) -> bool,
) -> Status {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let status = deployment.status(1).unwrap();
        if done(&status) {
            return status;
        }
        assert!(Instant::now() < end, "{status:?}");
        thread::sleep(Duration::from_millis(1));
    }
}
