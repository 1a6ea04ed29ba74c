//! One turn: processes that send, and what arrives of each.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::path::Network;
use crate::{Case, Plan};

const FLOWS: u8 = 4;
/// One after the other, as in the scenario `ictcp/fig8`.
const STAGGER: Duration = Duration::from_millis(100);
const TCP_PORT: u16 = 9000;
const UDP_PORT: u16 = 5000;
/// More than can be sent meanwhile; it takes no room on a disk.
const FILE: u64 = 1 << 30;

/// The throughput of each flow in kbit/s, of which the last may be UDP.
#[derive(Clone, Debug)]
pub(crate) struct Turn(pub(crate) Vec<f64>);

impl Turn {
    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard deviation over these flows, which are all there are.
    pub(crate) fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares = self.0.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        (squares / self.0.len() as f64).sqrt()
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows: Vec<_> = self.0.iter().map(|one| format!("{one:.0}")).collect();
        let (mean, deviation) = (self.mean(), self.deviation());
        write!(f, "{} kbit/s; mean {mean:.1}, deviation {deviation:.1}", flows.join(", "))
    }
}

/// Payload by the sender's address.
type Arrived = Arc<Mutex<BTreeMap<IpAddr, u64>>>;

fn count(arrived: &Arrived, from: IpAddr, bytes: usize) {
    *arrived.lock().unwrap_or_else(PoisonError::into_inner).entry(from).or_default() +=
        bytes as u64;
}

/// Processes that end with this value.
#[derive(Default)]
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &self.0 {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                // It may have ended.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

pub(crate) fn run(plan: &Plan, network: &Network, case: Case) -> Result<Turn> {
    let directory = tempfile::tempdir()?;
    let (sockets, server) = (directory.path().join("sockets"), directory.path().join("cm"));
    std::fs::create_dir(&sockets)?;
    let file = directory.path().join("file");
    File::create(&file)?.set_len(FILE)?;
    let arrived = Arrived::default();
    receive_tcp(network, Arc::clone(&arrived))?;
    receive_udp(network, Arc::clone(&arrived))?;
    let mut processes = Processes::default();
    if case.managed {
        let mut command = Command::new(&plan.transom);
        command.args(["cm", "run", "--quiet"]).arg(&sockets).arg("--socket").arg(&server);
        processes.0.push(network.senders.spawn(command.stdin(Stdio::null()))?);
        let end = Instant::now() + Duration::from_secs(20);
        while !server.exists() {
            if Instant::now() > end {
                bail!("`transom cm run` does not listen");
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    let receiver = network.receiver();
    let mut senders = Vec::new();
    for number in 1..=FLOWS {
        let mut command;
        if case.udp && number == FLOWS {
            command = Command::new(&plan.udp);
            command.arg("send").arg(SocketAddr::new(receiver, UDP_PORT).to_string());
            if case.managed {
                command.arg("--server").arg(&server);
            }
            command.args(["--seconds", "3600"]);
            senders.push(IpAddr::from([10, 8, 0, 1]));
        } else {
            let (address, peer) = ([10, 9, number, 2], [10, 9, number, 1]);
            command = Command::new(&plan.transom);
            command.arg("send").arg(&file).arg(SocketAddr::new(receiver, TCP_PORT).to_string());
            command.args(["--tcp", "classic", "--quiet", "--extension-socket"]);
            command.arg(sockets.join(number.to_string()));
            command.arg("--device").arg(format!("tun:process{number}"));
            command.arg("--addr").arg(format!("{}/24", IpAddr::from(address)));
            command.arg("--peer-addr").arg(format!("{}/24", IpAddr::from(peer)));
            senders.push(IpAddr::from(address));
        }
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        processes.0.push(network.senders.spawn(command).context("cannot start a sender")?);
        thread::sleep(STAGGER);
    }
    let began = Instant::now();
    while arrived.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
        if began.elapsed() > Duration::from_secs(20) {
            bail!("nothing arrives");
        }
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(plan.span);
    let bytes = arrived.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for child in &mut processes.0 {
        if let Some(status) = child.try_wait()? {
            bail!("a process ended early: {status}");
        }
    }
    let rate = |sender: &IpAddr| {
        let bytes = bytes.get(sender).copied().unwrap_or_default();
        bytes as f64 * 8.0 / 1e3 / plan.span.as_secs_f64()
    };
    Ok(Turn(senders.iter().map(rate).collect()))
}

/// Takes connections in a thread, which ends with the process.
fn receive_tcp(network: &Network, arrived: Arrived) -> Result<()> {
    let address = SocketAddr::new(network.receiver(), TCP_PORT);
    let listener = network.receivers.run(|| TcpListener::bind(address))??;
    thread::spawn(move || {
        while let Ok((mut stream, from)) = listener.accept() {
            let arrived = Arc::clone(&arrived);
            thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    count(&arrived, from.ip(), length);
                }
            });
        }
    });
    Ok(())
}

/// Answers each datagram with its number, as `cm_udp receive` does, in a thread that ends with the process.
fn receive_udp(network: &Network, arrived: Arrived) -> Result<()> {
    let address = SocketAddr::new(network.receiver(), UDP_PORT);
    let socket = network.receivers.run(|| UdpSocket::bind(address))??;
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            count(&arrived, from.ip(), length);
            // If the answer does not fit, it is lost as on the way.
            let _ = socket.send_to(&buffer[..length.min(8)], from);
        }
    });
    Ok(())
}
