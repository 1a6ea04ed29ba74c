//! The kernel's own TCP, captured by dumpcap in a namespace of its own over a path that delays and loses packets.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use transom_device::namespace::Namespace;
use transom_trace::Capture;

/// Bytes that are sent.
const BYTES: usize = 3_000_000;
/// Each way, in milliseconds. The capture is behind the delay, so a round trip has it once.
const DELAY: u64 = 10;

/// Runs a program in the namespace, and says whether it did what it should.
fn run(namespace: &Namespace, program: &str, arguments: &str) -> bool {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).stderr(Stdio::null());
    let child = namespace.spawn(&mut command);
    child.and_then(|mut child| child.wait()).is_ok_and(|status| status.success())
}

/// The kernel's transfer, and the file with its packets; none if this machine cannot.
fn captured() -> Option<(tempfile::TempDir, Capture, u16)> {
    let skip = |why: &str| {
        eprintln!("SKIPPED: the kernel's TCP was not captured: {why}");
        None
    };
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => return skip(&error.to_string()),
    };
    // Without merged segments, so that a lost packet is a segment.
    let set_up = run(&namespace, "ip", "link set lo mtu 1500")
        && run(
            &namespace,
            "tc",
            &format!("qdisc add dev lo root netem delay {DELAY}ms loss 3% limit 20000"),
        );
    if !set_up {
        return skip("no ip, no tc, or no netem");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kernel.pcapng");
    let mut command = Command::new("dumpcap");
    command
        .args(["-q", "-i", "lo", "-s", "120", "-f", "tcp", "-w"])
        .arg(&path)
        .stderr(Stdio::piped());
    let Ok(mut dumpcap) = namespace.spawn(&mut command) else { return skip("no dumpcap") };
    let mut said = BufReader::new(dumpcap.stderr.take().unwrap()).lines();
    // "File: …" comes when the capture goes on.
    if !said.by_ref().map_while(Result::ok).any(|line| line.starts_with("File:")) {
        let _ = dumpcap.wait();
        return skip("dumpcap did not begin");
    }
    let port = namespace
        .run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            thread::scope(|scope| {
                scope.spawn(move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.write_all(&vec![7; BYTES]).unwrap();
                });
                let (mut stream, _) = listener.accept().unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                assert_eq!(all.len(), BYTES);
            });
            address.port()
        })
        .unwrap();
    // What dumpcap has not read yet waits in the kernel for it.
    thread::sleep(Duration::from_millis(1500));
    let pid = rustix::process::Pid::from_child(&dumpcap);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    dumpcap.wait().unwrap();
    let capture = Capture::read(BufReader::new(File::open(&path).unwrap())).unwrap();
    Some((directory, capture, port))
}

#[test]
fn every_byte_of_the_kernels_transfer_is_accounted_for() {
    let Some((_directory, capture, port)) = captured() else { return };
    assert!(capture.damage.is_empty(), "{:?}", capture.damage);
    let [connection] = &capture.connections[..] else { panic!("{:?}", capture.connections.len()) };
    assert_eq!(connection.ends[1].port(), port);
    assert_eq!(connection.synchronised, [true; 2]);
    let [there, back] = &connection.ways;
    assert_eq!((there.counts.bytes, back.counts.bytes), (BYTES as u64, 0));
    // Lost before the capture, they fill holes.
    assert!(there.counts.filled > 0, "{:?}", there.counts);
    assert!(!there.sacks.is_empty() && there.counts.duplicate_acks > 0, "{:?}", there.counts);
    assert_eq!(there.counts.unseen, 0);
    // All is acknowledged in the end: the SYN, the data and the FIN.
    assert_eq!(there.acks.last().unwrap().position, BYTES as i64 + 2);
    assert_eq!(there.in_flight.last().unwrap().1, 0);
    for times in [&there.rtt, &there.stamped] {
        assert!(!times.is_empty());
        let least = times.iter().map(|(_, rtt)| rtt.as_micros()).min().unwrap();
        // The clock of the timestamps option has milliseconds.
        assert!(least >= (DELAY - 1) * 1000, "{least} µs");
    }
    // The receiver never lets more come than its window.
    let windows = there.acks.iter().filter_map(|ack| Some(ack.position + ack.window? as i64));
    let edge = windows.max().unwrap();
    assert!(there.sent.iter().all(|sent| sent.end <= edge + 1), "{edge}");
}
