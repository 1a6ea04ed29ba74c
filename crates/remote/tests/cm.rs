//! The Congestion Manager of several processes: its server, hosts that offer connections, programs, and those that do not keep to the protocol.

use crate::support::{SOON, requested};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use transom_device::EventFd;
use transom_device::memory::{MemoryConfig, pair};
use transom_extensions::cm::{Feedback, LossMode, Manager};
use transom_extensions::stack_sharing;
use transom_net::{Profile, Stack, TcpListener, TcpStream};
use transom_remote::ExtensionSocket;
use transom_remote::cm::{Client, CmServer, Macroflow, Registration};
use transom_tcp::extension::{Interval, Variable};

const ONE: &str = "10.0.0.2";
const OTHER: &str = "10.0.0.3";

/// Two hosts, of which one sends and has an extension socket if it is to have one: as much as a process has.
struct Process {
    us: Stack,
    _them: Stack,
    listener: TcpListener,
    socket: Option<ExtensionSocket>,
    streams: Vec<(TcpStream, TcpStream)>,
}

impl Process {
    fn new(profile: Profile, socket: Option<PathBuf>) -> Self {
        let (a, b) = pair(&MemoryConfig::default()).unwrap();
        let us = Stack::builder().address([10, 0, 0, 1].into(), 24).profile(profile).start(a);
        let them = Stack::builder().address([10, 0, 0, 2].into(), 24);
        let them = them.address([10, 0, 0, 3].into(), 24).start(b).unwrap();
        let listener = them.listen("0.0.0.0:80").unwrap();
        let socket = socket.map(|path| ExtensionSocket::listen(path).unwrap());
        Process { us: us.unwrap(), _them: them, listener, socket, streams: Vec::new() }
    }

    /// One that the server manages.
    fn managed(scene: &Scene, name: &str) -> Self {
        Process::new(Profile::default(), Some(scene.extensions.path().join(name)))
    }

    fn connect(&mut self, remote: &str) {
        let remote = SocketAddr::new(remote.parse().unwrap(), 80);
        let ours = self.us.connect(remote).unwrap();
        let theirs = self.listener.accept().unwrap().0;
        if let Some(socket) = &self.socket {
            socket.offer(&ours).unwrap().keep();
        }
        self.streams.push((ours, theirs));
    }

    /// So many bytes go over the connection `number`.
    fn transfer(&self, number: usize, bytes: usize) {
        let (ours, theirs) = &self.streams[number];
        let mut reader = theirs.try_clone().unwrap();
        let read = std::thread::spawn(move || reader.read_exact(&mut vec![0; bytes]));
        let mut writer = ours.try_clone().unwrap();
        writer.write_all(&vec![1; bytes]).unwrap();
        read.join().unwrap().unwrap();
    }

    fn limit(&self, number: usize) -> Option<Interval> {
        requested(&self.streams[number].0, Variable::Cwnd)
    }

    fn layers(&self, number: usize) -> usize {
        let count = |connection: &mut transom_tcp::Connection, _| connection.layers().count();
        self.streams[number].0.with_connection(count).unwrap()
    }

    fn cwnd(&self, number: usize) -> u64 {
        self.streams[number].0.info().unwrap().cwnd
    }
}

/// A server, and where it looks.
struct Scene {
    extensions: tempfile::TempDir,
    directory: tempfile::TempDir,
    server: Option<(Arc<EventFd>, JoinHandle<std::io::Result<()>>)>,
}

impl Scene {
    fn new() -> Self {
        let (extensions, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut scene = Scene { extensions, directory, server: None };
        scene.start();
        scene
    }

    fn start(&mut self) {
        let places = vec![self.extensions.path().to_owned()];
        let server = CmServer::new(places, Some(&self.programs()), |_| ()).unwrap();
        let stopper = server.stopper();
        self.server = Some((stopper, std::thread::spawn(|| server.run())));
    }

    /// Where programs come to.
    fn programs(&self) -> PathBuf {
        self.directory.path().join("cm")
    }

    fn stop(&mut self) {
        if let Some((stopper, thread)) = self.server.take() {
            stopper.signal();
            thread.join().unwrap().unwrap();
        }
    }

    fn list(&self) -> Vec<Macroflow> {
        Client::list(self.programs()).unwrap()
    }

    /// The macroflows, with how many flows each has.
    fn flows(&self) -> Vec<(String, usize)> {
        self.list().into_iter().map(|one| (one.name, one.flows.len())).collect()
    }

    fn until_flows(&self, expected: &[(&str, usize)]) {
        let expected: Vec<_> =
            expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        until(&format!("{expected:?}"), || self.flows() == expected);
    }

    fn client(&self, destination: &str, packet: u32, weight: u32) -> Client {
        let destination: IpAddr = destination.parse().unwrap();
        Client::connect(self.programs(), &Registration { destination, packet, weight }).unwrap()
    }

    /// A program that says what it likes.
    fn raw(&self) -> UnixStream {
        let stream = UnixStream::connect(self.programs()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.set_write_timeout(Some(SOON)).unwrap();
        stream
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some((stopper, _)) = &self.server {
            stopper.signal();
        }
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < SOON, "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn connections_of_several_processes_are_grouped_by_destination_and_limited() {
    let mut scene = Scene::new();
    let (mut a, mut b) = (Process::managed(&scene, "a"), Process::managed(&scene, "b"));
    a.connect(ONE);
    b.connect(ONE);
    scene.until_flows(&[(ONE, 2)]);
    // A later one, and elsewhere.
    b.connect(OTHER);
    scene.until_flows(&[(ONE, 2), (OTHER, 1)]);
    a.transfer(0, 100_000);
    b.transfer(0, 100_000);
    for (process, number) in [(&a, 0), (&b, 0), (&b, 1)] {
        until("a limit", || process.limit(number).is_some_and(|limit| limit.high() < u64::MAX));
    }
    let mine = i32::try_from(std::process::id()).unwrap();
    assert!(scene.list().iter().flat_map(|one| &one.flows).all(|flow| flow.process == mine));
    // A process ends.
    drop(a);
    scene.until_flows(&[(ONE, 1), (OTHER, 1)]);
    // The server ends, and TCP is what it was; another server takes over.
    scene.stop();
    until("plain TCP", || b.layers(0) == 0 && b.limit(0).is_none());
    b.transfer(0, 100_000);
    scene.start();
    scene.until_flows(&[(ONE, 1), (OTHER, 1)]);
    until("a limit", || b.limit(0).is_some());
}

/// The arithmetic is that of `transom_extensions::cm`: a flow of weight three with ten packets in its window, and a connection with its own.
#[test]
fn a_connection_has_its_share_beside_a_program() {
    let scene = Scene::new();
    let mut udp = scene.client(ONE, 1000, 3);
    assert_eq!(udp.macroflow(), ONE);
    udp.request(100).unwrap();
    for _ in 0..10 {
        let grant = udp.wait_grant(SOON).unwrap().expect("a grant");
        assert_eq!(grant.bytes, 1000);
        udp.sent(grant.bytes).unwrap();
    }
    assert_eq!(udp.wait_grant(Duration::from_millis(50)).unwrap(), None, "the window is full");
    let mut process = Process::managed(&scene, "a");
    process.connect(ONE);
    until("the share", || {
        // It has not gone.
        udp.request(0).unwrap();
        process.transfer(0, 1);
        let share = (process.cwnd(0) + 10_000) / 4;
        process.limit(0) == Some(Interval::at_most(share))
    });
    // Two arrive in 50 ms; there is room for two, and nobody in slow start is limited by a share of more than the window.
    let rtt = Some(transom_tcp::time::Duration::from_millis(50));
    udp.feedback(Feedback { received: 2000, rtt, ..Feedback::default() }).unwrap();
    assert!(udp.wait_grant(SOON).unwrap().is_some());
    let estimate = udp.query().unwrap().expect("a round trip was measured");
    assert_eq!(estimate.rtt, 50_000_000);
    // It goes, and the connection is alone.
    drop(udp);
    scene.until_flows(&[(ONE, 1)]);
    until("the whole window", || {
        process.transfer(0, 1);
        process.limit(0) == Some(Interval::at_most(process.cwnd(0)))
    });
}

#[test]
fn a_program_hears_of_the_end_of_its_server() {
    let mut scene = Scene::new();
    let mut udp = scene.client(ONE, 1000, 1);
    scene.stop();
    let outcome = udp.wait_grant(SOON);
    assert!(outcome.is_err(), "{outcome:?}");
    assert!(Client::list(scene.programs()).is_err());
}

#[test]
fn a_loss_of_one_program_is_a_loss_of_all() {
    let scene = Scene::new();
    let (mut one, mut two) = (scene.client(ONE, 1000, 1), scene.client(ONE, 1000, 1));
    for udp in [&mut one, &mut two] {
        udp.request(100).unwrap();
        for _ in 0..10 {
            let grant = udp.wait_grant(SOON).unwrap().expect("a grant");
            udp.sent(grant.bytes).unwrap();
        }
    }
    // Its window is five packets now, and the sum of both fifteen: seven each at most.
    one.feedback(Feedback { lost: 1000, mode: LossMode::Loss, ..Feedback::default() }).unwrap();
    let shares = || {
        let list = scene.list();
        let flows = list.first().map(|one| one.flows.clone()).unwrap_or_default();
        flows.iter().filter_map(|flow| flow.share).collect::<Vec<_>>()
    };
    until("the shares", || {
        one.request(0).unwrap();
        two.request(0).unwrap();
        shares() == [5000, 7500]
    });
}

#[test]
fn programs_that_do_not_keep_to_the_protocol_are_told_and_dropped() {
    let scene = Scene::new();
    let register = r#"{"register":{"destination":"10.0.0.2","packet":1000}}"#;
    let long = "x".repeat(4096 + 1);
    for (lines, reason) in [
        (vec!["nonsense"], "expected"),
        (vec![r#"{"request":1}"#], "the first message is register"),
        (vec![register, register], "one flow"),
        (vec![r#"{"register":{"destination":"10.0.0.2","packet":0}}"#], "packet is 1 to 65535"),
        (vec![r#"{"register":{"destination":"10.0.0.2","packet":9,"weight":0}}"#], "weight is"),
        (vec![r#"{"register":{"destination":"host","packet":9}}"#], "invalid IP address"),
        (vec![r#"{"register":{"destination":"10.0.0.2","packet":9,"x":1}}"#], "unknown field"),
        (vec![register, r#"{"sent":-1}"#], "invalid value"),
        (vec![register, r#"{"feedback":{"mode":"rage"}}"#], "unknown variant"),
        (vec![register, r#"{"request":99999999999}"#], "invalid value"),
        (vec![long.as_str()], "at most 4096 bytes"),
    ] {
        let mut raw = scene.raw();
        for line in &lines {
            // It may have closed already.
            let _ = raw.write_all(format!("{line}\n").as_bytes());
        }
        let mut said = String::new();
        let _ = BufReader::new(raw).read_to_string(&mut said);
        let last = said.lines().last().unwrap_or_default();
        assert!(last.starts_with(r#"{"error":"#) && last.contains(reason), "{lines:?}: {said}");
    }
    scene.until_flows(&[]);
}

/// Numbers without bounds, a program that never reads, and one that says nothing.
#[test]
fn programs_cannot_make_the_server_grow_or_wait() {
    let scene = Scene::new();
    let mut greedy = scene.raw();
    let register = r#"{"register":{"destination":"10.0.0.2","packet":1,"weight":1000}}"#;
    let most = u64::MAX;
    let feedback =
        format!(r#"{{"feedback":{{"received":{most},"lost":{most},"mode":"loss","rtt":{most}}}}}"#);
    let again = format!(r#"{{"feedback":{{"received":{most},"rtt":0}}}}"#);
    let lines = [
        register.to_owned(),
        format!(r#"{{"request":{}}}"#, u32::MAX),
        format!(r#"{{"sent":{most}}}"#),
        feedback,
        again.clone(),
        format!(r#"{{"sent":{most}}}"#),
        again,
        r#"{"query":{}}"#.to_owned(),
    ];
    greedy.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    // It asks and asks, and never reads: at some point the server does not read either.
    greedy.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut asked = 0;
    while asked < 100_000 && greedy.write_all(b"{\"query\":{}}\n").is_ok() {
        asked += 1;
    }
    let _silent = scene.raw();
    let mut udp = scene.client(ONE, 1000, 1);
    udp.request(1).unwrap();
    assert!(udp.wait_grant(SOON).unwrap().is_some(), "one packet may always leave");
    // It goes when its patience is over, and takes the greedy one's flow with it.
    drop(greedy);
    scene.until_flows(&[(ONE, 1)]);
}

/// Sockets in the directory that are none of Transom's.
#[test]
fn strange_sockets_do_no_harm() {
    let scene = Scene::new();
    let hello = |many: usize| {
        let one = r#"{"connection":0,"local":"10.0.0.1:1","remote":"10.0.0.2:2"}"#;
        let all = vec![one; many].join(",");
        format!("{{\"hello\":\"transom\",\"version\":2,\"connections\":[{all}]}}\n")
    };
    let attached = r#"{"attached":{"connection":0,"local":"10.0.0.1:1","remote":"10.0.0.2:2"}}"#;
    let frames: [&[u8]; 4] = [
        &[0xff; 64],
        &[0, 0, 0, 0, 1, 0, 0, 0],
        &[4, 0, 0, 0, 1, 0, 0, 0],
        &[12, 0, 0, 0, 1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9],
    ];
    let mut answers: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"\n\n\n".to_vec(),
        b"{\"hello\":3}\n".to_vec(),
        vec![b'x'; 3 << 20],
        hello(20_000).into_bytes(),
        hello(3000).into_bytes(),
        b"{\"over\":\"never begun\"}\n".to_vec(),
    ];
    for frame in frames {
        let mut answer = format!("{}{attached}\n", hello(1)).into_bytes();
        answer.extend(frame);
        answers.push(answer);
    }
    for (number, answer) in answers.into_iter().enumerate() {
        let listener = UnixListener::bind(scene.extensions.path().join(format!("x{number}")));
        let listener = listener.unwrap();
        std::thread::spawn(move || {
            // Everybody gets the same, and some time to be served; the thread ends with the test program.
            for stream in listener.incoming().take(5000).flatten() {
                let _ = stream.set_write_timeout(Some(Duration::from_millis(50)));
                let _ = (&stream).write_all(&answer);
                let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
                let mut line = String::new();
                let _ = BufReader::new(&stream).read_line(&mut line);
            }
        });
    }
    std::thread::sleep(Duration::from_millis(600));
    let mut process = Process::managed(&scene, "good");
    process.connect(OTHER);
    let served = || scene.flows().iter().any(|(name, count)| (name.as_str(), *count) == (OTHER, 1));
    until("the good one", served);
    until("a limit", || process.limit(0).is_some());
}

/// Within a process, `cm` without a name separates connections by their destination.
#[test]
fn the_extension_in_a_process_goes_by_destination() {
    let manager = Manager::default();
    let extensions = stack_sharing("cm", &manager).unwrap();
    let mut process = Process::new(Profile::default().with_extensions(extensions), None);
    process.connect(ONE);
    process.connect(OTHER);
    process.connect(ONE);
    let macroflows = manager.macroflows(transom_tcp::time::Instant::ZERO);
    let members = macroflows.iter().map(|(name, one)| (name.as_str(), one.members));
    assert!(members.eq([(ONE, 2), (OTHER, 1)]));
}

/// The path of the server's socket, for the process of another user.
const SOCKET: &str = "TRANSOM_TEST_CM_SOCKET";
const NOBODY: u32 = 65_534;

/// The other user's process, in the next test.
#[test]
#[ignore = "a part of the next test"]
fn a_stranger() {
    let Some(path) = std::env::var_os(SOCKET) else { return };
    let error = Client::connect(path, &Registration::new(ONE.parse().unwrap(), 1000)).unwrap_err();
    println!("the stranger hears: {error}");
}

#[test]
fn programs_of_other_users_are_turned_away() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can start a process of another user");
        return;
    }
    let scene = Scene::new();
    let open = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode));
    open(scene.directory.path(), 0o755).unwrap();
    open(&scene.programs(), 0o777).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "cm::a_stranger", "--nocapture"]);
    let output = match command.env(SOCKET, scene.programs()).uid(NOBODY).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: another user cannot run this program: {error}");
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let turned_away =
        said.contains("the stranger hears: this server takes programs of its own user");
    assert!(turned_away, "{said}{}", String::from_utf8_lossy(&output.stderr));
    scene.until_flows(&[]);
}
