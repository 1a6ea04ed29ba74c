//! The state of a connection that Linux runs: its `struct tcp_info`.
//!
//! The structure has grown with the kernel, always at its end. It is read field by field from its bytes, so that what an older kernel does not tell is
//! [untold](super::Untold). Linux counts windows and what is in flight in segments. They become bytes by its maximum segment size, as in its own
//! comparisons.

use super::{ConnectionState, Untold};
use crate::connection::State;
use crate::pos::Pos;
use crate::time::Duration;

/// The kernel's "no threshold yet" (`TCP_INFINITE_SSTHRESH`) is a number of segments that nobody has in flight.
const INFINITE: u64 = 0x7fff_ffff;

/// The bytes of a `struct tcp_info`.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn word(self, at: usize) -> Option<u64> {
        Some(u32::from_ne_bytes(*self.0.get(at..)?.first_chunk()?).into())
    }

    fn half(self, at: usize) -> Option<u64> {
        Some(u16::from_ne_bytes(*self.0.get(at..)?.first_chunk()?).into())
    }

    fn long(self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    fn micros(self, at: usize) -> Option<Duration> {
        self.word(at).map(Duration::from_micros)
    }

    fn long_micros(self, at: usize) -> Duration {
        self.long(at).map_or(Duration::ZERO, Duration::from_micros)
    }
}

impl State {
    /// The state of this number in linux/tcp_states.h; nothing for a listener, and for a state of a newer kernel.
    pub const fn of_linux(number: u8) -> Option<State> {
        Some(match number {
            1 => State::Established,
            2 => State::SynSent,
            // TCP_NEW_SYN_RECV is the same of a request that is no socket yet.
            3 | 12 => State::SynReceived,
            4 => State::FinWait1,
            5 => State::FinWait2,
            6 => State::TimeWait,
            7 => State::Closed,
            8 => State::CloseWait,
            9 => State::LastAck,
            11 => State::Closing,
            _ => return None,
        })
    }

    /// The number of this state in linux/tcp_states.h.
    pub const fn to_linux(self) -> u8 {
        match self {
            State::Established => 1,
            State::SynSent => 2,
            State::SynReceived => 3,
            State::FinWait1 => 4,
            State::FinWait2 => 5,
            State::TimeWait => 6,
            State::Closed => 7,
            State::CloseWait => 8,
            State::LastAck => 9,
            State::Closing => 11,
        }
    }
}

impl ConnectionState {
    /// Reads a `struct tcp_info` of any length; nothing if it is shorter than the first version that was complete (Linux 2.6).
    pub fn of_tcp_info(bytes: &[u8]) -> Option<ConnectionState> {
        let from = Bytes(bytes);
        let mut state = ConnectionState::unknown();
        state.untold = Untold::PHASE | Untold::LIMIT | Untold::REASON;
        let mut told = |flag, value: Option<u64>| {
            state.untold.set(flag, value.is_none());
            value.unwrap_or(0)
        };
        let timeouts = told(Untold::TIMEOUTS, from.half(240));
        let bytes_sent = told(Untold::BYTES_SENT, from.long(200));
        (state.snd_wnd, state.rcv_wnd) =
            (told(Untold::SND_WND, from.word(228)), told(Untold::RCV_WND, from.word(232)));
        match State::of_linux(*bytes.first()?) {
            Some(known) => state.state = known,
            None => state.untold |= Untold::STATE,
        }
        let mss = from.word(16)?;
        state.mss = u32::try_from(mss).unwrap_or(u32::MAX);
        let [unacked, sacked, lost, again] =
            [from.word(24)?, from.word(28)?, from.word(32)?, from.word(36)?];
        // RFC 6675's pipe: what was selectively acknowledged or is held for lost is not in the network, what was sent again is.
        let in_flight = (unacked + again).saturating_sub(sacked + lost);
        (state.outstanding, state.in_flight) = (unacked * mss, in_flight * mss);
        (state.sacked, state.lost, state.retransmitted) = (sacked * mss, lost * mss, again * mss);
        (state.rto, state.effective_rto) = (from.micros(8)?, from.micros(8)?);
        state.srtt = from.micros(68).filter(|srtt| !srtt.is_zero());
        state.cwnd = from.word(80)? * mss;
        let threshold = from.word(76)?;
        state.ssthresh = if threshold < INFINITE { threshold * mss } else { u64::MAX };
        // All ones until there is a sample.
        let least = from.word(148).filter(|&micros| micros != u64::from(u32::MAX));
        state.min_rtt = least.map(Duration::from_micros);
        state.snd_una = Pos::FIRST_DATA + from.long(120).unwrap_or(0);
        state.snd_nxt = state.snd_una + state.outstanding;
        state.unsent = from.word(144).unwrap_or(0);
        state.delivery_rate = from.long(160).filter(|&rate| rate > 0);
        state.busy = from.long_micros(168);
        state.limited_peer_window = from.long_micros(176);
        state.limited_send_buffer = from.long_micros(184);
        let counters = &mut state.counters;
        counters.retransmitted_segments = from.word(100)?;
        counters.segments_sent = from.word(136).unwrap_or(0);
        counters.bytes_accepted = from.long(128).unwrap_or(0);
        (counters.bytes_sent, counters.timeouts) = (bytes_sent, timeouts);
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

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
        bytes[120..128].copy_from_slice(&9_000u64.to_ne_bytes()); // tcpi_bytes_acked
        bytes[160..168].copy_from_slice(&250_000u64.to_ne_bytes()); // tcpi_delivery_rate
        bytes[168..176].copy_from_slice(&9_000_000u64.to_ne_bytes()); // tcpi_busy_time
        bytes[176..184].copy_from_slice(&2_000_000u64.to_ne_bytes()); // tcpi_rwnd_limited
        bytes[184..192].copy_from_slice(&1_000_000u64.to_ne_bytes()); // tcpi_sndbuf_limited
        bytes[200..208].copy_from_slice(&5_000_000_000u64.to_ne_bytes()); // tcpi_bytes_sent
        bytes[240..242].copy_from_slice(&3u16.to_ne_bytes()); // tcpi_total_rto
        let state = ConnectionState::of_tcp_info(&bytes).unwrap();
        assert_eq!((state.state, state.rto), (State::Established, Duration::from_millis(204)));
        assert_eq!((state.cwnd, state.ssthresh), (20 * 1448, u64::MAX));
        // RFC 6675: 10 - 3 - 2 + 1.
        assert_eq!((state.outstanding, state.in_flight), (10 * 1448, 6 * 1448));
        assert_eq!(state.srtt, Some(Duration::from_millis(40)));
        assert_eq!(state.min_rtt, Some(Duration::from_millis(39)));
        assert_eq!((state.counters.bytes_sent, state.counters.timeouts), (5_000_000_000, 3));
        assert_eq!((state.lost, state.unsent), (2 * 1448, 700));
        assert_eq!((state.snd_una.stream_offset(), state.delivery_rate), (9_000, Some(250_000)));
        let spent = (state.busy, state.limited_peer_window, state.limited_send_buffer);
        let seconds = Duration::from_secs;
        assert_eq!(spent, (seconds(9), seconds(2), seconds(1)));
        assert_eq!((state.snd_wnd, state.rcv_wnd), (65_000, 32_000));
        assert_eq!(state.untold, Untold::PHASE | Untold::LIMIT | Untold::REASON);
        // An older kernel, a state of a newer one, and bytes that are none.
        let older = ConnectionState::of_tcp_info(&bytes[..104]).unwrap();
        assert_eq!((older.counters.retransmitted_segments, older.min_rtt), (4, None));
        let told = Untold::all() - Untold::STATE;
        assert_eq!(older.untold, told);
        bytes[0] = 77;
        assert!(ConnectionState::of_tcp_info(&bytes).unwrap().untold.contains(Untold::STATE));
        let short: Vec<u8> = bytes[..50].to_vec();
        assert_eq!(ConnectionState::of_tcp_info(&short), None);
        assert_eq!(ConnectionState::of_tcp_info(&[]), None);
    }
}
