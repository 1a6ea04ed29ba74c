//! Looking into the kernel's own TCP connections: `TCP_INFO`.
//!
//! The structure has grown with the kernel, always at its end. It is read field by field from its bytes, so that what an older kernel does
//! not tell is `None`, and the same code reads what netlink brings of other programs' connections ([`crate::diag`]).

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use transom_base::time::Duration;

/// As many bytes as any kernel so far tells, and more.
const LONGEST: usize = 512;

/// The kernel's report on one of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTcpInfo {
    /// The TCP state.
    pub state: KernelTcpState,
    /// Maximum segment size for sending, bytes.
    pub mss: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes; `None` before the first reduction.
    pub ssthresh: Option<u64>,
    /// Bytes sent and not acknowledged.
    pub outstanding: u64,
    /// Of these, bytes that are believed to be in the network (RFC 6675's pipe): what was selectively acknowledged or is held for lost is
    /// not, what was sent again is.
    pub in_flight: u64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// The least round-trip time of late; `None` before the first sample, or if the kernel does not tell (before 4.6).
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout with its back-off.
    pub rto: Duration,
    /// Segments retransmitted in all.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts in all, if the kernel tells (6.7 and later).
    pub timeouts: Option<u64>,
    /// Payload bytes that the peer has acknowledged, if the kernel tells (4.1).
    pub bytes_acked: Option<u64>,
    /// Payload bytes that have arrived in order, if the kernel tells (4.1).
    pub bytes_received: Option<u64>,
    /// Payload bytes sent, retransmissions included, if the kernel tells (4.19).
    pub bytes_sent: Option<u64>,
    /// Segments with payload that were sent, retransmissions included, if the kernel tells (4.6).
    pub data_segments_sent: Option<u64>,
    /// All segments sent, if the kernel tells (4.2).
    pub segments_sent: Option<u64>,
    /// Bytes in flight that are believed lost.
    pub lost: u64,
    /// Bytes that were written and not sent yet, if the kernel tells (4.6).
    pub not_sent: Option<u64>,
    /// The rate at which data was delivered to the peer lately, bytes per second, if the kernel tells (4.9).
    pub delivery_rate: Option<u64>,
    /// Time during which data was waiting to be acknowledged, if the kernel tells (4.9).
    pub busy: Option<Duration>,
    /// Time spent limited by the peer's receive window, if the kernel tells (4.9).
    pub limited_peer_window: Option<Duration>,
    /// Time spent limited by the send buffer, if the kernel tells (4.9).
    pub limited_send_buffer: Option<Duration>,
    /// The peer's receive window, bytes, if the kernel tells (5.4).
    pub send_window: Option<u64>,
    /// The receive window that is offered, bytes, if the kernel tells (6.2).
    pub receive_window: Option<u64>,
    /// The counters of accurate ECN, if the kernel reports them (6.18); zeros where it is not in use.
    pub accurate_ecn: Option<KernelAccurateEcn>,
}

/// The counts of accurate ECN (RFC 9768) of one of the kernel's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelAccurateEcn {
    /// Segments that arrived with congestion experienced.
    pub received_ce: u32,
    /// Payload bytes that arrived with ECT(0), with ECT(1) and with congestion experienced.
    pub received_bytes: [u32; 3],
    /// Payload bytes that the peer says have arrived so.
    pub delivered_bytes: [u32; 3],
}

/// The states of the kernel's TCP (`TCP_ESTABLISHED` and so on of linux/tcp_states.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTcpState(pub u8);

impl KernelTcpState {
    /// Data can be exchanged.
    pub const ESTABLISHED: KernelTcpState = KernelTcpState(1);
    /// A SYN was answered, and the handshake is not complete.
    pub const SYN_RECV: KernelTcpState = KernelTcpState(3);
    /// It is over, or has not begun; it may be bound to a port.
    pub const CLOSE: KernelTcpState = KernelTcpState(7);
    /// It is over; what is late is waited for.
    pub const TIME_WAIT: KernelTcpState = KernelTcpState(6);
    /// It waits for others to connect.
    pub const LISTEN: KernelTcpState = KernelTcpState(10);

    /// Its name: that of RFC 9293, in small letters; nothing for a state of a newer kernel.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "established",
            2 => "syn-sent",
            // TCP_NEW_SYN_RECV is the same of a request that is no socket yet.
            3 | 12 => "syn-received",
            4 => "fin-wait-1",
            5 => "fin-wait-2",
            6 => "time-wait",
            7 => "closed",
            8 => "close-wait",
            9 => "last-ack",
            10 => "listen",
            11 => "closing",
            _ => return None,
        })
    }
}

impl KernelTcpInfo {
    /// Reads a `struct tcp_info` of any length; `None` if it is shorter than the first version that was complete (Linux 2.6).
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let count = |at: usize| word(at).map(u64::from);
        let mss = count(16)?;
        let [unacked, sacked, lost, retransmitting] =
            [count(24)?, count(28)?, count(32)?, count(36)?];
        let gone = sacked.saturating_add(lost);
        // The kernel's "no threshold yet" is a number of segments that nobody has in flight.
        let ssthresh = count(76).filter(|&segments| segments < 0x7fff_ffff);
        let retransmitted_segments = count(100)?;
        let micros = |at: usize| word(at).map(|micros| Duration::from_micros(micros.into()));
        let long_micros = |at: usize| long(at).map(Duration::from_micros);
        Some(KernelTcpInfo {
            state: KernelTcpState(*bytes.first()?),
            mss,
            cwnd: count(80)? * mss,
            ssthresh: ssthresh.map(|segments| segments * mss),
            outstanding: unacked * mss,
            in_flight: (unacked + retransmitting).saturating_sub(gone) * mss,
            srtt: micros(68)?,
            // All ones until there is a sample.
            min_rtt: word(148)
                .filter(|micros| *micros != u32::MAX)
                .map(|micros| Duration::from_micros(micros.into())),
            rto: micros(8)?,
            retransmitted_segments,
            timeouts: bytes
                .get(240..)
                .and_then(|rest| rest.first_chunk())
                .map(|count| u16::from_ne_bytes(*count).into()),
            bytes_acked: long(120),
            bytes_received: long(128),
            bytes_sent: long(200),
            data_segments_sent: count(156),
            segments_sent: count(136),
            lost: lost * mss,
            not_sent: count(144),
            delivery_rate: long(160),
            busy: long_micros(168),
            limited_peer_window: long_micros(176),
            limited_send_buffer: long_micros(184),
            send_window: count(228),
            receive_window: count(232),
            accurate_ecn: word(272).and_then(|received_ce_bytes| {
                Some(KernelAccurateEcn {
                    received_ce: word(248)?,
                    received_bytes: [word(268)?, word(264)?, received_ce_bytes],
                    delivered_bytes: [word(256)?, word(252)?, word(260)?],
                })
            }),
        })
    }
}

/// Asks the kernel about `socket`, a TCP socket of its own.
///
/// # Errors
/// The kernel's, for one if `socket` is not a TCP socket.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<KernelTcpInfo> {
    let mut bytes = [0u8; LONGEST];
    let mut len = LONGEST as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most `len` bytes into
    // `bytes`, which has as many, and the new length into `len`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let told = bytes.get(..len as usize).and_then(KernelTcpInfo::parse);
    told.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_loopback_connection_has_a_window_and_a_datagram_socket_has_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = tcp_info(&stream).unwrap();
        assert!(info.mss > 500 && info.cwnd >= info.mss, "{info:?}");
        assert_eq!((info.ssthresh, info.retransmitted_segments), (None, 0));
        assert_eq!(info.state, KernelTcpState::ESTABLISHED);
        assert!(tcp_info(&UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
        assert_eq!(tcp_info(&listener).unwrap().state, KernelTcpState::LISTEN);
    }

    #[test]
    fn bytes_are_counted_at_both_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 5000]).unwrap();
        receiver.read_exact(&mut [0; 5000]).unwrap();
        let received = tcp_info(&receiver).unwrap();
        assert_eq!(received.bytes_received, Some(5000));
        let sent = tcp_info(&sender).unwrap();
        assert!(sent.bytes_sent.is_none_or(|bytes| bytes >= 5000), "{sent:?}");
        assert!(sent.data_segments_sent.is_none_or(|count| count >= 1), "{sent:?}");
        assert_eq!(sent.timeouts.unwrap_or(0), 0);
    }

    /// The structure of linux/tcp.h, by hand.
    #[test]
    fn fields_are_where_the_kernel_has_them() {
        let mut bytes = [0u8; 248];
        let mut put =
            |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(8, 204_000); // tcpi_rto
        put(16, 1448); // tcpi_snd_mss
        put(24, 10); // tcpi_unacked
        put(28, 3); // tcpi_sacked
        put(32, 2); // tcpi_lost
        put(36, 1); // tcpi_retrans
        put(68, 40_000); // tcpi_rtt
        put(76, 0x7fff_ffff); // tcpi_snd_ssthresh
        put(80, 20); // tcpi_snd_cwnd
        put(100, 4); // tcpi_total_retrans
        put(144, 700); // tcpi_notsent_bytes
        put(148, 39_000); // tcpi_min_rtt
        put(228, 65_000); // tcpi_snd_wnd
        put(232, 32_000); // tcpi_rcv_wnd
        bytes[0] = 1;
        bytes[160..168].copy_from_slice(&250_000u64.to_ne_bytes()); // tcpi_delivery_rate
        bytes[168..176].copy_from_slice(&9_000_000u64.to_ne_bytes()); // tcpi_busy_time
        bytes[176..184].copy_from_slice(&2_000_000u64.to_ne_bytes()); // tcpi_rwnd_limited
        bytes[184..192].copy_from_slice(&1_000_000u64.to_ne_bytes()); // tcpi_sndbuf_limited
        bytes[200..208].copy_from_slice(&5_000_000_000u64.to_ne_bytes()); // tcpi_bytes_sent
        bytes[240..242].copy_from_slice(&3u16.to_ne_bytes()); // tcpi_total_rto
        let info = KernelTcpInfo::parse(&bytes).unwrap();
        assert_eq!(info.rto, Duration::from_millis(204));
        assert_eq!((info.cwnd, info.ssthresh), (20 * 1448, None));
        // RFC 6675: 10 - 3 - 2 + 1.
        assert_eq!((info.outstanding, info.in_flight), (10 * 1448, 6 * 1448));
        assert_eq!(info.min_rtt, Some(Duration::from_millis(39)));
        assert_eq!((info.bytes_sent, info.timeouts), (Some(5_000_000_000), Some(3)));
        assert_eq!((info.lost, info.not_sent), (2 * 1448, Some(700)));
        assert_eq!(info.delivery_rate, Some(250_000));
        assert_eq!(info.busy, Some(Duration::from_secs(9)));
        assert_eq!(info.limited_peer_window, Some(Duration::from_secs(2)));
        assert_eq!(info.limited_send_buffer, Some(Duration::from_secs(1)));
        assert_eq!((info.send_window, info.receive_window), (Some(65_000), Some(32_000)));
        assert_eq!(info.accurate_ecn, None);
        // tcpi_received_ce, then the bytes delivered and received: ECT(1), ECT(0), CE.
        let counts = (1..=7u32).flat_map(u32::to_ne_bytes);
        let newer: Vec<u8> = bytes.into_iter().chain(counts).collect();
        let accurate = KernelTcpInfo::parse(&newer).unwrap().accurate_ecn.unwrap();
        assert_eq!(accurate.received_ce, 1);
        assert_eq!((accurate.delivered_bytes, accurate.received_bytes), ([3, 2, 4], [6, 5, 7]));
        // An older kernel, and one that never was.
        let older = KernelTcpInfo::parse(&bytes[..104]).unwrap();
        assert_eq!(
            (older.retransmitted_segments, older.bytes_sent, older.min_rtt),
            (4, None, None)
        );
        assert_eq!(KernelTcpInfo::parse(&bytes[..50]), None);
        assert_eq!(KernelTcpInfo::parse(&[]), None);
    }
}
