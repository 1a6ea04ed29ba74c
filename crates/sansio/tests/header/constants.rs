//! The constants of Linux in the header: their names, and what they mean here. The numbers are those of `libc`.

/// A constant's name, number and lines of description.
pub(crate) type Constant = (&'static str, i64, &'static [&'static str]);

macro_rules! constants {
    ($($(#[doc = $line:literal])* $name:ident)*) => {
        &[$((stringify!($name), libc::$name as i64, &[$($line),*])),*]
    };
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
    /// Bind where connections of the past, or other sockets that have this too, are bound.
    SO_REUSEADDR
    /// Get: always `SOCK_STREAM`.
    SO_TYPE
    /// Get: the error that ended the connection, once; 0 if there is none.
    SO_ERROR
    /// The send buffer in bytes; shown doubled.
    SO_SNDBUF
    /// The receive buffer in bytes; shown doubled.
    SO_RCVBUF
    /// Send keep-alive probes.
    SO_KEEPALIVE
    /// The urgent byte is part of the stream.
    SO_OOBINLINE
    /// The treatment of unsent data by a close: `struct linger { int l_onoff; int l_linger; }`, seconds.
    SO_LINGER
    /// How long receiving, and `accept`, may wait: a 16-byte `struct timeval`; zero: for ever.
    SO_RCVTIMEO
    /// How long sending, and `connect`, may wait: a 16-byte `struct timeval`; zero: for ever.
    SO_SNDTIMEO
    /// Bytes below which a reader is not told of data; shown as half of the receive buffer at most.
    SO_RCVLOWAT
    /// Get: always 1.
    SO_SNDLOWAT
    /// Get: whether the socket listens.
    SO_ACCEPTCONN
    /// Get: always `IPPROTO_TCP`.
    SO_PROTOCOL
    /// Get: the family.
    SO_DOMAIN
    /// Send small segments at once (Nagle's algorithm off).
    TCP_NODELAY
    /// The largest segment, 88 to 32,767 bytes; set before connecting or listening. 0 takes it back.
    TCP_MAXSEG
    /// Send full segments alone; what does not fill one waits for more, for 200 ms at most.
    TCP_CORK
    /// Seconds of silence before the first keep-alive probe, 1 to 32,767.
    TCP_KEEPIDLE
    /// Seconds between keep-alive probes, 1 to 32,767.
    TCP_KEEPINTVL
    /// Unanswered keep-alive probes until the connection is given up, 1 to 127.
    TCP_KEEPCNT
    /// Retransmissions of the SYN until the attempt is given up, 1 to 127.
    TCP_SYNCNT
    /// Seconds that a closed connection waits for the peer's FIN, 120 at most; 0: the host's `fin_wait_2`; negative: not at all.
    TCP_LINGER2
    /// Get: `struct ts_tcp_info`.
    TCP_INFO
    /// Acknowledge the next arrivals at once, and what waits to be acknowledged; 0: wait for data to go with. It does not last: the
    /// acknowledgement policy goes on from there. An even number acknowledges what waits alone.
    TCP_QUICKACK
    /// The congestion controller's name, at most 15 bytes and a zero; one that there is not is `ENOENT`. A live connection exchanges it.
    TCP_CONGESTION
    /// Milliseconds that data may stay unacknowledged until the connection is given up; 0: by the number of retransmissions.
    TCP_USER_TIMEOUT
    /// A listener: so many connections may have begun with data in a SYN (RFC 7413) and wait for the end of their handshake, 4096 at most; 0: none
    /// may. The SYN of a connection that is gone may come again, with its data.
    TCP_FASTOPEN
    /// `connect` returns at once where the server has given a cookie, and the SYN goes with the first data; set before connecting.
    TCP_FASTOPEN_CONNECT
    /// Unsent bytes from which on nothing more is taken; there is room again below half of it. 0: the send buffer decides.
    TCP_NOTSENT_LOWAT
    /// The type of service; its lower two bits are not the application's.
    IP_TOS
    /// The time to live, 1 to 255; -1 for the default.
    IP_TTL
    /// A call to receive or send tells of ICMP errors as they come, once each, and the connection goes on.
    IP_RECVERR
    /// The same for IPv6.
    IPV6_RECVERR
    /// Whether IPv4 packets may be fragmented and reports of their size count: `IP_PMTUDISC_DONT` and the others.
    IP_MTU_DISCOVER
    /// Get: the path MTU of a connection.
    IP_MTU
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
    /// The hop limit, 1 to 255; -1 for the default.
    IPV6_UNICAST_HOPS
    /// The same as `IP_MTU_DISCOVER` for IPv6, whose packets are never fragmented: with `DONT` reports count.
    IPV6_MTU_DISCOVER
    /// Get: the path MTU of a connection.
    IPV6_MTU
    /// The IPv6 socket is for IPv6 alone, and not for IPv4 too; set before binding.
    IPV6_V6ONLY
    /// The traffic class; its lower two bits are not the application's.
    IPV6_TCLASS
};
