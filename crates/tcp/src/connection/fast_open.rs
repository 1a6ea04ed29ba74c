//! TCP Fast Open (RFC 7413) on the connection: data in the first SYN, and a connection that begins with it.
//!
//! Data in a client's SYN stays in the send buffer and counts as unsent until the SYN-ACK arrives. Data that it acknowledges then counts as sent. The
//! rest leaves like any new data, at once and without a congestion response (RFC 7413 section 4.2.2). So a repeated SYN is an ordinary one, without
//! data and without the option.
//!
//! A server's connection that began with data is in SYN-RECEIVED like any passive one. But it can be read and written before the handshake is
//! complete, and written data leaves within the initial window (RFC 7413 section 4.2.2).

use super::timers::Timer;
use super::{Connection, ConnectionError, State};
use crate::pos::Pos;
use crate::segment::Segment;
use crate::time::Instant;
use alloc::boxed::Box;
use core::ops::Range;
use transom_wire::{FastOpen, Flags, Options, TcpHeader};

/// The reason why Fast Open was requested but not effective (Linux' `tcpi_fastopen_client_fail`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum FastOpenFailure {
    /// It was effective, or not requested.
    #[default]
    None,
    /// No cookie of the server was known. The client has requested one.
    NoCookie,
    /// The SYN-ACK did not acknowledge the data.
    DataNotAcked,
    /// The SYN had to be repeated, and the data was not acknowledged.
    SynRetransmitted,
}

/// The state of Fast Open on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FastOpenInfo {
    /// Data in the SYN was acknowledged: ours by the peer's SYN-ACK, or the peer's by ours.
    pub syn_data_acked: bool,
    /// Why a client's data was not, if it was not.
    pub failure: FastOpenFailure,
}

/// The result of Fast Open for a client, after the handshake or in its place. The host keeps it for later connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenOutcome {
    /// The cookie in the SYN-ACK, if there was one.
    pub cookie: Option<FastOpen>,
    /// The segment size that the server announced; 0 if it has not answered.
    pub mss: u16,
    /// We had requested a cookie.
    pub requested: bool,
    /// The SYN with the option was not answered, or the network answered it with an error.
    pub lost: bool,
    /// The server answered the SYN, but took none of its data and had no other cookie.
    pub refused: bool,
}

/// How far a connection is opened, besides its [state](Connection::state).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpeningState {
    /// It began with a peer's SYN and its cookie (RFC 7413), and the handshake may not be complete.
    pub is_fast: bool,
    /// It began so and the handshake is not complete: it is used all the same.
    pub is_early: bool,
    /// The peer has acknowledged our SYN.
    pub is_past_syn: bool,
    /// The SYN waits for data to go with.
    pub holds_syn: bool,
    /// The peer has answered our SYN, and the answer is held ([`Setting::HoldAnswer`](crate::connection::Setting::HoldAnswer)).
    pub is_answered: bool,
}

/// How a connection opens fast.
#[derive(Debug)]
pub(super) struct FastOpenState {
    /// It began with the peer's SYN and its cookie.
    server: bool,
    /// The option of our first SYN, or of every SYN-ACK.
    option: Option<FastOpen>,
    /// The largest segment, options included, that the server took the last time.
    mss: u16,
    /// The SYN waits for data to go with.
    held: bool,
    /// Up to here data left in the SYN.
    sent_upto: Pos,
    /// The network has reported an error about the SYN with the option.
    reported: bool,
    info: FastOpenInfo,
    outcome: Option<FastOpenOutcome>,
}

impl FastOpenState {
    fn new(server: bool, option: Option<FastOpen>) -> Box<Self> {
        Box::new(FastOpenState {
            server,
            option,
            mss: 0,
            held: false,
            sent_upto: Pos::FIRST_DATA,
            reported: false,
            info: FastOpenInfo::default(),
            outcome: None,
        })
    }
}

impl Connection {
    /// Has the first SYN carry `option`: the server's cookie, and with it what is written by then, or the request for a cookie. `mss` is the segment
    /// size that the server announced when it gave the cookie. With `held`, a SYN with a cookie waits until something is written, read or shut down.
    ///
    /// To be called between [`Connection::connect`] and the first segment; later it does nothing.
    pub fn open_fast(&mut self, option: FastOpen, mss: u16, held: bool) {
        if self.state != State::SynSent || self.snd.syn.transmissions > 0 {
            return;
        }
        let mut state = FastOpenState::new(false, Some(option));
        state.mss = mss;
        if option.is_request() {
            state.info.failure = FastOpenFailure::NoCookie;
        } else {
            state.held = held;
        }
        self.handshake.fast = Some(state);
    }

    /// A connection made [from a half-open one](Connection::from_half_open) begins at once if its SYN had a valid cookie. Its data can be read and
    /// answered before the handshake is complete. Data is accepted up to the first window; a FIN is not, and the peer sends it again. The SYN-ACK
    /// leaves with the next [`Connection::poll_transmit`], with `cookie`, if there is one.
    pub fn begin_fast(&mut self, now: Instant, syn: &Segment<'_>, cookie: Option<FastOpen>) {
        if self.state != State::SynReceived || self.owner.active {
            return;
        }
        self.handshake.fast = Some(FastOpenState::new(true, cookie));
        let header = TcpHeader { flags: Flags::ACK, ..*syn.header };
        let data = Segment { header: &header, ..*syn };
        self.counters.bytes_received += data.payload.len() as u64;
        self.on_text(now, &data, Pos::FIRST_DATA);
        if let Some(state) = &mut self.handshake.fast {
            state.info.syn_data_acked = self.rcv.next() > Pos::FIRST_DATA;
        }
        // The SYN-ACK acknowledges it.
        self.timers.clear(Timer::Ack);
        self.snd.syn.due = true;
    }

    /// Whether the connection began with a peer's SYN and its cookie, and the handshake may not be complete.
    pub(super) fn is_opened_fast(&self) -> bool {
        self.handshake.fast.as_ref().is_some_and(|state| state.server)
    }

    /// Whether it began so and the handshake is not complete: it is used all the same.
    pub(super) fn is_early(&self) -> bool {
        self.state == State::SynReceived && self.is_opened_fast()
    }

    /// How far the opening is.
    #[inline]
    pub fn opening(&self) -> OpeningState {
        OpeningState {
            is_fast: self.is_opened_fast(),
            is_early: self.is_early(),
            is_past_syn: self.control.has_begun(),
            holds_syn: self.holds_syn(),
            is_answered: self.is_answered(),
        }
    }

    /// Whether the SYN waits for data to go with.
    pub(super) fn holds_syn(&self) -> bool {
        let held = self.handshake.fast.as_ref().is_some_and(|state| state.held);
        held && self.state == State::SynSent && self.snd.buffer.is_empty() && !self.snd.fin_queued
    }

    /// Releases a SYN that [waits for data](OpeningState::holds_syn), with the present data.
    pub(super) fn release_syn(&mut self) {
        if let Some(state) = &mut self.handshake.fast {
            state.held = false;
        }
    }

    /// The client's result of Fast Open, once.
    pub fn take_fast_open_outcome(&mut self) -> Option<FastOpenOutcome> {
        self.handshake.fast.as_mut()?.outcome.take()
    }

    /// The state of Fast Open.
    pub(super) fn fast_open_info(&self) -> FastOpenInfo {
        self.handshake.fast.as_ref().map_or_else(FastOpenInfo::default, |state| state.info)
    }

    /// Up to where data left in the SYN.
    pub(super) fn syn_data_end(&self) -> Pos {
        self.handshake.fast.as_ref().map_or(Pos::INITIAL, |state| state.sent_upto)
    }

    /// The Fast Open option and the range of data for our SYN besides the other `options`. Only the first SYN has them (RFC 7413 section 4.2.2), and
    /// only if the option fits.
    pub(super) fn fast_syn(&mut self, options: Options) -> (Options, Range<Pos>) {
        const MOST: usize = 40;
        let first = Pos::FIRST_DATA;
        let option = match &self.handshake.fast {
            Some(state) if self.snd.syn.transmissions == 1 => state.option,
            _ => None,
        };
        let with = Options { fast_open: option, ..options };
        let Some(cookie) = option.filter(|_| with.encoded_len() <= MOST) else {
            if let Some(state) = &mut self.handshake.fast
                && self.snd.syn.transmissions == 1
            {
                state.option = None;
            }
            return (options, first..first);
        };
        let mut upto = first;
        if let Some(state) = self.handshake.fast.as_ref().filter(|_| !cookie.is_request()) {
            // What the server takes at a time (RFC 7413 section 4.1.3), and no more than the path is known to carry.
            let most = u32::from(state.mss).min(self.path.mss());
            let room = most.saturating_sub(with.encoded_len() as u32);
            let len = self.snd.buffer.end().since(first).min(self.record_left(first));
            upto = first + len.min(u64::from(room));
        }
        if let Some(state) = &mut self.handshake.fast {
            state.sent_upto = upto;
        }
        (with, first..upto)
    }

    /// The option of our SYN-ACK.
    pub(super) fn fast_syn_ack(&self) -> Option<FastOpen> {
        self.handshake.fast.as_ref()?.option.filter(|_| self.snd.syn.transmissions <= 1)
    }

    /// The peer acknowledges our SYN up to `ack`. Enters the acknowledged data of the SYN; `options` are the peer's.
    pub(super) fn on_syn_acked(&mut self, now: Instant, ack: Pos, options: &Options) {
        let Some(state) = self.handshake.fast.as_mut().filter(|state| !state.server) else {
            return;
        };
        let offered = state.option.take();
        let had_data = state.sent_upto > Pos::FIRST_DATA;
        state.info.syn_data_acked = had_data && ack >= state.sent_upto;
        if had_data && ack < state.sent_upto {
            state.info.failure = match self.snd.syn.transmissions {
                1 => FastOpenFailure::DataNotAcked,
                _ => FastOpenFailure::SynRetransmitted,
            };
        }
        let cookie = options.fast_open.filter(|cookie| !cookie.is_request());
        // An answer that only the SYN with the option can have takes back what was suspected.
        let answered = cookie.is_some() || (had_data && ack > Pos::FIRST_DATA);
        // If several SYNs have left, an ordinary one may have been answered.
        let untaken = had_data && ack <= Pos::FIRST_DATA && self.snd.syn.transmissions == 1;
        state.outcome = offered.map(|offered| FastOpenOutcome {
            cookie,
            mss: u16::try_from(self.agreed.peer_mss).unwrap_or(u16::MAX),
            requested: offered.is_request(),
            lost: !answered && (self.snd.retransmits > 0 || state.reported),
            // Another cookie means that ours was too old, and the next SYN has a good one.
            refused: untaken && cookie.is_none_or(|cookie| cookie == offered),
        });
        if ack > Pos::FIRST_DATA && ack <= state.sent_upto {
            // The round trip was that of the SYN.
            let had = self.control.board().delivery().delivered();
            self.control.on_syn_data(ack, self.snd.syn.sent_at, now);
            let new = self.control.board().delivery().delivered() - had;
            self.notices.acknowledged(false, false, new);
            self.snd.buffer.acknowledge(ack);
            self.forget_records(ack);
        }
    }

    /// The network reports an error about our SYN. It is about the option or the data if no other SYN has left.
    pub(super) fn on_icmp_about_syn(&mut self) {
        if let Some(state) = self.handshake.fast.as_mut().filter(|state| !state.server) {
            state.reported |= state.option.is_some() && self.snd.syn.transmissions == 1;
        }
    }

    /// The attempt to connect ends without an answer to our SYN. RFC 7413 section 4.1.3.1 counts a timeout and an ICMP error as negative responses. A
    /// program that gives up after the first repetition has waited for such a timeout too.
    pub(super) fn on_syn_unanswered(&mut self, error: Option<ConnectionError>) {
        let timed_out =
            matches!(error, Some(ConnectionError::TimedOut | ConnectionError::Unreachable(_)));
        let lost = self.snd.retransmits > 0 || timed_out;
        let Some(state) = self.handshake.fast.as_mut().filter(|state| !state.server) else {
            return;
        };
        if self.control.has_begun() || self.snd.syn.transmissions == 0 || !(lost || state.reported)
        {
            return;
        }
        state.outcome = state.option.take().map(|offered| FastOpenOutcome {
            cookie: None,
            mss: 0,
            requested: offered.is_request(),
            lost: true,
            refused: false,
        });
    }

    /// The SYN of a connection that began with data arrives again: our answer was lost, or the network duplicated it. Its data is ignored. Returns
    /// whether it was such a SYN.
    pub(super) fn on_repeated_syn(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        let header = segment.header;
        let same = self.rcv.space.to_wire(Pos::INITIAL) == header.seq;
        let plain = !header.flags.intersects(Flags::ACK | Flags::RST);
        if !header.flags.contains(Flags::SYN) || !same || !plain || !self.is_early() {
            return false;
        }
        // As for a half-open connection: whoever has said both must not use ECN (RFC 3168 section 6.1.1).
        if self.agreed.accurate {
            self.on_repeated_accurate_syn(segment);
        } else if !header.flags.contains(Flags::ECE | Flags::CWR) {
            self.agreed.ecn = false;
            self.ecn = None;
        }
        self.snd.syn.due |= self.replies.limiter.allow(now);
        true
    }

    /// The window of a SYN-ACK after data was accepted: the rest of the announced window.
    pub(super) fn fast_window(&self) -> u16 {
        let left = self.rcv.edge.since(self.rcv.next());
        u16::try_from(left).unwrap_or(u16::MAX)
    }
}
