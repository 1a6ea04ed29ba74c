//! Datagrams that leave by grants of a Congestion Manager: a UDP flow that shares with the TCP connections of other processes to the same host.
//!
//! ```sh
//! cargo run -p transom-remote --example cm_udp -- receive 0.0.0.0:5000
//! cargo run -p transom-remote --example cm_udp -- send 192.0.2.1:5000 --server cm.sock --seconds 30
//! ```
//!
//! The sender always has datagrams to send. The receiver answers each with its number. The sender measures the round-trip time by the answers, and takes
//! a datagram for lost when three later ones were answered. Without a server, or when it goes, the sender controls its congestion by itself, with the same
//! calls (`transom_extensions::cm::Stream`).

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transom_extensions::cm::{Feedback, LossMode, Manager, Stream};
use transom_remote::cm::{Client, Registration};

/// Bytes of a datagram.
const PAYLOAD: usize = 1200;
/// As many headers as it has on the way.
const HEADERS: u64 = 28;
const PACKET: u64 = PAYLOAD as u64 + HEADERS;
/// So many requests are open.
const REQUESTS: u32 = 8;
/// So many later answers make a datagram lost, as duplicate acknowledgements do for TCP.
const LATER: u64 = 3;
/// It waits no longer than this, and for an answer no less than the second.
const PAUSE: Duration = Duration::from_millis(20);
const LEAST_TIMEOUT: Duration = Duration::from_secs(1);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, address, options @ ..] = arguments.as_slice() else {
        return Err("cm_udp receive ADDRESS:PORT, or cm_udp send ADDRESS:PORT [--server PATH] [--seconds N]".into());
    };
    let (mut server, mut span) = (None, Duration::from_secs(30));
    for option in options.chunks(2) {
        match option {
            [name, value] if name == "--server" => server = Some(PathBuf::from(value)),
            [name, value] if name == "--seconds" => {
                span = Duration::try_from_secs_f64(value.parse()?)?
            }
            _ => return Err(format!("{option:?} is not --server PATH or --seconds N").into()),
        }
    }
    match mode.as_str() {
        "receive" => receive(address.parse()?),
        "send" => send(address.parse()?, server, span),
        _ => Err(format!("{mode} is neither send nor receive").into()),
    }
}

/// Answers each datagram with its number.
fn receive(address: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind(address)?;
    let mut buffer = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        if length >= 8 {
            // If the answer does not fit, it is lost as on the way.
            let _ = socket.send_to(&buffer[..8], from);
        }
    }
}

/// The source of grants.
enum Control {
    Server(Client),
    Alone { stream: Stream, started: Instant },
}

impl Control {
    fn alone() -> Self {
        // It is the only flow of its macroflow.
        let stream = Manager::default().open("alone", 1, PACKET as u32);
        Control::Alone { stream, started: Instant::now() }
    }

    fn request(&mut self, packets: u32) -> io::Result<()> {
        match self {
            Control::Server(client) => client.request(packets),
            Control::Alone { stream, started } => {
                stream.request(time(*started), packets);
                Ok(())
            }
        }
    }

    fn poll_grant(&mut self) -> io::Result<bool> {
        match self {
            Control::Server(client) => Ok(client.poll_grant()?.is_some()),
            Control::Alone { stream, started } => Ok(stream.poll_grant(time(*started)).is_some()),
        }
    }

    fn sent(&mut self, bytes: u64) -> io::Result<()> {
        match self {
            Control::Server(client) => client.sent(bytes),
            Control::Alone { stream, started } => {
                stream.notify(time(*started), bytes);
                Ok(())
            }
        }
    }

    fn feedback(&mut self, feedback: Feedback) -> io::Result<()> {
        match self {
            Control::Server(client) => client.feedback(feedback),
            Control::Alone { stream, started } => {
                stream.update(time(*started), feedback);
                Ok(())
            }
        }
    }
}

/// The protocol's time: it needs some past.
fn time(started: Instant) -> transom_tcp::time::Instant {
    let nanos = (started.elapsed() + Duration::from_secs(1000)).as_nanos();
    transom_tcp::time::Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Packets in flight, and the estimates so far.
struct Flight {
    socket: UdpSocket,
    next: u64,
    /// Number and time, the oldest first.
    outstanding: VecDeque<(u64, Instant)>,
    requested: u32,
    delivered: u64,
    lost: u64,
    srtt: Duration,
}

fn send(to: SocketAddr, server: Option<PathBuf>, span: Duration) -> Result<()> {
    let any: SocketAddr = if to.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    let mut control = match server {
        Some(path) => {
            Control::Server(Client::connect(path, &Registration::new(to.ip(), PACKET as u32))?)
        }
        None => Control::alone(),
    };
    let outstanding = VecDeque::new();
    let srtt = Duration::ZERO;
    let mut flight =
        Flight { socket, next: 0, outstanding, requested: 0, delivered: 0, lost: 0, srtt };
    let began = Instant::now();
    while began.elapsed() < span {
        if let Err(error) = flight.turn(&mut control) {
            eprintln!("the Congestion Manager has gone ({error}); going on alone");
            control = Control::alone();
            (flight.requested, flight.outstanding) = (0, VecDeque::new());
        }
        flight.wait(&control)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{{\"delivered\":{},\"lost\":{},\"seconds\":{seconds:.3},\"kbit_per_second\":{:.1}}}",
        flight.delivered,
        flight.lost,
        flight.delivered as f64 * 8.0 / 1e3 / seconds
    );
    Ok(())
}

impl Flight {
    /// Takes answers, and sends what is granted. Fails if the server has gone.
    fn turn(&mut self, control: &mut Control) -> io::Result<()> {
        let mut answer = [0; 8];
        while let Ok(8) = self.socket.recv(&mut answer) {
            self.answered(u64::from_be_bytes(answer), control)?;
        }
        let timeout = self.srtt.saturating_mul(3).max(LEAST_TIMEOUT);
        if self.outstanding.front().is_some_and(|(_, at)| at.elapsed() > timeout) {
            let lost = self.outstanding.len() as u64 * PACKET;
            self.lost += lost;
            self.outstanding.clear();
            let mode = LossMode::NoFeedback;
            control.feedback(Feedback { lost, mode, ..Feedback::default() })?;
        }
        if self.requested < REQUESTS {
            control.request(REQUESTS - self.requested)?;
            self.requested = REQUESTS;
        }
        while control.poll_grant()? {
            self.requested = self.requested.saturating_sub(1);
            let mut datagram = [0; PAYLOAD];
            datagram[..8].copy_from_slice(&self.next.to_be_bytes());
            let sent = self.socket.send(&datagram).is_ok();
            control.sent(if sent { PACKET } else { 0 })?;
            if sent {
                self.outstanding.push_back((self.next, Instant::now()));
                self.next += 1;
            }
        }
        Ok(())
    }

    fn answered(&mut self, number: u64, control: &mut Control) -> io::Result<()> {
        let Some(place) = self.outstanding.iter().position(|(other, _)| *other == number) else {
            return Ok(());
        };
        let rtt = self.outstanding.remove(place).map(|(_, at)| at.elapsed()).unwrap_or_default();
        self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
        self.delivered += PACKET;
        let before = self.outstanding.len();
        self.outstanding.retain(|(other, _)| other + LATER > number);
        let lost = (before - self.outstanding.len()) as u64 * PACKET;
        self.lost += lost;
        let nanos = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX);
        control.feedback(Feedback {
            received: PACKET,
            lost,
            mode: if lost > 0 { LossMode::Loss } else { LossMode::NoCongestion },
            rtt: Some(transom_tcp::time::Duration::from_nanos(nanos)),
        })
    }

    /// Until there may be something to do.
    fn wait(&self, control: &Control) -> io::Result<()> {
        let mut wanted = vec![PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        if let Control::Server(client) = control {
            wanted.push(PollFd::from_borrowed_fd(client.as_fd(), PollFlags::IN));
        }
        let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(PAUSE.subsec_nanos()) };
        match poll(&mut wanted, Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
