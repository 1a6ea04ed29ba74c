//! Two namespaces, a program that sends and one that receives, and what `ss` says of their sockets.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, ErrorKind, Lines, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use transom_device::interface::IpPrefix;
use transom_device::namespace::Namespace;
use transom_kernel::{Cgroup, Controlled, Host, Options};
use transom_tcp::extension::{
    Extension, ExtensionChoice, Limits, Occasion, Value, Variable, View, Wake,
};

/// What is waited for comes within this time, or the test fails.
const PATIENCE: Duration = Duration::from_secs(20);
const HERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const THERE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// The router's, towards both.
const TOWARDS_HERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);
const TOWARDS_THERE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 254);
/// Tells the test program what it is when it is started again.
const ROLE: &str = "TRANSOM_KERNEL_ROLE";

static STOP: AtomicBool = AtomicBool::new(false);

/// Waits until something is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// At most this many segments in the network.
#[derive(Debug)]
struct Segments(u64);

impl Extension for Segments {
    fn name(&self) -> &str {
        "segments"
    }

    fn wake_on(&self) -> Wake {
        Wake::ROUND
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        limits.at_most(Value::Cwnd(self.0 * view.mss()));
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        limits.at_most(Value::Cwnd(self.0 * view.mss()));
    }
}

pub(crate) fn at_most_segments(most: u64) -> ExtensionChoice {
    ExtensionChoice::new(format!("segments({most})"), move || Box::new(Segments(most)))
}

/// Extensions by their names.
pub(crate) fn named(text: &str) -> Vec<ExtensionChoice> {
    transom_extensions::stack(text).unwrap()
}

/// Two namespaces with a router between them, and a control group for programs in the first. The router has the queue: a sender whose own interface has it
/// is held back by the kernel (TCP small queues), not by its window.
pub(crate) struct Net {
    pub(crate) here: Namespace,
    pub(crate) there: Namespace,
    router: Namespace,
    pub(crate) cgroup: Cgroup,
}

impl Net {
    /// `None`, and a word about it, where the system does not let us.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: programs in the kernel need root");
            return None;
        }
        if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            eprintln!("SKIPPED: this kernel has no types (BTF)");
            return None;
        }
        // A kernel that has them takes the programs, or they are wrong.
        transom_kernel::check().unwrap();
        let (here, there) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let router = Namespace::new().unwrap();
        here.add_veth("eth0", &router, "here").unwrap();
        there.add_veth("eth0", &router, "there").unwrap();
        for (namespace, name, address) in [
            (&here, "eth0", HERE),
            (&there, "eth0", THERE),
            (&router, "here", TOWARDS_HERE),
            (&router, "there", TOWARDS_THERE),
        ] {
            let prefix: IpPrefix = format!("{address}/24").parse().unwrap();
            let mut interfaces = namespace.interfaces();
            interfaces.set_up(name, true).unwrap();
            interfaces.add_address(name, prefix).unwrap();
            assert!(interfaces.wait_until_local(IpAddr::from(address), PATIENCE).unwrap());
        }
        router.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
        for (namespace, next) in [(&here, TOWARDS_HERE), (&there, TOWARDS_THERE)] {
            let mut ip = Command::new("ip");
            ip.args(["route", "add", "default", "via", &next.to_string()]);
            assert!(namespace.spawn(&mut ip).unwrap().wait().unwrap().success());
        }
        // Reno and CUBIC are the ones that the controller knows.
        here.set_sysctl("net.ipv4.tcp_congestion_control", "reno").unwrap();
        Some(Net { here, there, router, cgroup: Cgroup::create("transom-test").unwrap() })
    }

    /// The link takes so many kilobits per second, behind a queue of 100 kB. Skipped where `tc` cannot.
    #[must_use]
    pub(crate) fn shape(&self, kilobits: u32) -> bool {
        let mut tc = Command::new("tc");
        tc.args("qdisc add dev there root tbf burst 8kb limit 100kb rate".split(' '));
        let tc = tc.arg(format!("{kilobits}kbit"));
        let done = self.router.spawn(tc).and_then(|mut child| child.wait());
        let done = done.is_ok_and(|status| status.success());
        if !done {
            eprintln!("SKIPPED: tc does not shape the link");
        }
        done
    }

    pub(crate) fn attach(&self, extensions: &[ExtensionChoice], existing: bool) -> Host {
        self.attach_with(extensions, Options { existing, ..Options::default() })
    }

    pub(crate) fn attach_with(&self, extensions: &[ExtensionChoice], options: Options) -> Host {
        self.here.run(|| Host::attach(&self.cgroup, extensions, options)).unwrap().unwrap()
    }

    /// Who receives in the second namespace.
    pub(crate) fn sink(&self) -> Sink {
        let listener = self.there.run(|| TcpListener::bind((THERE, 0))).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::new(AtomicU64::new(0));
        let its = taken.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let its = its.clone();
                thread::spawn(move || take(stream, &its));
            }
        });
        Sink { address, taken }
    }

    /// A program in the first namespace that sends as much as it can; in the control group or not.
    pub(crate) fn sender(&self, sink: &Sink, controlled: bool) -> Sender {
        self.started(this_program("send"), sink, controlled).unwrap()
    }

    /// The same by an ordinary user, in the group, and with a limit of three segments of its own; `None` where that user cannot read this program.
    pub(crate) fn ordinary_sender(&self, sink: &Sink) -> Option<Sender> {
        let mut command = this_program("send-controlled");
        command.uid(65_534).gid(65_534);
        match self.started(command, sink, true) {
            Ok(sender) => Some(sender),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                eprintln!("SKIPPED: an ordinary user cannot read this program");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn started(
        &self,
        mut command: Command,
        sink: &Sink,
        controlled: bool,
    ) -> std::io::Result<Sender> {
        command.stdin(Stdio::piped()).arg("--nocapture");
        command.env("TRANSOM_KERNEL_TO", sink.address.to_string());
        let mut child = self.here.spawn(&mut command)?;
        if controlled {
            self.cgroup.admit(child.id()).unwrap();
        }
        let mut words = child.stdin.take().unwrap();
        words.write_all(b"go\n").unwrap();
        Ok(Sender { child, words: RefCell::new(words) })
    }

    /// A program of Python in the control group, which gets the sink's address and port; `None` without Python.
    pub(crate) fn python(&self, script: &str, sink: &Sink) -> Option<Talking> {
        let mut python = Command::new("python3");
        python.args(["-c", script, &sink.address.ip().to_string()]);
        python.arg(sink.address.port().to_string());
        python.stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = self.here.spawn(&mut python) else {
            eprintln!("SKIPPED: python3 is not installed");
            return None;
        };
        self.cgroup.admit(child.id()).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Some(Talking { child, lines })
    }

    /// A process that attaches extensions and can be killed. A number stands for that many segments.
    pub(crate) fn holder(&self, extension: &str) -> Child {
        let mut command = this_program("hold");
        command.env("TRANSOM_KERNEL_CGROUP", self.cgroup.path());
        command.env("TRANSOM_KERNEL_EXTENSION", extension);
        self.here.spawn(&mut command).unwrap()
    }

    /// The connections of the first namespace that go out.
    pub(crate) fn sockets(&self) -> Vec<Socket> {
        let mut ss = Command::new("ss");
        ss.args(["-tinHO", "state", "established"]).stdout(Stdio::piped());
        let shown = self.here.spawn(&mut ss).unwrap().wait_with_output().unwrap();
        String::from_utf8(shown.stdout).unwrap().lines().filter_map(Socket::read).collect()
    }

    /// The only one.
    pub(crate) fn socket(&self) -> Option<Socket> {
        self.sockets().pop()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let removed = self.cgroup.remove(PATIENCE);
        if !thread::panicking() {
            removed.unwrap();
        }
    }
}

fn this_program(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "support::started_again", "--quiet"]).env(ROLE, role);
    command.stdout(Stdio::null()).stdin(Stdio::null());
    command
}

/// What this program does when a test has started it again. By itself it does nothing.
#[test]
fn started_again() {
    match std::env::var(ROLE).as_deref() {
        Ok(role @ ("send" | "send-controlled")) => {
            let mut word = String::new();
            std::io::stdin().read_line(&mut word).unwrap();
            let to: SocketAddr = std::env::var("TRANSOM_KERNEL_TO").unwrap().parse().unwrap();
            let mut stream = TcpStream::connect(to).unwrap();
            if role == "send-controlled" {
                let controlled = Controlled::new(stream).unwrap();
                assert_eq!(controlled.limit_of(Variable::Cwnd).unwrap(), None);
                controlled.limit(Variable::Cwnd, Some(3 * 1448)).unwrap();
                assert_eq!(controlled.limit_of(Variable::Cwnd).unwrap(), Some(3 * 1448));
                controlled.limit(Variable::Rto, Some(1)).unwrap_err();
                stream = controlled.into();
            }
            let data = vec![7; 1 << 16];
            thread::spawn(move || {
                // With this word it sends no more.
                let mut word = String::new();
                let _ = std::io::stdin().read_line(&mut word);
                STOP.store(true, Ordering::Relaxed);
            });
            loop {
                if STOP.load(Ordering::Relaxed) || stream.write_all(&data).is_err() {
                    break;
                }
            }
            // Whoever has started it ends it.
            thread::sleep(Duration::from_secs(60));
        }
        Ok("hold") => {
            let cgroup = Cgroup::open(std::env::var("TRANSOM_KERNEL_CGROUP").unwrap()).unwrap();
            let text = std::env::var("TRANSOM_KERNEL_EXTENSION").unwrap();
            let extensions = match text.parse() {
                Ok(most) => vec![at_most_segments(most)],
                Err(_) => named(&text),
            };
            let existing = Options { existing: true, ..Options::default() };
            let _host = Host::attach(&cgroup, &extensions, existing).unwrap();
            // A test that forgets it does not leave it for ever.
            thread::sleep(Duration::from_secs(120));
        }
        _ => {}
    }
}

fn take(mut stream: TcpStream, taken: &AtomicU64) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(1..) = stream.read(&mut buffer).inspect(|bytes| {
        taken.fetch_add(u64::try_from(*bytes).unwrap_or(0), Ordering::Relaxed);
    }) {}
}

/// Who receives, and how much there was.
pub(crate) struct Sink {
    address: SocketAddr,
    taken: Arc<AtomicU64>,
}

impl Sink {
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// A program that sends until it is dropped.
pub(crate) struct Sender {
    child: Child,
    words: RefCell<ChildStdin>,
}

impl Sender {
    /// It sends no more, and its connection stays.
    pub(crate) fn stop(&self) {
        self.words.borrow_mut().write_all(b"stop\n").unwrap();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that is spoken to.
pub(crate) struct Talking {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talking {
    pub(crate) fn say(&mut self, word: &str) {
        let mut stdin = self.child.stdin.as_ref().unwrap();
        stdin.write_all(format!("{word}\n").as_bytes()).unwrap();
    }

    /// Its next line.
    pub(crate) fn next(&mut self) -> String {
        self.lines.next().expect("a line").unwrap()
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of `ss`.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) algorithm: String,
    pub(crate) cwnd: u64,
    pub(crate) unacked: u64,
}

impl Socket {
    fn read(line: &str) -> Option<Socket> {
        let number = |name: &str| {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(name));
            word.and_then(|word| word.parse::<u64>().ok())
        };
        // The words before are addresses, queues, and flags.
        let flags = ["ts", "sack", "ecn", "ecnseen", "fastopen"];
        let mut words = line.split_whitespace().skip(4);
        let algorithm = words.find(|word| !flags.contains(word))?.to_owned();
        Some(Socket { algorithm, cwnd: number("cwnd:")?, unacked: number("unacked:").unwrap_or(0) })
    }
}

/// The names of all controllers that the kernel has now.
pub(crate) fn controllers() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()
}
