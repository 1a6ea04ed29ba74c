//! Stacked layers, and their combined request for each variable.

use super::interval::Interval;
use super::limits::Limits;
use super::variable::{Variable, Variables};
use core::fmt;

/// A layer of a connection: a number that is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerId(pub(crate) u32);

impl LayerId {
    /// The layer with this number, for readers of logs.
    pub const fn from_u32(number: u32) -> Self {
        LayerId(number)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The combined request for one variable: a lower and an upper bound, each with the layer that set it. If the lower is above the upper one, layers
/// contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    low: u64,
    high: u64,
    low_by: LayerId,
    high_by: LayerId,
}

/// The layer of a bound that nobody set.
const NOBODY: LayerId = LayerId(u32::MAX);

impl Request {
    /// Any value.
    const ANY: Request = Request { low: 0, high: u64::MAX, low_by: NOBODY, high_by: NOBODY };

    /// Adds a layer. If two request the same bound, the one that was attached first owns it, in any order of adding.
    #[inline]
    fn meet(&mut self, layer: LayerId, asked: Interval) {
        let (low, high) = (asked.low(), asked.high());
        if low > self.low || (low == self.low && low > 0 && layer < self.low_by) {
            (self.low, self.low_by) = (low, layer);
        }
        if high < self.high || (high == self.high && high < u64::MAX && layer < self.high_by) {
            (self.high, self.high_by) = (high, layer);
        }
    }

    fn is_any(&self) -> bool {
        self.low == 0 && self.high == u64::MAX
    }

    fn is_conflict(&self) -> bool {
        self.low > self.high
    }

    /// The interval, unless the bounds contradict each other.
    fn interval(&self) -> Option<Interval> {
        Interval::new(self.low, self.high)
    }
}

/// How a request changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// The same layers ask for other values.
    Values,
    /// Other layers own the same bounds.
    Deciders,
    /// The requesting layers changed, or a contradiction began or ended.
    Askers,
}

/// The combined request of all layers: the intersection of their requests.
// What is looked at whenever a layer is woken comes first, and cwnd is the first of the variables.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Combined {
    /// Those that are not for [any value](Request::ANY).
    some: Variables,
    /// Whether requests are effective even if unsafe.
    unconstrained: bool,
    /// In the order of [`Variable::ALL`].
    requests: [Request; Variable::ALL.len()],
}

impl Default for Combined {
    fn default() -> Self {
        Combined {
            requests: [Request::ANY; Variable::ALL.len()],
            some: Variables::empty(),
            unconstrained: false,
        }
    }
}

impl Combined {
    /// The end of the requests for cwnd.
    #[cfg(test)]
    pub(crate) const UPTO_CWND: usize =
        core::mem::offset_of!(Combined, requests) + size_of::<Request>();

    /// Combines the requests of these layers for one variable, replacing the earlier ones.
    #[inline(never)]
    pub(crate) fn combine<'a>(
        &mut self,
        variable: Variable,
        layers: impl Iterator<Item = (LayerId, &'a Limits)>,
    ) -> Change {
        let mut request = Request::ANY;
        for (layer, limits) in layers {
            request.meet(layer, limits.asked(variable));
        }
        self.request(variable, request)
    }

    /// The same of a single layer.
    #[inline(always)]
    pub(crate) fn combine_one(
        &mut self,
        variable: Variable,
        layer: LayerId,
        asked: Interval,
    ) -> Change {
        let (low, high) = (asked.low(), asked.high());
        let low_by = if low > 0 { layer } else { NOBODY };
        let high_by = if high < u64::MAX { layer } else { NOBODY };
        let before = &mut self.requests[variable as usize];
        // Nearly always the same layer asks as before, and its request is no contradiction.
        if (low_by, high_by) == (before.low_by, before.high_by) && !before.is_conflict() {
            let same = (low, high) == (before.low, before.high);
            (before.low, before.high) = (low, high);
            return if same { Change::None } else { Change::Values };
        }
        self.request(variable, Request { low, high, low_by, high_by })
    }

    #[cold]
    fn request(&mut self, variable: Variable, request: Request) -> Change {
        let before = core::mem::replace(&mut self.requests[variable as usize], request);
        if (request.low_by, request.high_by) != (before.low_by, before.high_by)
            || request.is_conflict()
            || before.is_conflict()
        {
            return self.others_ask(variable, before);
        }
        let same = (request.low, request.high) == (before.low, before.high);
        if same { Change::None } else { Change::Values }
    }

    /// Whether the requesting layers differ from `before`, or a contradiction began or ended.
    #[cold]
    fn others_ask(&mut self, variable: Variable, before: Request) -> Change {
        let request = &self.requests[variable as usize];
        if request.is_any() {
            self.some.remove(Variables::one(variable));
        } else {
            self.some.insert(Variables::one(variable));
        }
        match (request.is_conflict(), before.is_conflict()) {
            // No layer decides a variable about which layers contradict each other.
            (true, true) => Change::None,
            (false, false) if request.interval() == before.interval() => Change::Deciders,
            _ => Change::Askers,
        }
    }

    /// The variables of which anything is asked.
    pub(crate) fn some(&self) -> Variables {
        self.some
    }

    /// Whether anything is asked of `variable`.
    #[inline]
    pub(crate) fn asks(&self, variable: Variable) -> bool {
        self.some.has(variable)
    }

    /// The combined request for `variable`; nothing if there is none, or if layers contradict each other.
    #[inline]
    pub(crate) fn asked(&self, variable: Variable) -> Option<Interval> {
        if self.asks(variable) { self.requests[variable as usize].interval() } else { None }
    }

    /// Whether layers contradict each other about `variable`.
    pub(crate) fn conflicts(&self, variable: Variable) -> bool {
        self.requests[variable as usize].is_conflict()
    }

    /// Safe ranges are not kept to from now on.
    pub(crate) fn lift_ranges(&mut self) {
        self.unconstrained = true;
    }

    /// Whether safe ranges are not kept to. They always are, except on a simulated host whose profile lifts them.
    pub(crate) fn is_unconstrained(&self) -> bool {
        self.unconstrained
    }

    /// The value `wanted`, within its safe range where that is kept to.
    pub(crate) fn safely(&self, wanted: u64, safe: Interval) -> u64 {
        if self.is_unconstrained() { wanted } else { safe.clamp(wanted) }
    }

    /// The effective value of `variable` and its reason; TCP's own value is `own`, and the safe range `safe`.
    pub(crate) fn rule(&self, variable: Variable, own: u64, safe: Interval) -> Ruling {
        let ruling = Ruling {
            own,
            requested: None,
            safe,
            effective: own,
            decided_by: Decider::Tcp,
            conflict: false,
        };
        if !self.asks(variable) {
            return ruling;
        }
        let request = &self.requests[variable as usize];
        let Some(interval) = request.interval() else { return Ruling { conflict: true, ..ruling } };
        let wanted = interval.clamp(own);
        let effective = self.safely(wanted, safe);
        let decided_by = if effective != wanted {
            Decider::SafeRange
        } else if wanted == own {
            Decider::Tcp
        } else if own > interval.high() {
            Decider::Layer(request.high_by)
        } else {
            Decider::Layer(request.low_by)
        };
        Ruling { requested: Some(interval), effective, decided_by, ..ruling }
    }
}

/// The origin of the effective value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// TCP's own value: no layer requested another, or the requests contradict each other.
    Tcp,
    /// A layer.
    Layer(LayerId),
    /// The safe range, against the request.
    SafeRange,
}

/// The outcome of the requests for one variable, in the variable's [unit](Variable::unit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// TCP's own value.
    pub own: u64,
    /// The combined request of all layers; `None` if there is none, or if they contradict each other.
    pub requested: Option<Interval>,
    /// The safe range.
    pub safe: Interval,
    /// The value that is used.
    pub effective: u64,
    /// The origin of the effective value.
    pub decided_by: Decider,
    /// Layers contradict each other.
    pub conflict: bool,
}
