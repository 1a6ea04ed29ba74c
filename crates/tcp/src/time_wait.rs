//! TIME-WAIT without the connection: the state to answer old segments for two segment lifetimes.
//!
//! A busy host has many of these, so one is small and owns no memory. Resets do not shorten it (RFC 1337). A new
//! incarnation of the connection may replace it when it can be distinguished from the old one (RFC 6191, RFC 9293
//! section 3.10.7.4).

use crate::connection::{Connection, Endpoint, State};
use crate::options::TimestampState;
use crate::segment::Segment;
use crate::time::{Duration, Instant};
use transom_wire::{Flags, Options, Seq, TcpHeader};

/// A connection in TIME-WAIT.
#[derive(Clone, Copy, Debug)]
pub struct TimeWait {
    pub(crate) endpoint: Endpoint,
    /// The next sequence number the old incarnation would have used.
    pub snd_nxt: Seq,
    pub(crate) rcv_nxt: Seq,
    pub(crate) window: u16,
    /// The field ACE of accurate ECN, if it is in use.
    pub(crate) field: Flags,
    pub(crate) timestamps: Option<TimestampState>,
    pub(crate) lasts: Duration,
    /// When it ends.
    pub expires: Instant,
    pub(crate) last_reply: Instant,
}

/// The action after a segment arrived in TIME-WAIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeWaitAction {
    /// Nothing.
    Ignore,
    /// Send this acknowledgement.
    Ack(TcpHeader),
    /// The segment is the SYN of a new incarnation: forget this one and treat it as for a port in LISTEN. If it is
    /// accepted, the new initial sequence number must lie beyond this one.
    Reopen(Seq),
}

impl TimeWait {
    /// Takes over from `connection`, which must be in TIME-WAIT.
    pub fn new(connection: &Connection, now: Instant) -> Option<Self> {
        (connection.state() == State::TimeWait).then(|| connection.time_wait(now))
    }

    /// An active open may reuse the same addresses and ports once its timestamps exceed the old ones, a second later
    /// (RFC 6191 section 2 applied to our own side).
    pub fn may_be_reused(&self, now: Instant) -> bool {
        let idle = (self.expires - self.lasts).since(Instant::ZERO);
        self.timestamps.is_some() && now.since(Instant::ZERO + idle) > Duration::from_secs(1)
    }

    fn ack(&mut self, now: Instant) -> TimeWaitAction {
        self.last_reply = now;
        TimeWaitAction::Ack(TcpHeader {
            src_port: self.endpoint.local_port,
            dst_port: self.endpoint.remote_port,
            seq: self.snd_nxt,
            ack: self.rcv_nxt,
            flags: Flags::ACK | self.field,
            window: self.window,
            options: Options {
                timestamps: self.timestamps.map(|state| state.option(now)),
                ..Options::default()
            },
            ..TcpHeader::default()
        })
    }

    /// An answer to something that may be forged: two per second at most.
    fn limited_ack(&mut self, now: Instant) -> TimeWaitAction {
        if self.last_reply != Instant::ZERO
            && now.since(self.last_reply) < Duration::from_millis(500)
        {
            return TimeWaitAction::Ignore;
        }
        self.ack(now)
    }

    /// A segment arrived.
    pub fn on_segment(&mut self, now: Instant, segment: &Segment<'_>) -> TimeWaitAction {
        let header = segment.header;
        let flags = header.flags;
        if flags.contains(Flags::RST) {
            return TimeWaitAction::Ignore;
        }
        let stamps = header.options.timestamps;
        let old = match (&self.timestamps, stamps) {
            (Some(state), Some(stamps)) => state.is_old(stamps.value, now),
            _ => false,
        };
        if flags.contains(Flags::SYN | Flags::ACK) {
            // It opens nothing: a challenge (RFC 5961 section 4.2).
            return self.limited_ack(now);
        }
        if flags.contains(Flags::SYN) {
            // RFC 6191 section 2: a later timestamp tells the new incarnation, else a higher sequence number
            // [SHLD-4] [MAY-2].
            let later_time = match (&self.timestamps, stamps) {
                (Some(state), Some(stamps)) => {
                    (stamps.value.wrapping_sub(state.recent()) as i32).cmp(&0)
                }
                _ => core::cmp::Ordering::Equal,
            };
            let later_seq = header.seq.after(self.rcv_nxt);
            return match later_time {
                core::cmp::Ordering::Greater => TimeWaitAction::Reopen(self.snd_nxt),
                core::cmp::Ordering::Equal if later_seq => TimeWaitAction::Reopen(self.snd_nxt),
                _ => self.limited_ack(now),
            };
        }
        if old {
            return self.limited_ack(now);
        }
        if !flags.contains(Flags::ACK) {
            // RFC 9293 section 3.10.7.4: the first check answers what is outside of the window, the fifth drops the rest.
            let ahead = header.seq.distance_from(self.rcv_nxt);
            let inside = ahead >= 0 && i64::from(ahead) <= i64::from(self.window);
            return if inside { TimeWaitAction::Ignore } else { self.limited_ack(now) };
        }
        let end = header.seq + segment.sequence_len() as u32;
        if flags.contains(Flags::FIN) && end == self.rcv_nxt {
            // The peer did not get our last acknowledgement: start over [MUST-13].
            if let (Some(state), Some(stamps)) = (&mut self.timestamps, stamps) {
                state.update(stamps.value, now);
            }
            self.expires = now + self.lasts;
            return self.ack(now);
        }
        // The peer's last acknowledgement stands at RCV.NXT and has nothing behind it. All else is old or forged, keep-alives included.
        if header.seq == self.rcv_nxt && end == self.rcv_nxt {
            return TimeWaitAction::Ignore;
        }
        self.limited_ack(now)
    }
}
