//! The senders: the kernel with one congestion control or another, and Transom.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use transom_device::tcp_info;
use transom_tcp::ConnectionState;

use crate::bed::Bed;

/// No transfer waits for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// The kernel's, with this congestion control.
    Kernel(&'static str),
    /// Ours, as it is by default.
    Transom,
}

/// The senders of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Senders {
    Cubic,
    Reno,
    Bbr,
    Transom,
    /// All of these, dealt out in turn.
    Mixed,
    /// Cubic to receivers like those of the paper.
    Small,
}

impl Senders {
    pub(crate) const ALL: [Senders; 6] = [
        Senders::Cubic,
        Senders::Reno,
        Senders::Bbr,
        Senders::Transom,
        Senders::Mixed,
        Senders::Small,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Senders::Cubic => "cubic",
            Senders::Reno => "reno",
            Senders::Bbr => "bbr",
            Senders::Transom => "transom",
            Senders::Mixed => "mixed",
            Senders::Small => "cubic-32k",
        }
    }

    /// The receive buffer of their receivers, if it is set: Linux 2.0 had windows of 32 KiB, and did not scale them.
    pub(crate) const fn window(self) -> Option<usize> {
        match self {
            Senders::Small => Some(32 * 1024),
            _ => None,
        }
    }

    /// Whether Transom is one of them.
    pub(crate) const fn with_transom(self) -> bool {
        matches!(self, Senders::Transom | Senders::Mixed)
    }

    fn of(self, flow: usize) -> Sender {
        let kinds: &[Sender] = match self {
            Senders::Cubic | Senders::Small => &[Sender::Kernel("cubic")],
            Senders::Reno => &[Sender::Kernel("reno")],
            Senders::Bbr => &[Sender::Kernel("bbr")],
            Senders::Transom => &[Sender::Transom],
            Senders::Mixed => &[
                Sender::Kernel("cubic"),
                Sender::Kernel("reno"),
                Sender::Kernel("bbr"),
                Sender::Transom,
            ],
        };
        kinds[flow % kinds.len()]
    }

    /// Opens a flow's connection.
    pub(crate) fn connect(self, bed: &Bed, flow: usize, to: SocketAddr) -> io::Result<Stream> {
        match (self.of(flow), &bed.transom) {
            (Sender::Kernel(congestion), _) => {
                let open = || TcpStream::connect_timeout(&to, PATIENCE);
                let stream = bed.net.sender.run(open)??;
                rustix::net::sockopt::set_tcp_congestion(&stream, congestion)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Stream::Kernel(stream))
            }
            (Sender::Transom, Some(stack)) => {
                let stream = transom_net::TcpStream::connect_timeout(stack, &to, PATIENCE)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Stream::Transom(stream))
            }
            (Sender::Transom, None) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// A connection of either stack.
pub(crate) enum Stream {
    Kernel(TcpStream),
    Transom(transom_net::TcpStream),
}

/// The state of a connection of the kernel's.
fn kernel(stream: &TcpStream) -> io::Result<ConnectionState> {
    let told = ConnectionState::of_tcp_info(tcp_info(stream)?.as_bytes());
    told.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

impl Stream {
    /// The smoothed round-trip time: after the handshake, that of an empty path.
    pub(crate) fn round_trip(&self) -> io::Result<Duration> {
        let nanos = match self {
            Stream::Kernel(stream) => kernel(stream)?.srtt.map_or(0, |srtt| srtt.as_nanos()),
            Stream::Transom(stream) => stream.info()?.srtt.map_or(0, |srtt| srtt.as_nanos()),
        };
        Ok(Duration::from_nanos(nanos))
    }

    /// Sends it all, and waits until the other side has everything. How many segments were sent again.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let ended = |length| match length {
            0 => Ok(()),
            _ => Err(io::Error::other("the receiver has sent something")),
        };
        match self {
            Stream::Kernel(stream) => {
                stream.write_all(bytes)?;
                stream.shutdown(Shutdown::Write)?;
                ended(stream.read(&mut [0])?)?;
                Ok(kernel(stream)?.counters.retransmitted_segments)
            }
            Stream::Transom(stream) => {
                stream.write_all(bytes)?;
                stream.shutdown(Shutdown::Write)?;
                ended(stream.read(&mut [0])?)?;
                Ok(stream.info()?.counters.retransmitted_segments)
            }
        }
    }
}
