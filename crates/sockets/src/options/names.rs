//! The numbers of levels and options, as on Linux.

/// Level: the socket.
pub const SOL_SOCKET: i32 = 1;
/// Level: IPv4.
pub const IPPROTO_IP: i32 = 0;
/// Level: IPv6.
pub const IPPROTO_IPV6: i32 = 41;

/// Bind where connections of the past, or other sockets that have this too, are bound.
pub const SO_REUSEADDR: i32 = 2;
/// Get: always `SOCK_STREAM`.
pub const SO_TYPE: i32 = 3;
/// Get: the error that ended the connection, once; 0 if there is none.
pub const SO_ERROR: i32 = 4;
/// The send buffer in bytes; shown doubled.
pub const SO_SNDBUF: i32 = 7;
/// The receive buffer in bytes; shown doubled.
pub const SO_RCVBUF: i32 = 8;
/// Send keep-alive probes.
pub const SO_KEEPALIVE: i32 = 9;
/// The urgent byte is part of the stream.
pub const SO_OOBINLINE: i32 = 10;
/// The treatment of unsent data by a close: `struct linger { int l_onoff; int l_linger; }`, seconds.
pub const SO_LINGER: i32 = 13;
/// How long receiving, and `accept`, may wait: a 16-byte `struct timeval`; zero: for ever.
pub const SO_RCVTIMEO: i32 = 20;
/// How long sending, and `connect`, may wait: a 16-byte `struct timeval`; zero: for ever.
pub const SO_SNDTIMEO: i32 = 21;
/// Bytes below which a reader is not told of data; shown as half of the receive buffer at most.
pub const SO_RCVLOWAT: i32 = 18;
/// Get: always 1.
pub const SO_SNDLOWAT: i32 = 19;
/// Get: whether the socket listens.
pub const SO_ACCEPTCONN: i32 = 30;
/// Get: always `IPPROTO_TCP`.
pub const SO_PROTOCOL: i32 = 38;
/// Get: the family.
pub const SO_DOMAIN: i32 = 39;

/// Send small segments at once (Nagle's algorithm off).
pub const TCP_NODELAY: i32 = 1;
/// The largest segment, 88 to 32,767 bytes; set before connecting or listening. 0 takes it back.
pub const TCP_MAXSEG: i32 = 2;
/// Send full segments alone; what does not fill one waits for more, for 200 ms at most.
pub const TCP_CORK: i32 = 3;
/// Seconds of silence before the first keep-alive probe, 1 to 32,767.
pub const TCP_KEEPIDLE: i32 = 4;
/// Seconds between keep-alive probes, 1 to 32,767.
pub const TCP_KEEPINTVL: i32 = 5;
/// Unanswered keep-alive probes until the connection is given up, 1 to 127.
pub const TCP_KEEPCNT: i32 = 6;
/// Retransmissions of the SYN until the attempt is given up, 1 to 127.
pub const TCP_SYNCNT: i32 = 7;
/// Seconds that a closed connection waits for the peer's FIN, 120 at most; 0: the host's `fin_wait_2`; negative: not at all.
pub const TCP_LINGER2: i32 = 8;
/// Get: `struct ts_tcp_info`.
pub const TCP_INFO: i32 = 11;
/// Acknowledge the next arrivals at once, and what waits to be acknowledged; 0: wait for data to go with. It does not last: the
/// acknowledgement policy goes on from there. An even number acknowledges what waits alone.
pub const TCP_QUICKACK: i32 = 12;
/// The congestion controller's name, at most 15 bytes and a zero; one that there is not is `ENOENT`. A live connection exchanges it.
pub const TCP_CONGESTION: i32 = 13;
/// Milliseconds that data may stay unacknowledged until the connection is given up; 0: by the number of retransmissions.
pub const TCP_USER_TIMEOUT: i32 = 18;

/// A listener: so many connections may have begun with data in a SYN (RFC 7413) and wait for the end of their handshake, 4096 at most; 0: none
/// may. The SYN of a connection that is gone may come again, with its data.
pub const TCP_FASTOPEN: i32 = 23;
/// `connect` returns at once where the server has given a cookie, and the SYN goes with the first data; set before connecting.
pub const TCP_FASTOPEN_CONNECT: i32 = 30;

/// Unsent bytes from which on nothing more is taken; there is room again below half of it. 0: the send buffer decides.
pub const TCP_NOTSENT_LOWAT: i32 = 25;

/// The type of service; its lower two bits are not the application's.
pub const IP_TOS: i32 = 1;
/// The time to live, 1 to 255; -1 for the default.
pub const IP_TTL: i32 = 2;
/// A call to receive or send tells of ICMP errors as they come, once each, and the connection goes on.
pub const IP_RECVERR: i32 = 11;
/// The same for IPv6.
pub const IPV6_RECVERR: i32 = 25;
/// Whether IPv4 packets may be fragmented and reports of their size count: `IP_PMTUDISC_DONT` and the others.
pub const IP_MTU_DISCOVER: i32 = 10;
/// Get: the path MTU of a connection.
pub const IP_MTU: i32 = 14;
/// `IP_MTU_DISCOVER`: packets may be fragmented, reports do not count.
pub const IP_PMTUDISC_DONT: i32 = 0;
/// `IP_MTU_DISCOVER`: not to be fragmented, reports count. The default.
pub const IP_PMTUDISC_WANT: i32 = 1;
/// `IP_MTU_DISCOVER`: the same for TCP.
pub const IP_PMTUDISC_DO: i32 = 2;
/// `IP_MTU_DISCOVER`: may be fragmented, reports count.
pub const IP_PMTUDISC_PROBE: i32 = 3;
/// `IP_MTU_DISCOVER`: may be fragmented, and the interface's MTU is used whatever is reported.
pub const IP_PMTUDISC_INTERFACE: i32 = 4;
/// `IP_MTU_DISCOVER`: the same for TCP.
pub const IP_PMTUDISC_OMIT: i32 = 5;
/// The hop limit, 1 to 255; -1 for the default.
pub const IPV6_UNICAST_HOPS: i32 = 16;
/// The same as `IP_MTU_DISCOVER` for IPv6, whose packets are never fragmented: with `DONT` reports count.
pub const IPV6_MTU_DISCOVER: i32 = 23;
/// Get: the path MTU of a connection.
pub const IPV6_MTU: i32 = 24;
/// The IPv6 socket is for IPv6 alone, and not for IPv4 too; set before binding.
pub const IPV6_V6ONLY: i32 = 26;
/// The traffic class; its lower two bits are not the application's.
pub const IPV6_TCLASS: i32 = 67;
