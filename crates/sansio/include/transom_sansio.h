/*
 * Transom, for test tools: a TCP host in virtual time, with Linux' socket calls.
 *
 * Made from the sources by tests/header.rs; do not edit. README.md shows how it is used.
 *
 * A host is a number; nothing it does depends on real time or chance. Calls return zero, a count or a
 * descriptor if all went well, and a negated TS_E* otherwise: the numbers are those of Linux' <errno.h>, as
 * the other constants are those of its headers. Times are in nanoseconds on the host's own clock.
 */

#ifndef TRANSOM_SANSIO_H
#define TRANSOM_SANSIO_H

#include <stddef.h>
#include <stdint.h>

// No such algorithm.
#define TS_ENOENT 2

// The call was ended while it waited: repeat it to go on waiting.
#define TS_EINTR 4

// The library has failed; its message says why.
#define TS_EIO 5

// A configuration of a later version whose additions are not known here.
#define TS_E2BIG 7

// No such host, or no such descriptor.
#define TS_EBADF 9

// Nothing to read, no room to write, or no connection to accept at present.
#define TS_EAGAIN 11

// A null pointer where memory is needed.
#define TS_EFAULT 14

// An argument makes no sense.
#define TS_EINVAL 22

// A router reports that a policy forbids it.
#define TS_EACCES 13

// Too many connections.
#define TS_ENFILE 23

// Too many descriptors.
#define TS_EMFILE 24

// No such request.
#define TS_ENOTTY 25

// The connection is closed for writing.
#define TS_EPIPE 32

// A router reports that this host is isolated.
#define TS_ENONET 64

// A router did not understand a header.
#define TS_EPROTO 71

// The packet is too long.
#define TS_EMSGSIZE 90

// No such option.
#define TS_ENOPROTOOPT 92

// No such protocol.
#define TS_EPROTONOSUPPORT 93

// No such type of socket.
#define TS_ESOCKTNOSUPPORT 94

// The socket, or the library, does not support it.
#define TS_EOPNOTSUPP 95

// No such family of addresses.
#define TS_EAFNOSUPPORT 97

// The address is in use.
#define TS_EADDRINUSE 98

// The address is not the host's, or no port is free.
#define TS_EADDRNOTAVAIL 99

// No route leads to the address.
#define TS_ENETUNREACH 101

// The connection was aborted on this side.
#define TS_ECONNABORTED 103

// The peer reset the connection.
#define TS_ECONNRESET 104

// The socket is connected, or listens.
#define TS_EISCONN 106

// The socket is not connected.
#define TS_ENOTCONN 107

// The peer did not answer in time.
#define TS_ETIMEDOUT 110

// The peer refused the connection.
#define TS_ECONNREFUSED 111

// A router reports that the host does not exist.
#define TS_EHOSTDOWN 112

// The host cannot be reached.
#define TS_EHOSTUNREACH 113

// The socket is connecting already.
#define TS_EALREADY 114

// The connection is being opened.
#define TS_EINPROGRESS 115

// IPv4.
#define TS_AF_INET 2

// IPv6.
#define TS_AF_INET6 10

// A byte stream: the one type of socket there is.
#define TS_SOCK_STREAM 1

// With the type: non-blocking from the start.
#define TS_SOCK_NONBLOCK 2048

// With the type: accepted, and without a meaning here.
#define TS_SOCK_CLOEXEC 524288

// TCP, by its number; so is 0.
#define TS_IPPROTO_TCP 6

// `fcntl`: descriptor flags; there are none.
#define TS_F_GETFD 1

// `fcntl`: set descriptor flags; ignored.
#define TS_F_SETFD 2

// `fcntl`: the status flags.
#define TS_F_GETFL 3

// `fcntl`: set the status flags; only `O_NONBLOCK` changes.
#define TS_F_SETFL 4

// Status flag: open for reading and writing, as every socket is.
#define TS_O_RDWR 2

// Status flag: calls do not wait.
#define TS_O_NONBLOCK 2048

// `send`: the last byte is urgent. `recv`: the urgent byte.
#define TS_MSG_OOB 1

// `recv`: leave the data where they are.
#define TS_MSG_PEEK 2

// `recv`: drop the data instead of copying them; what is returned is how many there were.
#define TS_MSG_TRUNC 32

// Do not wait, whatever the socket is.
#define TS_MSG_DONTWAIT 64

// `recv`: wait for the whole length.
#define TS_MSG_WAITALL 256

// `send`: a record ends here; no segment has bytes of two records.
#define TS_MSG_EOR 128

// `send`: more follows; what does not fill a segment waits for it, for 200 ms at most.
#define TS_MSG_MORE 32768

// `sendto`: connect, with the data in the SYN if the server has given a cookie (TCP Fast Open).
#define TS_MSG_FASTOPEN 536870912

// `send`: no signal; there never is one here.
#define TS_MSG_NOSIGNAL 16384

// `shutdown`: no more reading.
#define TS_SHUT_RD 0

// `shutdown`: no more writing.
#define TS_SHUT_WR 1

// `shutdown`: neither.
#define TS_SHUT_RDWR 2

// `ioctl`: bytes that can be read, up to the urgent byte (`SIOCINQ`).
#define TS_FIONREAD 21531

// `ioctl`: bytes written and not yet acknowledged (`SIOCOUTQ`).
#define TS_TIOCOUTQ 21521

// `ioctl`: bytes written and not yet sent.
#define TS_SIOCOUTQNSD 35147

// There is something to read, or the end, or a connection to accept.
#define TS_POLLIN 1

// There is an urgent byte to read.
#define TS_POLLPRI 2

// There is room to write.
#define TS_POLLOUT 4

// There is an error to report.
#define TS_POLLERR 8

// Both directions are closed, or never were open.
#define TS_POLLHUP 16

// No such descriptor.
#define TS_POLLNVAL 32

// As `POLLIN`.
#define TS_POLLRDNORM 64

// As `POLLOUT`.
#define TS_POLLWRNORM 256

// The peer has closed its side.
#define TS_POLLRDHUP 8192

// Level: the socket.
#define TS_SOL_SOCKET 1

// Level: IPv4.
#define TS_IPPROTO_IP 0

// Level: IPv6.
#define TS_IPPROTO_IPV6 41

// `IP_MTU_DISCOVER`: packets may be fragmented, reports do not count.
#define TS_IP_PMTUDISC_DONT 0

// `IP_MTU_DISCOVER`: not to be fragmented, reports count. The default.
#define TS_IP_PMTUDISC_WANT 1

// `IP_MTU_DISCOVER`: the same for TCP.
#define TS_IP_PMTUDISC_DO 2

// `IP_MTU_DISCOVER`: may be fragmented, reports count.
#define TS_IP_PMTUDISC_PROBE 3

// `IP_MTU_DISCOVER`: may be fragmented, and the interface's MTU is used whatever is reported.
#define TS_IP_PMTUDISC_INTERFACE 4

// `IP_MTU_DISCOVER`: the same for TCP.
#define TS_IP_PMTUDISC_OMIT 5

// The length of the longest address, a `sockaddr_in6`.
#define TS_SOCKADDR_MAX 28

// `ioctl`: whether the next byte is the urgent one.
#define TS_SIOCATMARK 35077

// `tcpi_options`: timestamps are in use.
#define TS_TCPI_OPT_TIMESTAMPS 1

// `tcpi_options`: selective acknowledgement is in use.
#define TS_TCPI_OPT_SACK 2

// `tcpi_options`: windows are scaled.
#define TS_TCPI_OPT_WSCALE 4

// `tcpi_options`: data in the SYN was acknowledged.
#define TS_TCPI_OPT_SYN_DATA 32

// `tcpi_state`: data flows.
#define TS_TCP_ESTABLISHED 1

// `tcpi_state`: our SYN is out.
#define TS_TCP_SYN_SENT 2

// `tcpi_state`: both SYNs are out.
#define TS_TCP_SYN_RECV 3

// `tcpi_state`: we closed, and it is not acknowledged.
#define TS_TCP_FIN_WAIT1 4

// `tcpi_state`: we closed, the peer has not.
#define TS_TCP_FIN_WAIT2 5

// `tcpi_state`: both closed; old segments may still arrive. Sockets see `TCP_CLOSE` instead, as on Linux.
#define TS_TCP_TIME_WAIT 6

// `tcpi_state`: no connection.
#define TS_TCP_CLOSE 7

// `tcpi_state`: the peer closed, we have not.
#define TS_TCP_CLOSE_WAIT 8

// `tcpi_state`: the peer closed, then we.
#define TS_TCP_LAST_ACK 9

// `tcpi_state`: a listener.
#define TS_TCP_LISTEN 10

// `tcpi_state`: both closed at the same time.
#define TS_TCP_CLOSING 11

// Bind where connections of the past, or other sockets that have this too, are bound.
#define TS_SO_REUSEADDR 2

// Get: always `SOCK_STREAM`.
#define TS_SO_TYPE 3

// Get: the error that ended the connection, once; 0 if there is none.
#define TS_SO_ERROR 4

// The send buffer in bytes; shown doubled.
#define TS_SO_SNDBUF 7

// The receive buffer in bytes; shown doubled.
#define TS_SO_RCVBUF 8

// Send keep-alive probes.
#define TS_SO_KEEPALIVE 9

// The urgent byte is part of the stream.
#define TS_SO_OOBINLINE 10

// The treatment of unsent data by a close: `struct linger { int l_onoff; int l_linger; }`, seconds.
#define TS_SO_LINGER 13

// How long receiving, and `accept`, may wait: a 16-byte `struct timeval`; zero: for ever.
#define TS_SO_RCVTIMEO 20

// How long sending, and `connect`, may wait: a 16-byte `struct timeval`; zero: for ever.
#define TS_SO_SNDTIMEO 21

// Bytes below which a reader is not told of data; shown as half of the receive buffer at most.
#define TS_SO_RCVLOWAT 18

// Get: always 1.
#define TS_SO_SNDLOWAT 19

// Get: whether the socket listens.
#define TS_SO_ACCEPTCONN 30

// Get: always `IPPROTO_TCP`.
#define TS_SO_PROTOCOL 38

// Get: the family.
#define TS_SO_DOMAIN 39

// Send small segments at once (Nagle's algorithm off).
#define TS_TCP_NODELAY 1

// The largest segment, 88 to 32,767 bytes; set before connecting or listening. 0 takes it back.
#define TS_TCP_MAXSEG 2

// Send full segments alone; what does not fill one waits for more, for 200 ms at most.
#define TS_TCP_CORK 3

// Seconds of silence before the first keep-alive probe, 1 to 32,767.
#define TS_TCP_KEEPIDLE 4

// Seconds between keep-alive probes, 1 to 32,767.
#define TS_TCP_KEEPINTVL 5

// Unanswered keep-alive probes until the connection is given up, 1 to 127.
#define TS_TCP_KEEPCNT 6

// Retransmissions of the SYN until the attempt is given up, 1 to 127.
#define TS_TCP_SYNCNT 7

// Seconds that a closed connection waits for the peer's FIN, 120 at most; 0: the host's `fin_wait_2`; negative: not at all.
#define TS_TCP_LINGER2 8

// Get: `struct ts_tcp_info`.
#define TS_TCP_INFO 11

// Acknowledge the next arrivals at once, and what waits to be acknowledged; 0: wait for data to go with. It does not last: the
// acknowledgement policy goes on from there. An even number acknowledges what waits alone.
#define TS_TCP_QUICKACK 12

// The congestion controller's name, at most 15 bytes and a zero; one that there is not is `ENOENT`. A live connection exchanges it.
#define TS_TCP_CONGESTION 13

// Milliseconds that data may stay unacknowledged until the connection is given up; 0: by the number of retransmissions.
#define TS_TCP_USER_TIMEOUT 18

// A listener: so many connections may have begun with data in a SYN (RFC 7413) and wait for the end of their handshake, 4096 at most; 0: none
// may. The SYN of a connection that is gone may come again, with its data.
#define TS_TCP_FASTOPEN 23

// `connect` returns at once where the server has given a cookie, and the SYN goes with the first data; set before connecting.
#define TS_TCP_FASTOPEN_CONNECT 30

// Unsent bytes from which on nothing more is taken; there is room again below half of it. 0: the send buffer decides.
#define TS_TCP_NOTSENT_LOWAT 25

// The type of service; its lower two bits are not the application's.
#define TS_IP_TOS 1

// The time to live, 1 to 255; -1 for the default.
#define TS_IP_TTL 2

// A call to receive or send tells of ICMP errors as they come, once each, and the connection goes on.
#define TS_IP_RECVERR 11

// The same for IPv6.
#define TS_IPV6_RECVERR 25

// Whether IPv4 packets may be fragmented and reports of their size count: `IP_PMTUDISC_DONT` and the others.
#define TS_IP_MTU_DISCOVER 10

// Get: the path MTU of a connection.
#define TS_IP_MTU 14

// The hop limit, 1 to 255; -1 for the default.
#define TS_IPV6_UNICAST_HOPS 16

// The same as `IP_MTU_DISCOVER` for IPv6, whose packets are never fragmented: with `DONT` reports count.
#define TS_IPV6_MTU_DISCOVER 23

// Get: the path MTU of a connection.
#define TS_IPV6_MTU 24

// The IPv6 socket is for IPv6 alone, and not for IPv4 too; set before binding.
#define TS_IPV6_V6ONLY 26

// The traffic class; its lower two bits are not the application's.
#define TS_IPV6_TCLASS 67

// `ts_config.retries`: never give up.
#define TS_RETRY_FOREVER UINT32_MAX

// The version of this interface. It changes when something that was there changes its meaning.
#define TS_ABI_VERSION 3

// A time that never comes.
#define TS_NEVER INT64_MAX

// An address of a host with the length of its network's prefix.
struct ts_address {
    // `AF_INET` or `AF_INET6`.
    uint16_t family;
    // Bits of the prefix; 24, for example. It tells the directed broadcast address.
    uint16_t prefix;
    // The address in the network's byte order; the first four bytes of it for IPv4.
    uint8_t bytes[16];
};

// A host's configuration. Fill it in with `ts_config_init` and change what is to differ. Times are in nanoseconds, sizes in
// bytes, switches 0 or 1.
struct ts_config {
    // `sizeof (struct ts_config)` where this was compiled.
    uint32_t size;
    // The longest IP packet of the host's interface: 68 (with IPv6 1280) to 65535.
    uint32_t mtu;
    // The host's addresses, at least one. They are copied.
    const struct ts_address *addresses;
    // How many there are.
    size_t address_count;
    // The units that TCP is composed of, as words with " + " between them, such as "cubic + rack-tlp + delayed-ack(delay=10ms)", or a
    // preset such as "modern"; null: the defaults. `transom units` lists the words. It is copied.
    const char *tcp;
    // From this every initial sequence number, port and timestamp offset is derived: the same secret, the same run.
    uint8_t secret[16];
    // The time on the host's clock at first.
    int64_t start;
    // How long TIME-WAIT lasts (2 MSL).
    int64_t time_wait;
    // How long a closed connection waits for the peer's FIN.
    int64_t fin_wait_2;
    // The receive buffer at first; without window scaling at most 65535, as the next. 0: as `tcp` says.
    uint32_t receive_buffer;
    // The receive buffer at most; 0: as `tcp` says.
    uint32_t receive_buffer_max;
    // The send buffer at first.
    uint32_t send_buffer;
    // The send buffer at most.
    uint32_t send_buffer_max;
    // Duplicate acknowledgements that mean loss.
    uint32_t dup_thresh;
    // Retransmissions of a SYN until the attempt is given up.
    uint32_t syn_retries;
    // Retransmissions of a segment until the connection is given up, or `TS_RETRY_FOREVER`.
    uint32_t retries;
    // The first port for active opens.
    uint16_t ephemeral_first;
    // The last of them.
    uint16_t ephemeral_last;
    // Time to live, or hop limit, of packets.
    uint8_t hop_limit;
    // Answer echo requests.
    uint8_t echo;
    // Zero.
    uint8_t reserved[6];
};

// A host, by number. Zero and negative numbers are none.
typedef int64_t ts_host;

// A question about a descriptor, and its answer; laid out as Linux' `struct pollfd`.
struct ts_pollfd {
    // The descriptor; a negative one is passed over.
    int32_t fd;
    // The events asked for. `POLLERR`, `POLLHUP` and `POLLNVAL` always are.
    int16_t events;
    // The events that hold.
    int16_t revents;
};

// The state of a connection as `TCP_INFO` shows it.
struct ts_tcp_info {
    // The state, as `TCP_ESTABLISHED` and the others.
    uint8_t tcpi_state;
    // The congestion phase: 0 open, 1 disorder, 2 reduced for a mark, 3 recovery, 4 loss.
    uint8_t tcpi_ca_state;
    // Retransmissions of the oldest segment.
    uint8_t tcpi_retransmits;
    // Zero: not kept apart.
    uint8_t tcpi_probes;
    // How often the retransmission timeout has backed off.
    uint8_t tcpi_backoff;
    // The options in use, as `TCPI_OPT_TIMESTAMPS` and the others.
    uint8_t tcpi_options;
    // Window scales: the peer's in the lower four bits, ours in the upper.
    uint8_t tcpi_wscale;
    // Bit 0: the application had too little to send when the delivery rate was measured. Bits 1 and 2: why data in our SYN was not
    // acknowledged: 0 it was, or there was none, 1 there was no cookie, 2 the SYN-ACK did not, 3 the SYN had to be repeated.
    uint8_t tcpi_flags;
    // Retransmission timeout, microseconds.
    uint32_t tcpi_rto;
    // Zero: not kept.
    uint32_t tcpi_ato;
    // Payload bytes of a full segment.
    uint32_t tcpi_snd_mss;
    // Zero: not kept.
    uint32_t tcpi_rcv_mss;
    // Segments in flight; a listener: connections that wait.
    uint32_t tcpi_unacked;
    // Of these, acknowledged selectively; a listener: the backlog.
    uint32_t tcpi_sacked;
    // Of these, believed lost.
    uint32_t tcpi_lost;
    // Of these, sent again.
    uint32_t tcpi_retrans;
    // Zero, as in Linux of today.
    uint32_t tcpi_fackets;
    // Milliseconds since data was last sent.
    uint32_t tcpi_last_data_sent;
    // Zero, as in Linux.
    uint32_t tcpi_last_ack_sent;
    // Milliseconds since data last arrived.
    uint32_t tcpi_last_data_recv;
    // Milliseconds since anything acceptable last arrived.
    uint32_t tcpi_last_ack_recv;
    // Path MTU, bytes.
    uint32_t tcpi_pmtu;
    // The receive buffer, bytes.
    uint32_t tcpi_rcv_ssthresh;
    // Smoothed round-trip time, microseconds.
    uint32_t tcpi_rtt;
    // Its variation, microseconds.
    uint32_t tcpi_rttvar;
    // Slow-start threshold, segments; 0x7fffffff before the first reduction.
    uint32_t tcpi_snd_ssthresh;
    // Congestion window, segments (rounded down, at least one).
    uint32_t tcpi_snd_cwnd;
    // Payload bytes of the largest segments that the peer was offered to send.
    uint32_t tcpi_advmss;
    // Over how many segments the path was seen to reorder, at most, and at least the number of duplicates that mean a loss.
    uint32_t tcpi_reordering;
    // The round-trip time as a receiver sees it, microseconds; kept with timestamps alone.
    uint32_t tcpi_rcv_rtt;
    // The receive buffer, bytes.
    uint32_t tcpi_rcv_space;
    // Segments sent again, in all.
    uint32_t tcpi_total_retrans;
    // Zero: not shown.
    uint64_t tcpi_pacing_rate;
    // Zero: there is none.
    uint64_t tcpi_max_pacing_rate;
    // Payload bytes acknowledged.
    uint64_t tcpi_bytes_acked;
    // Payload bytes received that were new.
    uint64_t tcpi_bytes_received;
    // Segments sent.
    uint32_t tcpi_segs_out;
    // Segments received.
    uint32_t tcpi_segs_in;
    // Bytes written and not yet sent.
    uint32_t tcpi_notsent_bytes;
    // The smallest round-trip time seen, microseconds.
    uint32_t tcpi_min_rtt;
    // Zero: not kept apart.
    uint32_t tcpi_data_segs_in;
    // Zero: not kept apart.
    uint32_t tcpi_data_segs_out;
    // The rate at which data was delivered lately, bytes per second; whether the application had too little to send then is in `tcpi_flags`.
    uint64_t tcpi_delivery_rate;
    // Time during which data was waiting to be acknowledged, microseconds.
    uint64_t tcpi_busy_time;
    // Time limited by the peer's window, microseconds.
    uint64_t tcpi_rwnd_limited;
    // Zero: not kept.
    uint64_t tcpi_sndbuf_limited;
    // Segments delivered to the peer.
    uint32_t tcpi_delivered;
    // Segments that the peer says have arrived marked, with accurate ECN (RFC 9768).
    uint32_t tcpi_delivered_ce;
    // Payload bytes sent, retransmissions included.
    uint64_t tcpi_bytes_sent;
    // Payload bytes sent again.
    uint64_t tcpi_bytes_retrans;
    // Segments the peer reported as having arrived twice.
    uint32_t tcpi_dsack_dups;
    // Times that reordering was seen.
    uint32_t tcpi_reord_seen;
    // Segments that arrived out of order.
    uint32_t tcpi_rcv_ooopack;
    // The peer's window, bytes.
    uint32_t tcpi_snd_wnd;
    // The window offered, bytes.
    uint32_t tcpi_rcv_wnd;
    // Zero: not kept.
    uint32_t tcpi_rehash;
    // Retransmission timeouts.
    uint16_t tcpi_total_rto;
    // Zero: not kept.
    uint16_t tcpi_total_rto_recoveries;
    // Zero: not kept.
    uint32_t tcpi_total_rto_time;
    // Segments that arrived marked (RFC 3168, RFC 9768).
    uint32_t tcpi_received_ce;
    // Payload bytes that the peer says have arrived as ECT(1), with accurate ECN (RFC 9768).
    uint32_t tcpi_delivered_e1_bytes;
    // The same for ECT(0).
    uint32_t tcpi_delivered_e0_bytes;
    // The same for congestion experienced.
    uint32_t tcpi_delivered_ce_bytes;
    // Payload bytes that arrived as ECT(1), where accurate ECN is in use.
    uint32_t tcpi_received_e1_bytes;
    // The same for ECT(0).
    uint32_t tcpi_received_e0_bytes;
    // The same for congestion experienced.
    uint32_t tcpi_received_ce_bytes;
    // Bit 1: the peer's field ACE was zeroed. Bit 2: options are not sent. Bit 3: the peer's options were zeroed.
    uint16_t tcpi_accecn_fail_mode;
    // The peer's AccECN options: 0 none seen, 1 an empty one, 2 one with counts, 3 with counts that were zeroed.
    uint16_t tcpi_accecn_opt_seen;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the interface that the library has, to be compared with `TS_ABI_VERSION`.
uint32_t ts_abi_version(void);

// Fills in a configuration with the defaults, without addresses. `size` is `sizeof *config`.
//
// Returns 0, `-TS_EFAULT`, or `-TS_EINVAL` if `size` is too small.
//
// What the pointers must be:
// `config` is null or valid for writing `size` bytes.
int32_t ts_config_init(struct ts_config *config, size_t size);

// Reads `"192.0.2.1/24"` or `"2001:db8::1/64"` into `address`; without a prefix the address stands alone.
//
// Returns 0, `-TS_EFAULT`, or `-TS_EINVAL` if the text is no address.
//
// What the pointers must be:
// `text` is null or a string that ends; `address` is null or valid for writing.
int32_t ts_parse_address(const char *text, struct ts_address *address);

// Makes a host.
//
// Returns its number, or `-TS_EFAULT`, `-TS_E2BIG` if `config` is of a later version and uses it, or `-TS_EINVAL` if it does not
// make sense; `ts_message (0, text, room)` then says why.
//
// What the pointers must be:
// `config` is null or valid for reading as many bytes as its `size` says (four at least), its `addresses` for reading
// `address_count` addresses, and its `tcp` is null or a string that ends.
ts_host ts_create(const struct ts_config *config);

// Unmakes a host with all its sockets.
//
// Returns 0 or `-TS_EBADF`.
int32_t ts_destroy(ts_host host);

// Copies to `text`, which has room for `room` bytes, why `host` can no longer be used, or, if that is 0, why this thread's last
// `ts_create` failed. The copy is cut if it has to be, and ends with a zero byte if there is any room.
//
// Returns the length of the whole without the zero byte (0: nothing to say), `-TS_EFAULT` or `-TS_EBADF`.
//
// What the pointers must be:
// `text` is null or valid for writing `room` bytes.
int64_t ts_message(ts_host host,
                   char *text,
                   size_t room);

// The time on the host's clock.
//
// Returns the time, or `-TS_EBADF` or `-TS_EIO`.
int64_t ts_now(ts_host host);

// Moves the host's clock on to `at`: timers fire and queued packets arrive on the way and at that time, packets before timers.
//
// Returns 0, or `-TS_EINVAL` if `at` has passed, `-TS_EBADF` or `-TS_EIO`.
int32_t ts_run_to(ts_host host,
                  int64_t at);

// When the stack's next timer is to be looked at; it may turn out that nothing is due then.
//
// Returns the time, `TS_NEVER` if no timer is set, or `-TS_EBADF` or `-TS_EIO`.
int64_t ts_next_timer(ts_host host);

// When something happens next by itself: a timer, or the arrival of a queued packet.
//
// Returns the time, `TS_NEVER` if nothing will, or `-TS_EBADF` or `-TS_EIO`.
int64_t ts_next_event(ts_host host);

// How far a call on a blocking socket may move the clock on before it gives `-TS_EINTR`, in nanoseconds; zero at first. Repeat the
// call to go on waiting.
//
// Returns 0, or `-TS_EINVAL` for a negative span or more than thirty days, `-TS_EBADF` or `-TS_EIO`.
int32_t ts_set_patience(ts_host host,
                        int64_t span);

// Lets a raw IP packet arrive at `at`: within this call if that is now, otherwise when the clock gets there. Whether the packet
// makes sense is for the stack to find out; its checksums are verified. The packet is copied.
//
// Returns 0, or `-TS_EINVAL` if `at` has passed or there is no packet, `-TS_EMSGSIZE` if it is longer than 65535 bytes,
// `-TS_EFAULT`, `-TS_EBADF` or `-TS_EIO`.
//
// What the pointers must be:
// `packet` is null or valid for reading `len` bytes.
int32_t ts_inject(ts_host host,
                  int64_t at,
                  const void *packet,
                  size_t len);

// Takes the oldest packet that left the host, and stores in `at`, unless that is null, when it did. With `room` 0 the packet stays.
//
// Returns its length, or `-TS_EAGAIN` if there is none, `-TS_EMSGSIZE` if `room` is too small (the packet stays), `-TS_EFAULT`,
// `-TS_EBADF` or `-TS_EIO`.
//
// What the pointers must be:
// `packet` is null or valid for writing `room` bytes, `at` is null or valid for writing.
int64_t ts_next_packet(ts_host host,
                       void *packet,
                       size_t room,
                       int64_t *at);

// Makes a TCP socket: `TS_AF_INET` or `TS_AF_INET6`, `TS_SOCK_STREAM` (with `TS_SOCK_NONBLOCK`), and 0 or `TS_IPPROTO_TCP`.
//
// Returns the lowest free descriptor from 3 on, or `-TS_EAFNOSUPPORT`, `-TS_ESOCKTNOSUPPORT`, `-TS_EPROTONOSUPPORT`,
// `-TS_EMFILE`.
int32_t ts_socket(ts_host host,
                  int32_t domain,
                  int32_t kind,
                  int32_t protocol);

// Binds a socket. Port 0 takes a free one.
//
// Returns 0, or `-TS_EINVAL` if it is bound or connected or the address too short, `-TS_EAFNOSUPPORT`, `-TS_EADDRNOTAVAIL` if the
// address is not the host's, `-TS_EADDRINUSE`.
//
// What the pointers must be:
// `addr` is null or valid for reading `len` bytes.
int32_t ts_bind(ts_host host,
                int32_t fd,
                const void *addr,
                uint32_t len);

// Listens; one connection more than `backlog` may wait, as on Linux.
//
// Returns 0, or `-TS_EINVAL` for a connected socket, `-TS_EADDRINUSE`.
int32_t ts_listen(ts_host host, int32_t fd, int32_t backlog);

// Connects. A blocking socket waits for the handshake.
//
// Returns 0, or `-TS_EINPROGRESS`, `-TS_EALREADY`, `-TS_EISCONN`, `-TS_EINTR`, `-TS_EAFNOSUPPORT`, `-TS_EADDRNOTAVAIL`,
// `-TS_ENETUNREACH`, `-TS_EINVAL`, and how the attempt failed: `-TS_ECONNREFUSED`, `-TS_ETIMEDOUT` and others.
//
// What the pointers must be:
// `addr` is null or valid for reading `len` bytes.
int32_t ts_connect(ts_host host,
                   int32_t fd,
                   const void *addr,
                   uint32_t len);

// Accepts a connection. The peer's address goes to `addr` unless that is null; `*len` is the room there and then its length.
//
// Returns a descriptor, or `-TS_EAGAIN`, `-TS_EINTR`, `-TS_EINVAL` if the socket does not listen, `-TS_EMFILE`.
//
// What the pointers must be:
// `addr` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
int32_t ts_accept(ts_host host,
                  int32_t fd,
                  void *addr,
                  uint32_t *len);

// `ts_accept` with `TS_SOCK_NONBLOCK` for the new socket, if wanted.
//
// Returns as `ts_accept`.
//
// What the pointers must be:
// As for `ts_accept`.
int32_t ts_accept4(ts_host host, int32_t fd, void *addr, uint32_t *len, int32_t flags);

// The bound address; `*len` is the room at `addr` and then the address' length.
//
// Returns 0.
//
// What the pointers must be:
// `addr` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
int32_t ts_getsockname(ts_host host, int32_t fd, void *addr, uint32_t *len);

// The peer's address; `*len` is the room at `addr` and then the address' length.
//
// Returns 0 or `-TS_ENOTCONN`.
//
// What the pointers must be:
// As for `ts_getsockname`.
int32_t ts_getpeername(ts_host host, int32_t fd, void *addr, uint32_t *len);

// Reads up to `len` bytes (never more than 64 MiB); 0 is the end of the stream.
//
// Returns their number, or as `ts_recv`.
//
// What the pointers must be:
// `to` is null or valid for writing `len` bytes.
int64_t ts_read(ts_host host, int32_t fd, void *to, size_t len);

// `ts_read` with `TS_MSG_PEEK`, `TS_MSG_OOB`, `TS_MSG_WAITALL`, `TS_MSG_DONTWAIT` or `TS_MSG_TRUNC`, with which `to` may be null.
//
// Returns the number of bytes, or `-TS_EAGAIN`, `-TS_EINTR`, `-TS_ENOTCONN`, `-TS_EINVAL` for `TS_MSG_OOB` without an urgent byte,
// `-TS_EOPNOTSUPP` for other flags, and once how the connection ended: `-TS_ECONNRESET`, `-TS_ETIMEDOUT` and others.
//
// What the pointers must be:
// `to` is null or valid for writing `len` bytes.
int64_t ts_recv(ts_host host,
                int32_t fd,
                void *to,
                size_t len,
                int32_t flags);

// Writes `len` bytes; a non-blocking socket takes what there is room for.
//
// Returns their number, or as `ts_send`.
//
// What the pointers must be:
// `from` is null or valid for reading `len` bytes.
int64_t ts_write(ts_host host, int32_t fd, const void *from, size_t len);

// `ts_write` with `TS_MSG_OOB`, `TS_MSG_EOR`, `TS_MSG_MORE`, `TS_MSG_DONTWAIT` or `TS_MSG_NOSIGNAL` (there never is a signal).
//
// Returns the number of bytes, or `-TS_EAGAIN`, `-TS_EINTR`, `-TS_EPIPE`, `-TS_EOPNOTSUPP` for other flags, and once how the
// connection ended.
//
// What the pointers must be:
// `from` is null or valid for reading `len` bytes.
int64_t ts_send(ts_host host,
                int32_t fd,
                const void *from,
                size_t len,
                int32_t flags);

// `ts_send`, or with `TS_MSG_FASTOPEN` `ts_connect` and `ts_send` in one: the data goes with the SYN if the server has given a cookie before. Without
// that flag the address is not looked at, and may be null.
//
// Returns the number of bytes, or as `ts_connect` and `ts_send`; `-TS_EINPROGRESS` if a non-blocking socket has no cookie: nothing is queued then.
//
// What the pointers must be:
// `from` is null or valid for reading `len` bytes; `addr` is null or valid for reading `addr_len` bytes.
int64_t ts_sendto(ts_host host,
                  int32_t fd,
                  const void *from,
                  size_t len,
                  int32_t flags,
                  const void *addr,
                  uint32_t addr_len);

// Ends reading (`TS_SHUT_RD`), writing (`TS_SHUT_WR`) or both (`TS_SHUT_RDWR`).
//
// Returns 0, `-TS_EINVAL` or `-TS_ENOTCONN`.
int32_t ts_shutdown(ts_host host, int32_t fd, int32_t how);

// Closes a descriptor; the connection ends by itself.
//
// Returns 0.
int32_t ts_close(ts_host host, int32_t fd);

// Waits for one of `count` descriptors, for `timeout` milliseconds, for ever if that is negative, and never longer than patience.
//
// Returns how many have something in `revents`, 0 after `timeout`, or `-TS_EINTR`, `-TS_EINVAL` for too many descriptors.
//
// What the pointers must be:
// `fds` is null or valid for reading and writing `count` structures.
int32_t ts_poll(ts_host host,
                struct ts_pollfd *fds,
                size_t count,
                int32_t timeout);

// Sets an option. There are those named `TS_SO_*`, `TS_TCP_*`, `TS_IP_*` and `TS_IPV6_*`; the numbers are Linux'.
//
// Returns 0, `-TS_ENOPROTOOPT`, `-TS_EINVAL`, or `-TS_ENOENT` for a congestion controller there is not.
//
// What the pointers must be:
// `value` is null or valid for reading `len` bytes.
int32_t ts_setsockopt(ts_host host,
                      int32_t fd,
                      int32_t level,
                      int32_t name,
                      const void *value,
                      uint32_t len);

// Reads an option. `*len` is the room at `value` and then how much of it was used.
//
// Returns 0 or `-TS_ENOPROTOOPT`.
//
// What the pointers must be:
// `value` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
int32_t ts_getsockopt(ts_host host, int32_t fd, int32_t level, int32_t name, void *value, uint32_t *len);

// `TS_F_GETFL` and `TS_F_SETFL` with `TS_O_NONBLOCK`.
//
// Returns the flags, 0, or `-TS_EINVAL` for any other command.
int32_t ts_fcntl(ts_host host, int32_t fd, int32_t command, int32_t argument);

// `TS_FIONREAD`, `TS_TIOCOUTQ`, `TS_SIOCATMARK` and `TS_SIOCOUTQNSD`, whose answer goes to `value`.
//
// Returns 0, `-TS_EINVAL` for a listener, or `-TS_ENOTTY` for any other request.
//
// What the pointers must be:
// `value` is null or valid for writing.
int32_t ts_ioctl(ts_host host, int32_t fd, uint64_t request, int32_t *value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TRANSOM_SANSIO_H */
