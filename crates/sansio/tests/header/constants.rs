//! The constants of Linux in the header: their names, and what they mean here. The numbers are those of `libc`, where it has them.

/// A constant's name, number and lines of description.
pub(crate) type Constant = (&'static str, i64, &'static [&'static str]);

macro_rules! constants {
    ($($(#[doc = $line:literal])* $name:ident $(= $number:literal)?)*) => {
        &[$((stringify!($name), constants!(@ $name $($number)?), &[$($line),*])),*]
    };
    (@ $name:ident) => { libc::$name as i64 };
    (@ $name:ident $number:literal) => { $number };
}

pub(crate) const CONSTANTS: &[Constant] = constants! {
    /// No such algorithm.
    ENOENT
    /// The call was ended while it waited: repeat it to go on waiting.
    EINTR
    /// The library has failed; its message says why.
    EIO
    /// A configuration of a later version whose additions are not known here.
    E2BIG
    /// No such host, or no such descriptor.
    EBADF
    /// Nothing to read, no room to write, or no connection to accept at present.
    EAGAIN
    /// A null pointer where memory is needed.
    EFAULT
    /// An argument makes no sense.
    EINVAL
    /// A router reports that a policy forbids it.
    EACCES
    /// Too many connections.
    ENFILE
    /// Too many descriptors.
    EMFILE
    /// No such request.
    ENOTTY
    /// The connection is closed for writing.
    EPIPE
    /// A router reports that this host is isolated.
    ENONET
    /// A router did not understand a header.
    EPROTO
    /// The packet is too long.
    EMSGSIZE
    /// No such option.
    ENOPROTOOPT
    /// No such protocol.
    EPROTONOSUPPORT
    /// No such type of socket.
    ESOCKTNOSUPPORT
    /// The socket, or the library, does not support it.
    EOPNOTSUPP
    /// No such family of addresses.
    EAFNOSUPPORT
    /// The address is in use.
    EADDRINUSE
    /// The address is not the host's, or no port is free.
    EADDRNOTAVAIL
    /// No route leads to the address.
    ENETUNREACH
    /// The connection was aborted on this side.
    ECONNABORTED
    /// The peer reset the connection.
    ECONNRESET
    /// The socket is connected, or listens.
    EISCONN
    /// The socket is not connected.
    ENOTCONN
    /// The peer did not answer in time.
    ETIMEDOUT
    /// The peer refused the connection.
    ECONNREFUSED
    /// A router reports that the host does not exist.
    EHOSTDOWN
    /// The host cannot be reached.
    EHOSTUNREACH
    /// The socket is connecting already.
    EALREADY
    /// The connection is being opened.
    EINPROGRESS
    /// IPv4.
    AF_INET
    /// IPv6.
    AF_INET6
    /// A byte stream: the one type of socket there is.
    SOCK_STREAM
    /// With the type: non-blocking from the start.
    SOCK_NONBLOCK
    /// With the type: accepted, and without a meaning here.
    SOCK_CLOEXEC
    /// TCP, by its number; so is 0.
    IPPROTO_TCP
    /// `fcntl`: descriptor flags; there are none.
    F_GETFD
    /// `fcntl`: set descriptor flags; ignored.
    F_SETFD
    /// `fcntl`: the status flags.
    F_GETFL
    /// `fcntl`: set the status flags; only `O_NONBLOCK` changes.
    F_SETFL
    /// Status flag: open for reading and writing, as every socket is.
    O_RDWR
    /// Status flag: calls do not wait.
    O_NONBLOCK
    /// `send`: the last byte is urgent. `recv`: the urgent byte.
    MSG_OOB
    /// `recv`: leave the data where they are.
    MSG_PEEK
    /// `recv`: drop the data instead of copying them; what is returned is how many there were.
    MSG_TRUNC
    /// Do not wait, whatever the socket is.
    MSG_DONTWAIT
    /// `recv`: wait for the whole length.
    MSG_WAITALL
    /// `send`: a record ends here; no segment has bytes of two records.
    MSG_EOR
    /// `send`: more follows; what does not fill a segment waits for it, for 200 ms at most.
    MSG_MORE
    /// `sendto`: connect, with the data in the SYN if the server has given a cookie (TCP Fast Open).
    MSG_FASTOPEN
    /// `send`: no signal; there never is one here.
    MSG_NOSIGNAL
    /// `shutdown`: no more reading.
    SHUT_RD
    /// `shutdown`: no more writing.
    SHUT_WR
    /// `shutdown`: neither.
    SHUT_RDWR
    /// `ioctl`: bytes that can be read, up to the urgent byte (`SIOCINQ`).
    FIONREAD
    /// `ioctl`: bytes written and not yet acknowledged (`SIOCOUTQ`).
    TIOCOUTQ
    /// `ioctl`: bytes written and not yet sent.
    SIOCOUTQNSD
    /// There is something to read, or the end, or a connection to accept.
    POLLIN
    /// There is an urgent byte to read.
    POLLPRI
    /// There is room to write.
    POLLOUT
    /// There is an error to report.
    POLLERR
    /// Both directions are closed, or never were open.
    POLLHUP
    /// No such descriptor.
    POLLNVAL
    /// As `POLLIN`.
    POLLRDNORM
    /// As `POLLOUT`.
    POLLWRNORM
    /// The peer has closed its side.
    POLLRDHUP
    /// Level: the socket.
    SOL_SOCKET
    /// Level: IPv4.
    IPPROTO_IP
    /// Level: IPv6.
    IPPROTO_IPV6
    /// `IP_MTU_DISCOVER`: packets may be fragmented, reports do not count.
    IP_PMTUDISC_DONT
    /// `IP_MTU_DISCOVER`: not to be fragmented, reports count. The default.
    IP_PMTUDISC_WANT
    /// `IP_MTU_DISCOVER`: the same for TCP.
    IP_PMTUDISC_DO
    /// `IP_MTU_DISCOVER`: may be fragmented, reports count.
    IP_PMTUDISC_PROBE
    /// `IP_MTU_DISCOVER`: may be fragmented, and the interface's MTU is used whatever is reported.
    IP_PMTUDISC_INTERFACE
    /// `IP_MTU_DISCOVER`: the same for TCP.
    IP_PMTUDISC_OMIT
    /// The length of the longest address, a `sockaddr_in6`.
    SOCKADDR_MAX = 28
    /// `ioctl`: whether the next byte is the urgent one.
    SIOCATMARK = 0x8905
    /// `tcpi_options`: timestamps are in use.
    TCPI_OPT_TIMESTAMPS = 1
    /// `tcpi_options`: selective acknowledgement is in use.
    TCPI_OPT_SACK = 2
    /// `tcpi_options`: windows are scaled.
    TCPI_OPT_WSCALE = 4
    /// `tcpi_options`: data in the SYN was acknowledged.
    TCPI_OPT_SYN_DATA = 32
    /// `tcpi_state`: data flows.
    TCP_ESTABLISHED = 1
    /// `tcpi_state`: our SYN is out.
    TCP_SYN_SENT = 2
    /// `tcpi_state`: both SYNs are out.
    TCP_SYN_RECV = 3
    /// `tcpi_state`: we closed, and it is not acknowledged.
    TCP_FIN_WAIT1 = 4
    /// `tcpi_state`: we closed, the peer has not.
    TCP_FIN_WAIT2 = 5
    /// `tcpi_state`: both closed; old segments may still arrive. Sockets see `TCP_CLOSE` instead, as on Linux.
    TCP_TIME_WAIT = 6
    /// `tcpi_state`: no connection.
    TCP_CLOSE = 7
    /// `tcpi_state`: the peer closed, we have not.
    TCP_CLOSE_WAIT = 8
    /// `tcpi_state`: the peer closed, then we.
    TCP_LAST_ACK = 9
    /// `tcpi_state`: a listener.
    TCP_LISTEN = 10
    /// `tcpi_state`: both closed at the same time.
    TCP_CLOSING = 11
};
