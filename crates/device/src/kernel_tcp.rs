//! Looking into the kernel's own TCP connections: `TCP_INFO`, for comparison with ours.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use transom_tcp::time::Duration;

/// What the kernel tells of one of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTcpInfo {
    /// Maximum segment size for sending, bytes.
    pub mss: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes; `None` before the first reduction.
    pub ssthresh: Option<u64>,
    /// Bytes sent and not acknowledged.
    pub outstanding: u64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Segments retransmitted in all.
    pub retransmitted_segments: u64,
}

/// Asks the kernel about `socket`, a TCP socket of its own.
///
/// # Errors
/// The kernel's, for one if `socket` is not a TCP socket.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<KernelTcpInfo> {
    // SAFETY: all-zero bytes are a value of this structure, which consists of integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most `len` bytes into
    // `info`, which has as many, and the new length into `len`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let mss = u64::from(info.tcpi_snd_mss);
    // The kernel's "no threshold yet" is a number of segments that nobody has in flight.
    let ssthresh =
        Some(u64::from(info.tcpi_snd_ssthresh)).filter(|&segments| segments < 0x7fff_ffff);
    Ok(KernelTcpInfo {
        mss,
        cwnd: u64::from(info.tcpi_snd_cwnd) * mss,
        ssthresh: ssthresh.map(|segments| segments * mss),
        outstanding: u64::from(info.tcpi_unacked) * mss,
        srtt: Duration::from_micros(u64::from(info.tcpi_rtt)),
        retransmitted_segments: u64::from(info.tcpi_total_retrans),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_loopback_connection_has_a_window_and_a_datagram_socket_has_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = tcp_info(&stream).unwrap();
        assert!(info.mss > 500 && info.cwnd >= info.mss, "{info:?}");
        assert_eq!((info.ssthresh, info.retransmitted_segments), (None, 0));
        assert!(tcp_info(&UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }
}
