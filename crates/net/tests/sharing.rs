//! Stacks on the address that the kernel of their machine has too. The kernel's routing rules bring each port to its stack, as a broker would.
//!
//! The machine is a network namespace, and its only neighbour another one behind a veth pair.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunError};
use transom_net::{
    HostView, KernelHost, KernelPorts, PortRegistrar, PortSource, Stack, TcpListener, TcpStream,
};

use transom_stack::Interface;

use crate::support::{PATIENCE, receive, send};

/// The machine's addresses, and its neighbour's.
const HERE: [&str; 2] = ["198.51.100.1", "2001:db8:1::1"];
const THERE: [&str; 2] = ["198.51.100.2", "2001:db8:1::2"];
const ALL: [usize; 2] = [0, 1];

fn here(version: usize, port: u16) -> SocketAddr {
    SocketAddr::new(HERE[version].parse().unwrap(), port)
}

fn there(version: usize, port: u16) -> SocketAddr {
    SocketAddr::new(THERE[version].parse().unwrap(), port)
}

/// Runs ip(8).
fn ip(namespace: &Namespace, words: &str) {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stderr(Stdio::piped());
    let child = namespace.spawn(&mut command).expect("starting ip(8)");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {said}");
}

struct Machine {
    namespace: Arc<Namespace>,
    outside: Namespace,
}

impl Machine {
    /// `None` and a word about it where the system cannot do it.
    fn new() -> Option<Machine> {
        if Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_err() {
            eprintln!("SKIPPED: there is no ip(8) here");
            return None;
        }
        let (namespace, outside) = match (Namespace::new(), Namespace::new()) {
            (Ok(namespace), Ok(outside)) => (namespace, outside),
            (Err(error), _) | (_, Err(error)) => {
                eprintln!("SKIPPED: no network namespace here: {error:?}");
                return None;
            }
        };
        namespace.add_veth("eth0", &outside, "eth0").unwrap();
        for (place, ends) in [(&namespace, HERE), (&outside, THERE)] {
            // Nobody else is on this link, and the tests should not wait for anybody's objection.
            place.set_sysctl("net.ipv6.conf.eth0.accept_dad", "0").unwrap();
            ip(place, "link set eth0 up");
            ip(place, &format!("addr add {}/24 dev eth0", ends[0]));
            ip(place, &format!("addr add {}/64 dev eth0 nodad", ends[1]));
        }
        for (name, value) in [
            ("net.ipv4.ip_forward", "1"),
            ("net.ipv6.conf.all.forwarding", "1"),
            ("net.ipv4.conf.all.rp_filter", "0"),
            ("net.ipv4.conf.default.rp_filter", "0"),
            ("net.ipv4.conf.all.accept_local", "1"),
            ("net.ipv4.conf.default.accept_local", "1"),
        ] {
            namespace.set_sysctl(name, value).unwrap();
        }
        // Rules for ports come before the one for local addresses.
        for version in ["-4", "-6"] {
            ip(&namespace, &format!("{version} rule add pref 1000 lookup local"));
            ip(&namespace, &format!("{version} rule del pref 0"));
        }
        Some(Machine { namespace: Arc::new(namespace), outside })
    }

    /// A process with a stack of its own; `number` tells it from others.
    fn process(&self, number: u32) -> Option<Process> {
        self.start(number, |kernel| kernel)
    }

    /// The same with another view of the host, made of the kernel's.
    fn start<H: HostView + 'static>(
        &self,
        number: u32,
        view: impl FnOnce(KernelHost) -> H + Send,
    ) -> Option<Process> {
        let name = format!("tun{number}");
        let builder = Tun::builder().name(&name);
        let tun = match self.namespace.run(|| builder.open()).unwrap() {
            Ok(tun) => tun,
            Err(TunError::Open(error)) => {
                eprintln!("SKIPPED: no access to TUN here: {error}");
                return None;
            }
            Err(error) => panic!("{error:?}"),
        };
        let table = 100 + number;
        for version in ["-4", "-6"] {
            ip(&self.namespace, &format!("{version} route add default dev {name} table {table}"));
        }
        let rules = Rules { namespace: Arc::clone(&self.namespace), table };
        let ports = KernelPorts::default().with_registrar(Some(Arc::new(rules)));
        let start = || {
            let host = view(KernelHost::new(["eth0"]).unwrap());
            let builder = Stack::builder().ports(PortSource::Kernel(ports)).shared(host);
            builder.start(tun).unwrap()
        };
        let stack = self.namespace.run(start).unwrap();
        Some(Process { namespace: Arc::clone(&self.namespace), stack })
    }

    fn kernel_listener(&self, at: SocketAddr) -> net::TcpListener {
        self.namespace.run(|| net::TcpListener::bind(at)).unwrap().unwrap()
    }
}

/// Brings packets for a port to the process that has it, by the kernel's routing.
struct Rules {
    namespace: Arc<Namespace>,
    table: u32,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    fn change(&self, verb: &str, at: SocketAddr) {
        let (version, to) = match at.ip() {
            IpAddr::V4(v4) => ("-4", format!("{v4}/32")),
            IpAddr::V6(v6) => ("-6", format!("{v6}/128")),
        };
        let (port, table) = (at.port(), self.table);
        let rule = format!("pref 10 to {to} ipproto tcp dport {port} lookup {table}");
        ip(&self.namespace, &format!("{version} rule {verb} {rule}"));
    }
}

impl PortRegistrar for Rules {
    fn add(&self, _: &OwnedFd, at: SocketAddr) -> std::io::Result<()> {
        self.change("add", at);
        Ok(())
    }

    fn remove(&self, at: SocketAddr) {
        self.change("del", at);
    }
}

struct Process {
    namespace: Arc<Namespace>,
    stack: Stack,
}

impl Process {
    fn listen(&self, at: SocketAddr) -> TcpListener {
        self.namespace.run(|| self.stack.listen(at)).unwrap().unwrap()
    }

    fn connect(&self, at: SocketAddr) -> std::io::Result<TcpStream> {
        let stream = self.namespace.run(|| self.stack.connect(at)).unwrap()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }
}

fn kernel_connect(namespace: &Namespace, at: SocketAddr) -> net::TcpStream {
    let stream = namespace.run(|| net::TcpStream::connect_timeout(&at, PATIENCE)).unwrap();
    let stream = stream.unwrap_or_else(|error| panic!("connecting to {at}: {error}"));
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a megabyte each way and compares.
fn exchange<A, B>(a: &A, b: &B)
where
    for<'a> &'a A: Read + Write + Send,
    for<'a> &'a B: Read + Write + Send,
    A: Sync,
    B: Sync,
{
    const BYTES: u64 = 1 << 20;
    let one_way = |from: &mut (dyn Write + Send), to: &mut (dyn Read + Send)| {
        thread::scope(|scope| {
            let sender = scope.spawn(|| send(from, 5, BYTES).unwrap());
            let received = receive(to.take(BYTES)).unwrap();
            assert_eq!(received, sender.join().unwrap());
        });
    };
    one_way(&mut &*a, &mut &*b);
    one_way(&mut &*b, &mut &*a);
}

#[test]
fn the_kernel_and_a_stack_serve_the_same_address() {
    let Some(machine) = Machine::new() else { return };
    let Some(process) = machine.process(0) else { return };
    for version in ALL {
        let ours = process.listen(here(version, 8080));
        let kernels = machine.kernel_listener(here(version, 9090));
        // Each of them at once, from outside and from the same machine.
        for from in [&machine.outside, &*machine.namespace] {
            let (to_us, to_kernel) = (
                kernel_connect(from, here(version, 8080)),
                kernel_connect(from, here(version, 9090)),
            );
            let (us, _) = ours.accept().unwrap();
            us.set_read_timeout(Some(PATIENCE)).unwrap();
            let (kernel, _) = kernels.accept().unwrap();
            exchange(&to_us, &us);
            exchange(&to_kernel, &kernel);
            exchange(&to_us, &us);
        }
        // The kernel gives the port to nobody, and we do not take the ports that it uses.
        let taken = machine.namespace.run(|| net::TcpListener::bind(here(version, 8080)));
        assert_eq!(taken.unwrap().unwrap_err().kind(), ErrorKind::AddrInUse);
        let taken = machine.namespace.run(|| process.stack.listen(here(version, 9090)).map(drop));
        assert_eq!(taken.unwrap().unwrap_err().kind(), ErrorKind::AddrInUse);
    }
    assert_eq!(process.stack.counters().resets_sent, 0);
}

#[test]
fn a_stack_connects_from_the_shared_address_to_anywhere() {
    let Some(machine) = Machine::new() else { return };
    let Some(process) = machine.process(0) else { return };
    for version in ALL {
        let outside = machine.outside.run(|| net::TcpListener::bind(there(version, 7000)));
        let places = [
            (outside.unwrap().unwrap(), there(version, 7000)),
            (machine.kernel_listener(here(version, 7000)), here(version, 7000)),
        ];
        for (listener, at) in places {
            let ours = process.connect(at).unwrap();
            let (theirs, from) = listener.accept().unwrap();
            assert_eq!(from, ours.local_addr().unwrap());
            assert_eq!(from.ip(), here(version, 0).ip());
            exchange(&ours, &theirs);
        }
        // Nobody is there: the kernel, whose address it is too, says so.
        let error = process.connect(here(version, 7001)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
    // The kernel's routes are what says where there is a way.
    let error = process.connect("203.0.113.1:80".parse().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
    ip(&machine.namespace, "route add prohibit 203.0.113.0/24");
    let error = process.connect("203.0.113.1:80".parse().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn two_processes_share_the_address_and_talk_to_each_other() {
    let Some(machine) = Machine::new() else { return };
    let (Some(one), Some(other)) = (machine.process(0), machine.process(1)) else { return };
    for version in ALL {
        let listener = one.listen(here(version, 8080));
        let error = other.namespace.run(|| other.stack.listen(here(version, 8080)).map(drop));
        assert_eq!(error.unwrap().unwrap_err().kind(), ErrorKind::AddrInUse);
        let second = other.listen(here(version, 8081));
        for (from, to, at) in [(&other, &listener, 8080), (&one, &second, 8081)] {
            let client = from.connect(here(version, at)).unwrap();
            let (server, peer) = to.accept().unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
            exchange(&client, &server);
        }
        // To itself it needs nobody.
        for stack in [&one.stack, &other.stack] {
            assert!(stack.drain(PATIENCE));
        }
        let before = one.stack.counters().packets_sent;
        let client = one.connect(here(version, 8080)).unwrap();
        let (server, _) = listener.accept().unwrap();
        exchange(&client, &server);
        assert_eq!(one.stack.counters().packets_sent, before);
    }
}

#[test]
fn a_port_that_was_given_up_is_the_kernels_again() {
    let Some(machine) = Machine::new() else { return };
    let Some(process) = machine.process(0) else { return };
    let at = here(0, 8080);
    let listener = process.listen(at);
    let mut client = kernel_connect(&machine.outside, at);
    let (server, _) = listener.accept().unwrap();
    server.set_linger(Some(Duration::ZERO)).unwrap();
    drop((server, listener));
    let mut byte = [0];
    assert_eq!(client.read(&mut byte).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let kernels = machine.kernel_listener(at);
    let client = kernel_connect(&machine.outside, at);
    exchange(&client, &kernels.accept().unwrap().0);
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Both a connection of the kernel's and one of ours, from the machine to its neighbour.
fn both(machine: &Machine, process: &Process) -> [(Box<dyn Write>, net::TcpStream); 2] {
    let at = there(0, 7000);
    let listener = machine.outside.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
    let kernels = kernel_connect(&machine.namespace, at);
    let (end_of_kernels, _) = listener.accept().unwrap();
    let ours = process.connect(at).unwrap();
    let (end_of_ours, _) = listener.accept().unwrap();
    for end in [&end_of_kernels, &end_of_ours] {
        end.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    [(Box::new(kernels), end_of_kernels), (Box::new(ours), end_of_ours)]
}

/// What Linux does: the connection waits for its address, and goes on when it is back.
#[test]
fn an_address_that_goes_and_comes_back_ends_no_connection() {
    let Some(machine) = Machine::new() else { return };
    let Some(process) = machine.process(0) else { return };
    let mut pairs = both(&machine, &process);
    ip(&machine.namespace, &format!("addr del {}/24 dev eth0", HERE[0]));
    wait_for("the stack to learn that the address has gone", || {
        let refused = process.namespace.run(|| process.stack.listen(here(0, 8080)).map(drop));
        refused.unwrap().is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
    });
    for (stream, _) in &mut pairs {
        stream.write_all(b"while it is away").unwrap();
    }
    wait_for("something that could not leave", || {
        process.stack.counters().unsent_without_address > 0
    });
    for (_, end) in &pairs {
        end.set_nonblocking(true).unwrap();
        let nothing = (&mut &*end).read(&mut [0; 16]).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        end.set_nonblocking(false).unwrap();
    }
    ip(&machine.namespace, &format!("addr add {}/24 dev eth0", HERE[0]));
    for (stream, end) in &mut pairs {
        let mut buffer = [0; 21];
        stream.write_all(b"again").unwrap();
        end.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"while it is awayagain");
    }
}

#[test]
fn a_link_that_is_down_for_a_while_ends_no_connection() {
    let Some(machine) = Machine::new() else { return };
    let Some(process) = machine.process(0) else { return };
    let mut pairs = both(&machine, &process);
    for name in ["eth0", "tun0"] {
        ip(&machine.namespace, &format!("link set {name} down"));
        for (stream, _) in &mut pairs {
            stream.write_all(b"down").unwrap();
        }
        thread::sleep(Duration::from_millis(500));
        ip(&machine.namespace, &format!("link set {name} up"));
        if name == "tun0" {
            // The kernel forgets routes through an interface that is down.
            ip(&machine.namespace, "route add default dev tun0 table 100");
        }
        for (stream, end) in &mut pairs {
            let mut buffer = [0; 6];
            stream.write_all(b"up").unwrap();
            end.read_exact(&mut buffer).unwrap();
            assert_eq!(&buffer, b"downup", "{name}");
        }
    }
}

#[test]
fn addresses_and_routes_are_followed() {
    let Some(machine) = Machine::new() else { return };
    let Some(process) = machine.process(0) else { return };
    let at = there(0, 7000);
    let listener = machine.outside.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
    let source = || {
        let ours = process.connect(at).unwrap();
        assert_eq!(listener.accept().unwrap().1, ours.local_addr().unwrap());
        ours.local_addr().unwrap().ip().to_string()
    };
    assert_eq!(source(), "198.51.100.1");
    ip(&machine.namespace, "addr add 198.51.100.77/24 dev eth0");
    wait_for("the new address", || {
        let bound = process.namespace.run(|| process.stack.listen("198.51.100.77:0").map(drop));
        bound.unwrap().is_ok()
    });
    assert_eq!(source(), "198.51.100.1", "the kernel's choice is as before");
    ip(&machine.namespace, "route replace 198.51.100.2/32 dev eth0 src 198.51.100.77");
    assert_eq!(source(), "198.51.100.77", "the kernel's route says so");
    ip(&machine.namespace, "addr del 198.51.100.77/24 dev eth0");
    assert_eq!(source(), "198.51.100.1");
}

#[test]
fn the_mtu_is_followed() {
    let Some(machine) = Machine::new() else { return };
    let Some(process) = machine.process(0) else { return };
    for version in ALL {
        let listener = process.listen(here(version, 8080));
        let client = kernel_connect(&machine.outside, here(version, 8080));
        let (server, _) = listener.accept().unwrap();
        let mtu = || server.with_connection(|connection, _| connection.path_state().mtu).unwrap();
        exchange(&client, &server);
        assert_eq!(mtu(), 1500);
        for (set, expected) in [(1400, 1400), (1500, 1500), (9000, 1500)] {
            ip(&machine.namespace, &format!("link set eth0 mtu {set}"));
            wait_for("the new MTU", || mtu() == expected);
            exchange(&client, &server);
        }
        ip(&machine.namespace, "link set eth0 mtu 1500");
    }
}

/// A machine that answers no more once it has gone; it counts the questions.
struct Leaving {
    kernel: KernelHost,
    gone: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
}

impl HostView for Leaving {
    fn interface(&mut self) -> io::Result<Interface> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.gone.load(Ordering::Relaxed) {
            true => Err(ErrorKind::NotConnected.into()),
            false => self.kernel.interface(),
        }
    }
}

/// Addresses change and nobody answers for them: the host is asked once a second, and not again and again.
#[test]
fn a_host_that_does_not_answer_is_asked_once_a_second() {
    let Some(machine) = Machine::new() else { return };
    let (gone, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let of_host = (Arc::clone(&gone), Arc::clone(&asked));
    let started =
        machine.start(7, move |kernel| Leaving { kernel, gone: of_host.0, asked: of_host.1 });
    let Some(_process) = started else { return };
    gone.store(true, Ordering::Relaxed);
    ip(&machine.namespace, "addr add 198.51.100.77/24 dev eth0");
    wait_for("a question without an answer", || asked.load(Ordering::Relaxed) > 1);
    let (before, began) = (asked.load(Ordering::Relaxed), Instant::now());
    for last in 78..88 {
        ip(&machine.namespace, &format!("addr add 198.51.100.{last}/24 dev eth0"));
        thread::sleep(Duration::from_millis(200));
    }
    let questions = asked.load(Ordering::Relaxed) - before;
    let most = began.elapsed().as_secs() + 2;
    assert!((1..=most).contains(&questions), "{questions} questions in {:?}", began.elapsed());
}
