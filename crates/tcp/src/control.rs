//! The send engine: how much may be in flight, what is sent again, and when.
//!
//! [`Control`] owns everything that decides this: the scoreboard, loss recovery, the window with its controller, slow start, validation, reduction and
//! undo, the retransmission timer and the other deadlines, pacing, round-trip times and the delivery rate. Its fields are private. So every line that
//! can change the congestion window is in this directory.
//!
//! The connection tells it what happened, and asks it:
//!
//! | call | when |
//! |---|---|
//! | [`acknowledge`](Control::acknowledge), [`sack`](Control::sack) | an acknowledgement is entered into the scoreboard |
//! | [`on_ack`](Control::on_ack) | it was entered: what follows from it |
//! | [`on_deadline`](Control::on_deadline), [`on_timeout`](Control::on_timeout) | a deadline has passed |
//! | [`before_send`](Control::before_send) | data may leave soon: everything that changes before it |
//! | [`room`](Control::room), [`next_retransmission`](Control::next_retransmission), [`quantum`](Control::quantum), [`release_at`](Control::release_at) | what may leave, how much and when; they change nothing |
//! | [`on_sent`](Control::on_sent), [`on_sent_again`](Control::on_sent_again), [`on_probed`](Control::on_probed) | it has left |
//! | [`exchange`](Control::exchange) | the program wants other units |
//!
//! It knows the sequence space of data and the FIN, and nothing of segments, the peer's window, buffers, or extensions. What the layers of a connection
//! ask for arrives as a [`Clamp`]. The answer to an event is an [`Outcome`]: what the connection has to count and to tell others.

mod ack;
mod board;
mod clamp;
mod deadlines;
mod exchange;
mod growth;
mod reads;
mod reductions;
mod reordering;
mod transmission;

pub(crate) use ack::{AckInput, MarkBounds};
pub(crate) use clamp::Clamp;
pub(crate) use deadlines::Expired;
pub(crate) use exchange::Unit;

use crate::congestion::{CongestionControl, CongestionEvent, Controller, Window};
use crate::pacing::RatePacing;
use crate::pos::Pos;
use crate::profile::Profile;
use crate::recovery::{Phase, Recovery, RecoveryUnit};
use crate::reordering::Reordering;
use crate::rto::{RetransmissionTimer, TimerUnit};
use crate::sent::SentList;
use crate::slow_start::SlowStartUnit;
use crate::time::{Duration, Instant};
use crate::validation::ValidationUnit;
use alloc::boxed::Box;
use alloc::sync::Arc;
use deadlines::Deadlines;
use reductions::Episode;
use reordering::Overtaken;

/// The send engine of one connection.
#[derive(Debug)]
pub(crate) struct Control {
    /// The choices of units, and their parameters.
    profile: Arc<Profile>,
    /// SACK is agreed.
    sack: bool,
    /// Both ends agree that data may be given up.
    partial: bool,
    /// The peer has our SYN: the scoreboard begins with data.
    begun: bool,
    sent: SentList,
    window: Window,
    controller: Controller,
    slow_start: SlowStartUnit,
    validation: ValidationUnit,
    recovery: RecoveryUnit,
    /// The last reduction of the window, while it lasts or may turn out to have been for nothing.
    episode: Option<Box<Episode>>,
    /// The reordering that duplicates have shown, if the profile needs it and there was one.
    reordering: Option<Box<Reordering>>,
    /// The reordering that was seen, for observers.
    overtaken: Overtaken,
    timer: TimerUnit,
    deadlines: Deadlines,
    pacing: Option<RatePacing>,
    rtts: RoundTrips,
    /// Bytes believed lost so far.
    lost: u64,
    /// Bytes that duplicates have reported as delivered since the last advance, without SACK.
    duplicates_delivered: u64,
    /// Only data below this position counts towards growing the window: it was sent while cwnd was the limit.
    limited_upto: Pos,
    /// SND.NXT at the beginning of the present round trip.
    round_end: Pos,
    /// The recovery unit needs a probe segment.
    probe_due: bool,
    /// The retransmission timer has expired, and the retransmission has not left yet: pacing may hold it.
    repeat_due: bool,
    /// Recovery repairs a probe of the path MTU, and nothing else is known to be lost.
    repairs_probe: bool,
}

/// The least and the last round-trip time; [`Duration::MAX`] before there is one.
#[derive(Clone, Copy, Debug)]
struct RoundTrips {
    min: Duration,
    last: Duration,
}

/// What an event means to the rest of the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Bytes newly believed lost.
    pub(crate) lost: u64,
    /// Fast recovery has begun.
    pub(crate) recovers: bool,
    /// A reduction was taken back as spurious.
    pub(crate) undone: bool,
    /// The window was reduced for a loss or a mark, which a receiver with ECN is told of (CWR).
    pub(crate) reduced: bool,
    /// It was reduced for a mark.
    pub(crate) answered_mark: bool,
    /// The probe of the path MTU is lost.
    pub(crate) probe_lost: bool,
    /// Bytes given up.
    pub(crate) given_up: u64,
    /// A round trip has ended.
    pub(crate) round_start: bool,
}

impl Control {
    /// The engine of a connection that has sent nothing.
    pub(crate) fn new(profile: Arc<Profile>, mss: u32, now: Instant) -> Self {
        Control {
            sack: false,
            partial: false,
            begun: false,
            sent: SentList::new(Pos::FIRST_DATA, now),
            window: Window::of(profile.initial_window, mss),
            controller: profile.congestion.controller(),
            slow_start: profile.slow_start(),
            validation: profile.validation(),
            recovery: profile.recovery(false, false),
            episode: None,
            reordering: None,
            overtaken: Overtaken::default(),
            timer: TimerUnit::new(&profile.timer),
            deadlines: Deadlines::default(),
            pacing: profile.pacing(),
            rtts: RoundTrips { min: Duration::MAX, last: Duration::MAX },
            lost: 0,
            duplicates_delivered: 0,
            limited_upto: Pos::INITIAL,
            round_end: Pos::FIRST_DATA,
            probe_due: false,
            repeat_due: false,
            repairs_probe: false,
            profile,
        }
    }

    /// The options and the segment size are agreed. Our SYN left at `syn_sent_at`; `repeated` says that it had to be repeated because it was lost.
    pub(crate) fn agree(
        &mut self,
        sack: bool,
        partial: bool,
        mss: u32,
        syn_sent_at: Instant,
        repeated: bool,
    ) {
        (self.sack, self.partial) = (sack, partial);
        self.recovery = self.profile.recovery(sack, partial);
        self.window = Window::of(self.profile.initial_window, mss);
        self.controller.on_start(&mut self.window, syn_sent_at);
        if repeated {
            self.controller.on_event(&mut self.window, CongestionEvent::HandshakeLoss, syn_sent_at);
        }
    }

    /// The handshake is complete. `rtt` is its round-trip time, if one can be told; or else `lost` says whether the SYN was.
    pub(crate) fn begin(&mut self, now: Instant, rtt: Option<Duration>, lost: bool) {
        self.begun = true;
        match rtt {
            Some(rtt) => self.sample_rtt(rtt, now),
            None if lost => self.timer.on_handshake_loss(),
            None => {}
        }
    }

    fn sample_rtt(&mut self, rtt: Duration, now: Instant) {
        self.timer.on_sample(rtt, now);
        self.rtts.last = rtt;
        self.rtts.min = self.rtts.min.min(rtt);
    }

    /// The segment size is another from now on. With `again`, everything unacknowledged counts as lost and is cut anew. The window is not reduced:
    /// this is not congestion (RFC 1191 section 6.5).
    pub(crate) fn resize_segments(&mut self, mss: u32, again: bool) {
        self.window.mss = mss;
        // One segment may always leave.
        self.window.cwnd = self.window.cwnd.max(u64::from(mss));
        if again && self.sent.outstanding() > 0 {
            if self.phase() == Phase::Loss {
                self.sent.mark_all_lost();
            } else {
                self.recovery.on_timeout(&mut self.sent);
                self.sent.forget_lost();
            }
        }
    }

    /// Gives memory back after a while without traffic.
    pub(crate) fn release(&mut self) {
        self.sent.release_if_empty();
        self.episode = None;
        if let Some(reordering) = &mut self.reordering {
            reordering.release();
        }
    }
}
