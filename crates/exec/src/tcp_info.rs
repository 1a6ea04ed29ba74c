//! `TCP_INFO`: `struct tcp_info` of `linux/tcp.h`, from the real connection. Fields that have no counterpart are zero.

use transom_net::Info;
use transom_tcp::connection::State as Phase;
use transom_tcp::recovery;
use transom_tcp::time::Duration;

use crate::socket::{Socket, State};

/// Its length in Linux 5.5 and later, up to `tcpi_snd_wnd`; programs take what they know of.
const LEN: usize = 232;
const CLOSED: u8 = 7;
const LISTENING: u8 = 10;

/// Fields are written at their offsets.
struct Fields([u8; LEN]);

impl Fields {
    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(place) = self.0.get_mut(at..at + N) {
            place.copy_from_slice(&bytes);
        }
    }

    fn byte(&mut self, at: usize, value: u8) {
        self.put(at, [value]);
    }

    fn word(&mut self, at: usize, value: u64) {
        self.put(at, u32::try_from(value).unwrap_or(u32::MAX).to_ne_bytes());
    }

    fn long(&mut self, at: usize, value: u64) {
        self.put(at, value.to_ne_bytes());
    }
}

/// What a socket shows.
pub(crate) fn of(socket: &Socket) -> Vec<u8> {
    let mut fields = Fields([0; LEN]);
    match (&socket.state, socket.info()) {
        (State::Listening(listening), _) => {
            fields.byte(0, LISTENING);
            fields.word(24, listening.queue.len() as u64);
            fields.word(28, listening.backlog as u64);
        }
        (_, Some(info)) => connection(&mut fields, &info),
        // Of a connection of the kernel's only that it is one.
        (State::Connected(_), None) => fields.byte(0, 1),
        (State::Connecting(_), None) => fields.byte(0, 2),
        (State::Fresh | State::Bound(_), None) => fields.byte(0, CLOSED),
    }
    fields.0.to_vec()
}

fn state(state: Phase) -> u8 {
    match state {
        Phase::Established => 1,
        Phase::SynSent => 2,
        Phase::SynReceived => 3,
        Phase::FinWait1 => 4,
        Phase::FinWait2 => 5,
        Phase::CloseWait => 8,
        Phase::LastAck => 9,
        Phase::Closing => 11,
        Phase::Closed | Phase::TimeWait => CLOSED,
    }
}

fn connection(fields: &mut Fields, info: &Info) {
    let mss = u64::from(info.mss.max(1));
    let segments = |bytes: u64| bytes.div_ceil(mss);
    let micros = |span: Option<Duration>| span.unwrap_or(Duration::ZERO).as_micros();
    let millis = |span: Option<Duration>| span.unwrap_or(Duration::ZERO).as_millis();
    let byte = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
    let counters = &info.counters;
    let sent = info.snd_nxt.since(info.snd_una).min(info.unacknowledged as u64);
    fields.byte(0, state(info.state));
    fields.byte(
        1,
        match info.phase {
            _ if info.reduced_for_mark => 2,
            recovery::Phase::Open => 0,
            recovery::Phase::Disorder => 1,
            recovery::Phase::Recovery => 3,
            recovery::Phase::Loss => 4,
        },
    );
    fields.byte(2, byte(info.retransmits));
    fields.byte(4, byte(info.backoffs));
    let options = [(info.timestamps, 1), (info.sack, 2), (info.window_scale.is_some(), 4)];
    fields.byte(5, options.iter().map(|(agreed, bit)| if *agreed { *bit } else { 0 }).sum());
    fields.byte(6, info.window_scale.map_or(0, |(theirs, ours)| theirs | ours << 4));
    fields.byte(7, info.delivery_rate_app_limited.into());
    fields.word(8, info.rto.as_micros());
    fields.word(16, info.mss.into());
    fields.word(20, info.advertised_mss.into());
    fields.word(24, segments(info.snd_nxt.since(info.snd_una)));
    fields.word(28, segments(info.sacked));
    fields.word(32, segments(info.lost));
    fields.word(36, segments(info.retransmitted));
    fields.word(44, millis(info.since_data_sent));
    fields.word(52, millis(info.since_data_received));
    fields.word(56, millis(Some(info.since_heard)));
    fields.word(60, info.path_mtu.into());
    fields.word(64, info.rcv_buffer as u64);
    fields.word(68, micros(info.srtt));
    fields.word(72, micros(info.rttvar));
    fields.word(76, if info.ssthresh == u64::MAX { 0x7fff_ffff } else { info.ssthresh / mss });
    fields.word(80, (info.cwnd / mss).max(1));
    fields.word(84, info.advertised_mss.into());
    fields.word(88, info.reordering.into());
    fields.word(92, micros(info.rcv_rtt));
    fields.word(96, info.rcv_buffer as u64);
    fields.word(100, counters.retransmitted_segments);
    fields.long(120, info.snd_una.stream_offset());
    fields.long(128, counters.bytes_accepted);
    fields.word(136, counters.segments_sent);
    fields.word(140, counters.segments_received);
    fields.word(144, info.unacknowledged as u64 - sent);
    fields.word(148, micros(info.min_rtt));
    fields.long(160, info.delivery_rate.unwrap_or(0));
    fields.long(168, info.busy.as_micros());
    fields.long(176, info.limited_peer_window.as_micros());
    fields.word(192, segments(info.delivered));
    fields.long(200, counters.bytes_sent);
    fields.long(208, counters.retransmitted_bytes);
    fields.word(216, segments(counters.duplicate_bytes_reported));
    fields.word(220, info.reordering_seen.into());
    fields.word(224, counters.out_of_order_segments);
    fields.word(228, info.snd_wnd);
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    /// The offsets above, where the C library has the fields.
    #[test]
    fn fields_lie_where_the_kernel_has_them() {
        type Info = libc::tcp_info;
        let places = [
            (offset_of!(Info, tcpi_rto), 8),
            (offset_of!(Info, tcpi_snd_mss), 16),
            (offset_of!(Info, tcpi_unacked), 24),
            (offset_of!(Info, tcpi_retrans), 36),
            (offset_of!(Info, tcpi_last_data_sent), 44),
            (offset_of!(Info, tcpi_last_data_recv), 52),
            (offset_of!(Info, tcpi_last_ack_recv), 56),
            (offset_of!(Info, tcpi_pmtu), 60),
            (offset_of!(Info, tcpi_rcv_ssthresh), 64),
            (offset_of!(Info, tcpi_rtt), 68),
            (offset_of!(Info, tcpi_rttvar), 72),
            (offset_of!(Info, tcpi_snd_ssthresh), 76),
            (offset_of!(Info, tcpi_snd_cwnd), 80),
            (offset_of!(Info, tcpi_advmss), 84),
            (offset_of!(Info, tcpi_reordering), 88),
            (offset_of!(Info, tcpi_rcv_space), 96),
            (offset_of!(Info, tcpi_total_retrans), 100),
        ];
        for (place, expected) in places {
            assert_eq!(place, expected);
        }
    }
}
