//! A background transfer with a deadline: the flow holds back while it is on schedule.
//!
//! The schedule is a constant rate, which delivers all bytes before the deadline. `reserve` is the share of the time between the end of the
//! schedule and the deadline.
//! - `hold-back=rate`: the flow is paced at the remaining bytes over the remaining time. If it falls behind, its rate rises later.
//! - `hold-back=nice`: the flow behaves as [TCP Nice](crate::nice) while it is on schedule, and as plain TCP when it is behind.
//!
//! When all bytes are delivered, or the time is over, it requests nothing any more.
//!
//! The rule is ours. The idea that the deadline decides how much a flow yields is D2TCP's (Vamanan, Hasan, Vijaykumar: "Deadline-Aware
//! Datacenter TCP", SIGCOMM 2012). D2TCP scales DCTCP's reductions and needs marks; this extension does neither.
//!
//! It is safe because it only lowers limits. It promises nothing: a window that was held back for long has to grow when it is released, and the
//! reserve gives it time for that. Bytes count from the attachment on, delivered cumulatively or selectively.

use crate::catalogue::Entry;
use crate::nice::Nice;
use crate::vegas::Poll;
use transom_tcp::arguments::Fraction;
use transom_tcp::extension::{
    Capabilities, Extension, ExtensionChoice, Limits, Occasion, Value, Variable, View, Wake,
};
use transom_tcp::time::{Duration, Instant};

/// How a flow holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldBack {
    /// It is paced at the rate that is needed.
    Rate,
    /// It yields to others as TCP Nice does.
    Nice,
}

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Bytes to deliver.
    pub(crate) bytes: u64,
    /// The time for them, from the attachment on.
    pub(crate) within: Duration,
    /// The share of the time kept in reserve.
    pub(crate) reserve: Fraction,
    /// How the flow holds back while it is on schedule.
    pub(crate) hold_back: HoldBack,
}

/// The default reserve: a fifth of the time.
const RESERVE: Fraction = Fraction::from_millionths(200_000);

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "deadline",
    source: "ours; the idea is D2TCP's (Vamanan, Hasan, Vijaykumar, SIGCOMM 2012)",
    summary: "yields to others while the bytes can still be delivered in time",
    parameters: &[
        ("bytes", "bytes to deliver, such as 50MB; required"),
        (
            "within",
            "the time for them, such as 10min, from the opening of the connection; required",
        ),
        ("reserve", "0.2: the share of the time kept in reserve"),
        (
            "hold-back",
            "rate or nice: paces at the rate that is needed, or yields like TCP Nice while on time",
        ),
    ],
    read: |arguments| {
        let (bytes, within) = (arguments.bytes("bytes")?, arguments.duration("within")?);
        let (Some(bytes @ 1..), Some(within)) = (bytes, within.filter(|time| !time.is_zero()))
        else {
            let reason = "give bytes and within, as in bytes=50MB, within=600s";
            return Err(arguments.impossible(reason));
        };
        let reserve = arguments.fraction("reserve")?.unwrap_or(RESERVE);
        if reserve >= Fraction::ONE {
            return Err(arguments.impossible(format_args!("reserve is less than 1, not {reserve}")));
        }
        let words = [("rate", HoldBack::Rate), ("nice", HoldBack::Nice)];
        let hold_back = arguments.word("hold-back", &words)?.unwrap_or(HoldBack::Rate);
        let parameters = Parameters { bytes, within, reserve, hold_back };
        let make = move || Box::new(Deadline::new(parameters)) as Box<_>;
        Ok(ExtensionChoice::new(arguments.choice(), make))
    },
};

/// The extension.
#[derive(Debug)]
pub(crate) struct Deadline {
    parameters: Parameters,
    nice: Option<Nice>,
    /// When it was attached, and the bytes delivered by then.
    began: Instant,
    before: u64,
    over: bool,
}

impl Deadline {
    /// For one transfer.
    fn new(parameters: Parameters) -> Self {
        let nice = || Nice::new(Default::default(), Poll::Round);
        let nice = (parameters.hold_back == HoldBack::Nice).then(nice);
        Deadline { parameters, nice, began: Instant::ZERO, before: 0, over: false }
    }

    /// The time it aims at.
    fn aim(&self) -> Duration {
        let nanos = self.parameters.reserve.complement().of(self.parameters.within.as_nanos());
        Duration::from_nanos(nanos.max(1))
    }

    /// The bytes and nanoseconds that are left; `None` when either is over.
    fn left(&self, view: &View<'_>) -> Option<(u64, u64)> {
        let done = view.delivered().saturating_sub(self.before);
        let bytes = self.parameters.bytes.saturating_sub(done);
        let time = (self.aim() - view.now().since(self.began)).as_nanos();
        (bytes > 0 && time > 0).then_some((bytes, time))
    }

    /// Whether this many bytes in this time are on the schedule from the beginning.
    fn is_on_time(&self, bytes: u64, time: u64) -> bool {
        let aim = u128::from(self.aim().as_nanos());
        u128::from(bytes) * aim <= u128::from(self.parameters.bytes) * u128::from(time)
    }

    fn limit(&mut self, view: &View<'_>, limits: &mut Limits) {
        let Some((bytes, time)) = self.left(view) else {
            self.over = true;
            *limits = Limits::default();
            return;
        };
        if self.nice.is_none() {
            let rate = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(time));
            limits.at_most(Value::PacingRate(u64::try_from(rate).unwrap_or(u64::MAX)));
        } else if !self.is_on_time(bytes, time) {
            limits.clear(Variable::Cwnd);
        }
        // The remaining time shrinks even when no packet arrives.
        let look = view.now() + Duration::from_nanos(time).over(16).max(Duration::from_millis(1));
        limits.wake_at(limits.next_wake().map_or(look, |at| at.min(look)));
    }
}

impl Extension for Deadline {
    fn name(&self) -> &str {
        "deadline"
    }

    fn requires(&self) -> Capabilities {
        self.nice.as_ref().map_or(Capabilities::empty(), Extension::requires)
    }

    fn wake_on(&self) -> Wake {
        Wake::ROUND | self.nice.as_ref().map_or(Wake::empty(), Extension::wake_on)
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        (self.began, self.before) = (view.now(), view.delivered());
        if let Some(nice) = &mut self.nice {
            nice.on_attach(view, limits);
        }
        self.limit(view, limits);
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        if self.over {
            return;
        }
        if let Some(nice) = &mut self.nice {
            nice.on_wake(occasion, view, limits);
        }
        self.limit(view, limits);
    }
}
