//! `TCP_INFO`, laid out as Linux' `struct tcp_info` of version 6.18 (earlier ones end sooner), so that a program may read it through its own
//! header's structure.
//!
//! Linux counts segments where the stack counts bytes; bytes are shown as full segments, rounded up. Times are in microseconds,
//! those since an event in milliseconds. Fields about what the stack does not have or not remember are zero; they say so.

use transom_tcp::time::Duration;
use transom_tcp::{AccurateInfo, ConnectionState, FastOpenFailure, Phase, State};
use zerocopy::{Immutable, IntoBytes};

/// The number of a listener's state in linux/tcp_states.h; those of connections are [`State::to_linux`]'s.
const TCP_LISTEN: u8 = 10;

/// The state of a connection as `TCP_INFO` shows it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct TcpInfo {
    /// The state, as `TCP_ESTABLISHED` and the others.
    pub tcpi_state: u8,
    /// The congestion phase: 0 open, 1 disorder, 2 reduced for a mark, 3 recovery, 4 loss.
    pub tcpi_ca_state: u8,
    /// Retransmissions of the oldest segment.
    pub tcpi_retransmits: u8,
    /// Zero: not kept apart.
    pub tcpi_probes: u8,
    /// How often the retransmission timeout has backed off.
    pub tcpi_backoff: u8,
    /// The options in use, as `TCPI_OPT_TIMESTAMPS` and the others.
    pub tcpi_options: u8,
    /// Window scales: the peer's in the lower four bits, ours in the upper.
    pub tcpi_wscale: u8,
    /// Bit 0: the application had too little to send when the delivery rate was measured. Bits 1 and 2: why data in our SYN was not
    /// acknowledged: 0 it was, or there was none, 1 there was no cookie, 2 the SYN-ACK did not, 3 the SYN had to be repeated.
    pub tcpi_flags: u8,

    /// Retransmission timeout, microseconds.
    pub tcpi_rto: u32,
    /// Zero: not kept.
    pub tcpi_ato: u32,
    /// Payload bytes of a full segment.
    pub tcpi_snd_mss: u32,
    /// Zero: not kept.
    pub tcpi_rcv_mss: u32,

    /// Segments in flight; a listener: connections that wait.
    pub tcpi_unacked: u32,
    /// Of these, acknowledged selectively; a listener: the backlog.
    pub tcpi_sacked: u32,
    /// Of these, believed lost.
    pub tcpi_lost: u32,
    /// Of these, sent again.
    pub tcpi_retrans: u32,
    /// Zero, as in Linux of today.
    pub tcpi_fackets: u32,

    /// Milliseconds since data was last sent.
    pub tcpi_last_data_sent: u32,
    /// Zero, as in Linux.
    pub tcpi_last_ack_sent: u32,
    /// Milliseconds since data last arrived.
    pub tcpi_last_data_recv: u32,
    /// Milliseconds since anything acceptable last arrived.
    pub tcpi_last_ack_recv: u32,

    /// Path MTU, bytes.
    pub tcpi_pmtu: u32,
    /// The receive buffer, bytes.
    pub tcpi_rcv_ssthresh: u32,
    /// Smoothed round-trip time, microseconds.
    pub tcpi_rtt: u32,
    /// Its variation, microseconds.
    pub tcpi_rttvar: u32,
    /// Slow-start threshold, segments; 0x7fffffff before the first reduction.
    pub tcpi_snd_ssthresh: u32,
    /// Congestion window, segments (rounded down, at least one).
    pub tcpi_snd_cwnd: u32,
    /// Payload bytes of the largest segments that the peer was offered to send.
    pub tcpi_advmss: u32,
    /// Over how many segments the path was seen to reorder, at most, and at least the number of duplicates that mean a loss.
    pub tcpi_reordering: u32,

    /// The round-trip time as a receiver sees it, microseconds; kept with timestamps alone.
    pub tcpi_rcv_rtt: u32,
    /// The receive buffer, bytes.
    pub tcpi_rcv_space: u32,

    /// Segments sent again, in all.
    pub tcpi_total_retrans: u32,

    /// Zero: not shown.
    pub tcpi_pacing_rate: u64,
    /// Zero: there is none.
    pub tcpi_max_pacing_rate: u64,
    /// Payload bytes acknowledged.
    pub tcpi_bytes_acked: u64,
    /// Payload bytes received that were new.
    pub tcpi_bytes_received: u64,
    /// Segments sent.
    pub tcpi_segs_out: u32,
    /// Segments received.
    pub tcpi_segs_in: u32,

    /// Bytes written and not yet sent.
    pub tcpi_notsent_bytes: u32,
    /// The smallest round-trip time seen, microseconds.
    pub tcpi_min_rtt: u32,
    /// Zero: not kept apart.
    pub tcpi_data_segs_in: u32,
    /// Zero: not kept apart.
    pub tcpi_data_segs_out: u32,

    /// The rate at which data was delivered lately, bytes per second; whether the application had too little to send then is in `tcpi_flags`.
    pub tcpi_delivery_rate: u64,

    /// Time during which data was waiting to be acknowledged, microseconds.
    pub tcpi_busy_time: u64,
    /// Time limited by the peer's window, microseconds.
    pub tcpi_rwnd_limited: u64,
    /// Zero: not kept.
    pub tcpi_sndbuf_limited: u64,

    /// Segments delivered to the peer.
    pub tcpi_delivered: u32,
    /// Segments that the peer says have arrived marked, with accurate ECN (RFC 9768).
    pub tcpi_delivered_ce: u32,

    /// Payload bytes sent, retransmissions included.
    pub tcpi_bytes_sent: u64,
    /// Payload bytes sent again.
    pub tcpi_bytes_retrans: u64,
    /// Segments the peer reported as having arrived twice.
    pub tcpi_dsack_dups: u32,
    /// Times that reordering was seen.
    pub tcpi_reord_seen: u32,

    /// Segments that arrived out of order.
    pub tcpi_rcv_ooopack: u32,

    /// The peer's window, bytes.
    pub tcpi_snd_wnd: u32,
    /// The window offered, bytes.
    pub tcpi_rcv_wnd: u32,

    /// Zero: not kept.
    pub tcpi_rehash: u32,

    /// Retransmission timeouts.
    pub tcpi_total_rto: u16,
    /// Zero: not kept.
    pub tcpi_total_rto_recoveries: u16,
    /// Zero: not kept.
    pub tcpi_total_rto_time: u32,

    /// Segments that arrived marked (RFC 3168, RFC 9768).
    pub tcpi_received_ce: u32,
    /// Payload bytes that the peer says have arrived as ECT(1), with accurate ECN (RFC 9768).
    pub tcpi_delivered_e1_bytes: u32,
    /// The same for ECT(0).
    pub tcpi_delivered_e0_bytes: u32,
    /// The same for congestion experienced.
    pub tcpi_delivered_ce_bytes: u32,
    /// Payload bytes that arrived as ECT(1), where accurate ECN is in use.
    pub tcpi_received_e1_bytes: u32,
    /// The same for ECT(0).
    pub tcpi_received_e0_bytes: u32,
    /// The same for congestion experienced.
    pub tcpi_received_ce_bytes: u32,
    /// Bit 1: the peer's field ACE was zeroed. Bit 2: options are not sent. Bit 3: the peer's options were zeroed.
    pub tcpi_accecn_fail_mode: u16,
    /// The peer's AccECN options: 0 none seen, 1 an empty one, 2 one with counts, 3 with counts that were zeroed.
    pub tcpi_accecn_opt_seen: u16,
}

/// The counters of accurate ECN alone.
fn accurate_ecn(info: &ConnectionState) -> TcpInfo {
    let Some(accurate) = info.ecn.and_then(|ecn| ecn.accurate) else { return TcpInfo::default() };
    let AccurateInfo { received, delivered, .. } = accurate;
    // Counts wrap there, as in Linux.
    let [e0, e1, ce] = [delivered.ect0_bytes, delivered.ect1_bytes, delivered.ce_bytes];
    let [r0, r1, rce] = [received.ect0_bytes, received.ect1_bytes, received.ce_bytes];
    let fail = |set: bool, bit: u16| if set { 1 << bit } else { 0 };
    TcpInfo {
        tcpi_delivered_ce: small(delivered.ce_packets),
        tcpi_delivered_e0_bytes: e0 as u32,
        tcpi_delivered_e1_bytes: e1 as u32,
        tcpi_delivered_ce_bytes: ce as u32,
        tcpi_received_e0_bytes: r0 as u32,
        tcpi_received_e1_bytes: r1 as u32,
        tcpi_received_ce_bytes: rce as u32,
        tcpi_accecn_fail_mode: fail(accurate.field_zeroed, 1)
            | fail(!accurate.sends_options, 2)
            | fail(accurate.options_zeroed, 3),
        tcpi_accecn_opt_seen: match (accurate.options_zeroed, accurate.options_seen) {
            (true, _) => 3,
            (false, true) => 1 + u16::from(accurate.counts_seen),
            (false, false) => 0,
        },
        ..TcpInfo::default()
    }
}

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn client_failure(failure: FastOpenFailure) -> u8 {
    match failure {
        FastOpenFailure::None => 0,
        FastOpenFailure::NoCookie => 1,
        FastOpenFailure::DataNotAcked => 2,
        FastOpenFailure::SynRetransmitted => 3,
    }
}

fn byte(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

fn micros(span: Option<Duration>) -> u32 {
    small(span.unwrap_or(Duration::ZERO).as_micros())
}

fn millis(span: Option<Duration>) -> u32 {
    small(span.unwrap_or(Duration::ZERO).as_millis())
}

impl TcpInfo {
    /// No connection.
    pub(crate) fn closed() -> Self {
        TcpInfo { tcpi_state: State::Closed.to_linux(), ..TcpInfo::default() }
    }

    /// A listener with so many connections that wait.
    pub(crate) fn listening(waiting: usize, backlog: usize) -> Self {
        TcpInfo {
            tcpi_state: TCP_LISTEN,
            tcpi_unacked: small(waiting as u64),
            tcpi_sacked: small(backlog as u64),
            ..TcpInfo::default()
        }
    }
}

/// The structure as a program gets it.
impl From<TcpInfo> for Vec<u8> {
    fn from(info: TcpInfo) -> Self {
        info.as_bytes().to_vec()
    }
}

impl From<&ConnectionState> for TcpInfo {
    fn from(info: &ConnectionState) -> Self {
        let mss = u64::from(info.mss.max(1));
        let segments = |bytes: u64| small(bytes.div_ceil(mss));
        let counters = &info.counters;
        // Bytes sent are counted with the FIN, bytes written without it.
        let sent = info.snd_nxt.since(info.snd_una).min(info.unacknowledged as u64);
        // TCPI_OPT_TIMESTAMPS, _SACK, _WSCALE and _SYN_DATA of linux/tcp.h.
        let options = u8::from(info.timestamps)
            | u8::from(info.sack) << 1
            | u8::from(info.window_scale.is_some()) << 2
            | u8::from(info.fast_open.syn_data_acked) << 5;
        TcpInfo {
            tcpi_state: info.state.to_linux(),
            tcpi_ca_state: match info.phase {
                _ if info.reduced_for_mark => 2,
                Phase::Open => 0,
                Phase::Disorder => 1,
                Phase::Recovery => 3,
                Phase::Loss => 4,
            },
            tcpi_retransmits: byte(info.retransmits),
            tcpi_backoff: byte(info.backoffs),
            tcpi_options: options,
            tcpi_wscale: info.window_scale.map_or(0, |(theirs, ours)| theirs | ours << 4),
            tcpi_flags: u8::from(info.delivery_rate_app_limited)
                | client_failure(info.fast_open.failure) << 1,
            tcpi_rto: small(info.rto.as_micros()),
            tcpi_snd_mss: info.mss,
            tcpi_unacked: segments(info.snd_nxt.since(info.snd_una)),
            tcpi_sacked: segments(info.sacked),
            tcpi_lost: segments(info.lost),
            tcpi_retrans: segments(info.retransmitted),
            tcpi_last_data_sent: millis(info.since_data_sent),
            tcpi_last_data_recv: millis(info.since_data_received),
            tcpi_last_ack_recv: millis(Some(info.since_heard)),
            tcpi_pmtu: info.path_mtu,
            tcpi_rcv_ssthresh: small(info.rcv_buffer as u64),
            tcpi_rtt: micros(info.srtt),
            tcpi_rttvar: micros(info.rttvar),
            tcpi_snd_ssthresh: match info.ssthresh {
                u64::MAX => 0x7fff_ffff,
                bytes => small(bytes / mss),
            },
            tcpi_snd_cwnd: small((info.cwnd / mss).max(1)),
            tcpi_advmss: info.advertised_mss,
            tcpi_reordering: info.reordering,
            tcpi_rcv_rtt: micros(info.rcv_rtt),
            tcpi_rcv_space: small(info.rcv_buffer as u64),
            tcpi_total_retrans: small(counters.retransmitted_segments),
            tcpi_bytes_acked: info.snd_una.stream_offset(),
            tcpi_bytes_received: counters.bytes_accepted,
            tcpi_segs_out: small(counters.segments_sent),
            tcpi_segs_in: small(counters.segments_received),
            tcpi_notsent_bytes: small(info.unacknowledged as u64 - sent),
            tcpi_min_rtt: micros(info.min_rtt),
            tcpi_busy_time: info.busy.as_micros(),
            tcpi_rwnd_limited: info.limited_peer_window.as_micros(),
            tcpi_delivery_rate: info.delivery_rate.unwrap_or(0),
            tcpi_delivered: segments(info.delivered),
            tcpi_bytes_sent: counters.bytes_sent,
            tcpi_bytes_retrans: counters.retransmitted_bytes,
            tcpi_dsack_dups: segments(counters.duplicate_bytes_reported),
            tcpi_reord_seen: info.reordering_seen,
            tcpi_rcv_ooopack: small(counters.out_of_order_segments),
            tcpi_snd_wnd: small(info.snd_wnd),
            tcpi_rcv_wnd: small(info.rcv_wnd),
            tcpi_total_rto: u16::try_from(counters.timeouts).unwrap_or(u16::MAX),
            tcpi_received_ce: info.ecn.map_or(0, |ecn| small(ecn.marked_segments)),
            ..accurate_ecn(info)
        }
    }
}
