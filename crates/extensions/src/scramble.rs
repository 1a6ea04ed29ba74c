//! An extension that asks anything of all variables at every event: icTCP's experiment with random settings (section 5.2).
//!
//! Its requests are often absurd, so its flow is slow and may stall for long. The flow is never more aggressive than TCP. With probability one half
//! it leaves a variable alone. With one quarter the request is near TCP's own value, otherwise anywhere in the range of a window.
//!
//! With `outside` its requests are less absurd, so that a test sees more than a stalled flow. It requests values outside of the safe ranges, in the
//! direction in which TCP would send more or sooner. For half of the variables, at random, it requests TCP's own value times a factor up to
//! `outside`. It requests a timeout shorter by such a factor, a dupthresh of zero, an snd_una and an rcv_nxt up to that many segments lower, and an
//! snd_nxt higher. It holds variables and factors for `hold` smoothed round trips, while TCP's own values change, and then draws new ones.
//!
//! Differences from the paper, and choices that it leaves open:
//! - It sets values outside of the safe ranges; here they are anywhere, inside too, and of sizes that have nothing to do with a variable's unit.
//! - It sets variables one by one as well, and leaves out retransmits. Here all eleven take part, with pacing_rate, which is not in its table.
//! - The paper does not say when it sets them. Here that is at each acknowledgement, duplicate, loss and timeout, and when data arrives. The numbers
//!   follow from the seed. With `outside` they also follow from the round-trip time, so that flows of one seed do not make equal requests at the same
//!   time.
//! - The paper does not say how far outside of the ranges it sets them, in which direction, nor for how long. With `outside`, retransmits is left
//!   out: a value above its threshold would end the connection.
//! - A pacing_rate where TCP does not pace is one without limit. With `outside` what is multiplied is a window in a smoothed round trip.

use crate::catalogue::{Entry, choice};
use transom_tcp::extension::{Extension, Interval, Limits, Occasion, Variable, View, Wake};
use transom_tcp::time::{Duration, Instant};

/// Pseudo-random numbers: the 64-bit xorshift of Marsaglia (Journal of Statistical Software 8(14), 2003) with shifts 13, 7, 17. Nothing here needs
/// better ones, and the same seed gives the same run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stream(u64);

impl Default for Stream {
    fn default() -> Self {
        Stream(0x9E37_79B9_7F4A_7C15)
    }
}

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, which is above zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }
}

/// Asks anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scramble {
    stream: Stream,
    /// How many times as much as is safe, at most; none for anything.
    outside: Option<u64>,
    /// For how many round trips a draw from outside is held.
    hold: u64,
    /// For each variable, in the order of [`Variable::ALL`], the present factor in thousandths, if it is requested.
    held: [Option<u64>; Variable::ALL.len()],
    /// When that is drawn anew.
    until: Instant,
}

/// Thousandths of one.
const WHOLE: u64 = 1000;

/// How long a draw is held before there is a round-trip time.
const FIRST_HOLD: Duration = Duration::from_millis(100);

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "scramble",
    source: "icTCP (OSDI 2004), section 5.2",
    summary: "requests random values of all variables at every event; for tests",
    parameters: &[
        ("seed", "0: of the random requests"),
        ("outside", "none: with N, requests up to N times the safe bound instead of any value"),
        ("hold", "8 round trips for which it repeats the same requests"),
    ],
    read: |arguments| {
        let seed = arguments.number("seed")?.unwrap_or(0);
        let (outside, hold) = (arguments.number("outside")?, arguments.number("hold")?);
        if outside.is_some_and(|times| !(2..=1000).contains(&times)) {
            return Err(arguments.impossible("outside is from 2 to 1000"));
        }
        if hold.is_some_and(|hold| hold == 0 || outside.is_none()) {
            return Err(arguments.impossible("hold is 1 or more, and needs outside"));
        }
        let scramble = Scramble {
            // An xorshift never leaves zero.
            stream: Stream((Stream::default().0 ^ seed).max(1)),
            outside,
            hold: hold.unwrap_or(8),
            ..Scramble::default()
        };
        Ok(choice(arguments, scramble))
    },
};

impl Scramble {
    fn ask(&mut self, view: &View<'_>, limits: &mut Limits) {
        match self.outside {
            Some(times) => self.ask_outside(times, view, limits),
            None => self.ask_anything(view, limits),
        }
    }

    fn ask_outside(&mut self, times: u64, view: &View<'_>, limits: &mut Limits) {
        if view.now() >= self.until {
            let round = view.srtt().unwrap_or(FIRST_HOLD);
            self.stream.0 = (self.stream.0 ^ round.as_nanos()).max(1);
            let more = (times - 1) * WHOLE + 1;
            self.held = [(); Variable::ALL.len()]
                .map(|()| (self.stream.below(2) == 0).then(|| WHOLE + self.stream.below(more)));
            self.until = view.now() + round.times(self.hold);
        }
        for (variable, held) in Variable::ALL.into_iter().zip(self.held) {
            let asked = held.and_then(|far| outside(variable, far, view));
            match asked {
                Some(value) => limits.set(variable, Interval::exactly(value)),
                None => limits.clear(variable),
            }
        }
        limits.wake_at(self.until);
    }

    fn ask_anything(&mut self, view: &View<'_>, limits: &mut Limits) {
        let window = view.cwnd().saturating_mul(2);
        for variable in Variable::ALL {
            let own = view.ruling(variable).own;
            let near = |stream: &mut Stream| {
                let reach = own / 4 + 1;
                (own - reach.min(own)).saturating_add(stream.below(2 * reach))
            };
            match self.stream.below(4) {
                0 => limits.set(variable, Interval::exactly(near(&mut self.stream))),
                1 => limits.set(variable, Interval::exactly(self.stream.below(window))),
                _ => limits.clear(variable),
            }
        }
    }
}

/// A value outside of the safe range of `variable`, `far` thousandths from it; nothing of one that it leaves alone.
fn outside(variable: Variable, far: u64, view: &View<'_>) -> Option<u64> {
    let ruling = view.ruling(variable);
    let segments = far.saturating_mul(view.mss()) / WHOLE;
    Some(match variable {
        Variable::Cwnd | Variable::CwndCnt | Variable::Ssthresh | Variable::RcvWnd => {
            share(ruling.own, far, WHOLE)
        }
        Variable::PacingRate => {
            let round = view.srtt()?.as_nanos();
            share(ruling.own.min(share(view.cwnd(), 1_000_000_000, round)), far, WHOLE)
        }
        Variable::Rto => share(ruling.safe.low(), WHOLE, far),
        Variable::Dupthresh => 0,
        Variable::SndUna | Variable::RcvNxt => ruling.own.saturating_sub(segments),
        Variable::SndNxt => ruling.own.saturating_add(segments),
        Variable::Retransmits => return None,
    })
}

fn share(value: u64, above: u64, below: u64) -> u64 {
    let share = u128::from(value) * u128::from(above) / u128::from(below.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

impl Extension for Scramble {
    fn name(&self) -> &str {
        "scramble"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::DUPLICATE_ACK | Wake::LOSS | Wake::TIMEOUT | Wake::DATA
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.ask(view, limits);
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        self.ask(view, limits);
    }
}
