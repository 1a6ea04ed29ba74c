//! Measurements: they take long, and print what they find. `cargo test -p transom-kernel --features bpf --test all measures:: -- --ignored
//! --nocapture --test-threads=1`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use transom_kernel::Options;
use transom_tcp::extension::{Extension, ExtensionChoice, Limits, Occasion, View, Wake};

use crate::support::{Net, Sink, THERE, named, until};

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Bytes that arrive in a while.
fn during(sink: &Sink, time: Duration) -> f64 {
    let (begun, before) = (Instant::now(), sink.taken());
    thread::sleep(time);
    (sink.taken() - before) as f64 / begun.elapsed().as_secs_f64()
}

/// Whoever runs the extensions of the two other flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserSpace {
    Alive,
    Stopped,
    Killed,
}

const STATES: [UserSpace; 3] = [UserSpace::Alive, UserSpace::Stopped, UserSpace::Killed];
/// So many samples of each case.
const ROUNDS: usize = 5;

/// Figure 3 of icTCP on the kernel's sockets: two plain flows beside two with an extension that asks for more. They are to have the share that they
/// have beside plain ones, which is a half.
#[test]
#[ignore = "takes minutes"]
fn flows_beside_greedy_ones() {
    let Some(net) = Net::new() else { return };
    if !net.shape(20_000) {
        return;
    }
    let time = Duration::from_secs(12);
    let shares = |extension: Option<(&str, UserSpace)>| {
        let (plain, other) = (net.sink(), net.sink());
        let holder = extension.map(|(text, state)| (net.holder(text), state));
        if holder.is_some() {
            // Until it has attached.
            thread::sleep(Duration::from_secs(1));
        }
        let _plain = [net.sender(&plain, false), net.sender(&plain, false)];
        let _other = [net.sender(&other, true), net.sender(&other, true)];
        until("all send", || plain.taken() > 100_000 && other.taken() > 100_000);
        match &holder {
            Some((holder, UserSpace::Stopped)) => {
                kill_process(Pid::from_child(holder), Signal::STOP).unwrap();
            }
            Some((holder, UserSpace::Killed)) => {
                kill_process(Pid::from_child(holder), Signal::KILL).unwrap();
            }
            _ => {}
        }
        let (before, others) = (plain.taken(), other.taken());
        thread::sleep(time);
        let (plain, other) = (plain.taken() - before, other.taken() - others);
        if let Some((mut holder, _)) = holder {
            holder.kill().unwrap();
            holder.wait().unwrap();
        }
        plain as f64 / (plain + other) as f64
    };
    // As many samples beside plain flows as of each state.
    let mut cases = Vec::new();
    for text in [
        "greedy(cwnd=4)",
        "greedy(cwnd-cnt=4)",
        "greedy(ssthresh=2)",
        "greedy(cwnd=4, cwnd-cnt=4, ssthresh=2)",
    ] {
        cases.push(None);
        cases.extend(STATES.map(|state| Some((text, state))));
    }
    // In turns, because shares of a full queue scatter, and so does the machine.
    let mut found = vec![Vec::new(); cases.len()];
    for round in 1..=ROUNDS {
        for (case, found) in cases.iter().zip(&mut found) {
            found.push(shares(*case));
        }
        eprintln!("round {round} of {ROUNDS}");
    }
    println!("share of two plain flows: median and all samples");
    for (case, mut found) in cases.iter().zip(found) {
        let name = match case {
            None => "beside plain ones".to_owned(),
            Some((text, state)) => format!("beside {text}, {state:?}"),
        };
        println!("{name}: {:.3} of {found:.3?}", median(&mut found));
    }
}

/// Is woken, and asks nothing.
#[derive(Debug)]
struct Watches(Wake);

impl Extension for Watches {
    fn name(&self) -> &str {
        "watches"
    }

    fn wake_on(&self) -> Wake {
        self.0
    }

    fn on_wake(&mut self, _occasion: &Occasion, _view: &View<'_>, _limits: &mut Limits) {}
}

fn watching(wake: Wake) -> Vec<ExtensionChoice> {
    vec![ExtensionChoice::new("watches", move || Box::new(Watches(wake)))]
}

/// The throughput of one connection without a link that limits it, in the same run as the kernel's alone.
#[test]
#[ignore = "takes minutes"]
fn cost() {
    let Some(net) = Net::new() else { return };
    let sink = net.sink();
    let time = Duration::from_millis(1500);
    let once = |extensions: Option<Vec<ExtensionChoice>>| {
        let host = extensions.map(|extensions| net.attach(&extensions, false));
        let before = sink.taken();
        let sender = net.sender(&sink, host.is_some());
        until("it sends", || sink.taken() > before + 50_000_000);
        let rate = during(&sink, time);
        let report = host.as_ref().map(|host| host.report());
        drop(sender);
        until("it has gone", || net.sockets().is_empty());
        (rate, report.map_or((0, 0), |report| (report.events, report.lost_records)))
    };
    let kinds: [(&str, Option<Wake>); 4] = [
        ("no extension", None),
        ("each round", Some(Wake::ROUND)),
        ("each acknowledgement", Some(Wake::ACK)),
        ("each acknowledgement and duplicate", Some(Wake::ACK | Wake::DUPLICATE_ACK)),
    ];
    let mut ratios = [const { Vec::new() }; 4];
    for _ in 0..11 {
        for ((name, wake), ratios) in kinds.iter().zip(&mut ratios) {
            let (plain, _) = once(None);
            let extensions = wake.map_or_else(Vec::new, watching);
            let (rate, (events, lost)) = once(Some(extensions));
            ratios.push(rate / plain);
            println!(
                "{name}: {:.2} Gbit/s of {:.2}, {events} events, {lost} lost",
                rate * 8e-9,
                plain * 8e-9
            );
        }
    }
    for ((name, _), ratios) in kinds.iter().zip(&mut ratios) {
        println!("{name}: {:.3} of the kernel alone (median of {})", median(ratios), ratios.len());
    }
}

/// Bytes of memory that this process has.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

/// One, 100 and 9,500 connections: the memory that each takes in user space, and how many events a second are carried while all send, and lost. The connections
/// are this process's, so that their own memory is the kernel's.
#[test]
#[ignore = "takes minutes, and 20,000 descriptors"]
fn scale() {
    let Some(net) = Net::new() else { return };
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let listener = net.there.run(|| TcpListener::bind((THERE, 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    for count in [1, 100, 9500] {
        for (name, extensions, in_kernel) in [
            ("each round", watching(Wake::ROUND), false),
            ("each acknowledgement", watching(Wake::ACK), false),
            ("nice", named("nice"), false),
            ("nice in the kernel", named("nice"), true),
        ] {
            let host = net.attach_with(&extensions, Options { in_kernel, ..Options::default() });
            let before = resident();
            let connect = || (0..count).map(|_| TcpStream::connect(to).unwrap()).collect();
            let mut accepted = Vec::new();
            let connected: Vec<TcpStream> = thread::scope(|scope| {
                let accepting = scope.spawn(|| -> Vec<TcpStream> {
                    (0..count).map(|_| listener.accept().unwrap().0).collect()
                });
                let connected = net.here.run(|| net.cgroup.within(connect)).unwrap().unwrap();
                accepted = accepting.join().unwrap();
                connected
            });
            until("all are there", || host.report().connections.len() == count);
            let memory = (resident() - before) / count as f64;
            for stream in connected.iter().chain(&accepted) {
                stream.set_nonblocking(true).unwrap();
            }
            let stop = AtomicBool::new(false);
            let (mut taken, begun, first) = (0, Instant::now(), host.report());
            thread::scope(|scope| {
                scope.spawn(|| {
                    let data = vec![7; 16 << 10];
                    while !stop.load(Ordering::Relaxed) {
                        for mut stream in &connected {
                            let _ = stream.write(&data);
                        }
                    }
                });
                let mut buffer = vec![0; 256 << 10];
                while begun.elapsed() < Duration::from_secs(5) {
                    for mut stream in &accepted {
                        taken += stream.read(&mut buffer).unwrap_or(0);
                    }
                }
                stop.store(true, Ordering::Relaxed);
            });
            let (report, time) = (host.report(), begun.elapsed().as_secs_f64());
            println!(
                "{count} connections, {name}: {memory:.0} bytes each in user space; {:.2} Gbit/s, {:.0} events a \
                 second, {:.0} records lost a second, {} without room",
                taken as f64 * 8e-9 / time,
                (report.events - first.events) as f64 / time,
                (report.lost_records - first.lost_records) as f64 / time,
                report.without_slot
            );
            drop((connected, accepted));
            until("all have gone", || host.report().connections.is_empty());
        }
    }
}

struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Figure 6 of icTCP in small: downloads by curl from nginx in the foreground, iperf3 in the background, both the kernel's, through one link of
/// 10 Mbit/s with a queue of 100 kB.
#[test]
#[ignore = "takes minutes"]
fn nice_beside_downloads() {
    let Some(net) = Net::new() else { return };
    if !net.shape(10_000) {
        return;
    }
    let directory = std::env::temp_dir().join(format!("transom-nice-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("file"), vec![b'x'; 100_000]).unwrap();
    let place = directory.display();
    let text = format!(
        "daemon off; worker_processes 1; pid {place}/pid; error_log {place}/log; user root;
        events {{}}
        http {{ access_log off; server {{ listen 80; root {place}; }} }}"
    );
    fs::write(directory.join("conf"), text).unwrap();
    let mut nginx = Command::new("nginx");
    nginx.arg("-c").arg(directory.join("conf")).arg("-e").arg(directory.join("log"));
    let _nginx = Program(net.here.spawn(&mut nginx).unwrap());
    let mut iperf3 = Command::new("iperf3");
    iperf3.args(["-s", "-p", "5201"]).stdout(Stdio::null());
    let _server = Program(net.there.spawn(&mut iperf3).unwrap());
    let curl = || {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "-m", "20", "-w", "%{time_total}"]);
        curl.arg("http://192.0.2.1/file").stdout(Stdio::piped());
        let said = net.there.spawn(&mut curl).unwrap().wait_with_output().unwrap();
        String::from_utf8(said.stdout).unwrap().parse::<f64>().unwrap_or(f64::NAN)
    };
    until("nginx serves", || curl() > 0.0);
    let downloads = || {
        let mut times: Vec<f64> = (0..40)
            .map(|_| {
                thread::sleep(Duration::from_millis(100));
                curl()
            })
            .collect();
        median(&mut times)
    };
    let background = |flows: u32, controlled: bool| {
        let to = SocketAddr::from((THERE, 5201));
        let mut iperf3 = Command::new("sh");
        let (flows, host) = (flows.to_string(), to.ip().to_string());
        let script = r#"read go; exec iperf3 -c "$0" -p 5201 -t 100 -P "$1" --json"#;
        iperf3.args(["-c", script, &host, &flows]);
        iperf3.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = net.here.spawn(&mut iperf3).unwrap();
        if controlled {
            net.cgroup.admit(child.id()).unwrap();
        }
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        Program(child)
    };
    // What the first namespace has sent.
    let bytes = || {
        let mut ip = Command::new("ip");
        ip.args(["-s", "-j", "link", "show", "eth0"]).stdout(Stdio::piped());
        let said = net.here.spawn(&mut ip).unwrap().wait_with_output().unwrap();
        let value: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        value[0]["stats64"]["tx"]["bytes"].as_u64().unwrap_or(0)
    };
    for flows in [1, 4, 16] {
        let alone = downloads();
        let measured = |program: Program| {
            thread::sleep(Duration::from_secs(2));
            let (begun, before) = (Instant::now(), bytes());
            let time = downloads();
            let carried = (bytes() - before) as f64 * 8e-6 / begun.elapsed().as_secs_f64();
            drop(program);
            until("the background has gone", || net.sockets().is_empty());
            (time, carried)
        };
        let (plain, plain_carried) = measured(background(flows, false));
        let host = net.attach(&named("nice"), false);
        let (nice, nice_carried) = measured(background(flows, true));
        let report = host.report();
        drop(host);
        println!(
            "{flows} background flows: alone {:.0} ms; beside plain TCP {:.0} ms ({plain_carried:.1} Mbit/s in \
             all); beside nice {:.0} ms ({nice_carried:.1} Mbit/s in all); {} events, {} lost",
            alone * 1e3,
            plain * 1e3,
            nice * 1e3,
            report.events,
            report.lost_records
        );
    }
    fs::remove_dir_all(&directory).unwrap();
}
