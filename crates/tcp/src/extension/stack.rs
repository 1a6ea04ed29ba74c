//! Layers on top of each other, and what comes of it for each variable.

use super::interval::Interval;
use super::limits::Limits;
use super::variable::{COUNT, Variable, Variables};
use core::fmt;

/// A layer of a connection: a number that is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerId(pub(crate) u32);

impl LayerId {
    /// The layer with this number, for those who read of it.
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

/// What a stack asks of one variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// Nothing.
    Nothing,
    /// A value between these, each of which a layer stands for.
    Between { interval: Interval, low_by: LayerId, high_by: LayerId },
    /// Layers ask for what cannot be had together.
    Conflict,
}

/// What became of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// The same layers ask for other values.
    Values,
    /// Others ask, or nobody does any more, or they contradict each other, or do not any more.
    Askers,
}

/// What all layers together ask for: the intersection of what each does.
#[derive(Clone, Debug)]
pub struct Combined {
    wishes: [Wish; COUNT],
    /// Those that are not [`Wish::Nothing`].
    some: Variables,
    /// Whether what is wanted is used, safe or not.
    #[cfg(feature = "unconstrained")]
    unconstrained: bool,
}

impl Default for Combined {
    fn default() -> Self {
        Combined {
            wishes: [Wish::Nothing; COUNT],
            some: Variables::NONE,
            #[cfg(feature = "unconstrained")]
            unconstrained: false,
        }
    }
}

impl Combined {
    /// What these layers ask of one variable, in the place of what was asked before.
    pub(crate) fn combine<'a>(
        &mut self,
        variable: Variable,
        layers: impl Iterator<Item = (LayerId, &'a Limits)>,
    ) -> Change {
        let wish = layers
            .fold(Wish::Nothing, |wish, (layer, limits)| meet(wish, layer, limits.asked(variable)));
        let before = core::mem::replace(&mut self.wishes[variable as usize], wish);
        if let Wish::Between { interval, low_by, high_by } = wish
            && let Wish::Between { interval: old, low_by: low, high_by: high } = before
            && (low, high) == (low_by, high_by)
        {
            return if old == interval { Change::None } else { Change::Values };
        }
        match wish {
            Wish::Nothing => self.some.remove(Variables::one(variable)),
            _ => self.some.add(Variables::one(variable)),
        }
        if before == wish { Change::None } else { Change::Askers }
    }

    /// Up to what a value of TCP's own is used as it is, of a variable that is safe from zero up to TCP's own.
    pub(crate) fn untouched(&self, variable: Variable) -> u64 {
        match self.wishes[variable as usize] {
            _ if self.is_unconstrained() => 0,
            Wish::Between { interval, .. } => interval.high(),
            Wish::Nothing | Wish::Conflict => u64::MAX,
        }
    }

    /// The variables of which anything is asked.
    pub(crate) fn some(&self) -> Variables {
        self.some
    }

    /// Whether anything is asked of `variable`.
    #[inline]
    pub fn asks(&self, variable: Variable) -> bool {
        self.some.has(variable)
    }

    /// Whether layers contradict each other about `variable`.
    pub fn conflicts(&self, variable: Variable) -> bool {
        self.wishes[variable as usize] == Wish::Conflict
    }

    /// Safe ranges are not kept to from now on.
    #[cfg(feature = "unconstrained")]
    pub(crate) fn lift_ranges(&mut self) {
        self.unconstrained = true;
    }

    /// Whether safe ranges are not kept to. They always are, except in a laboratory built with the feature `unconstrained`.
    #[cfg(feature = "unconstrained")]
    pub fn is_unconstrained(&self) -> bool {
        self.unconstrained
    }

    /// Whether safe ranges are not kept to: never. There is no such mode without the feature `unconstrained`.
    #[cfg(not(feature = "unconstrained"))]
    pub fn is_unconstrained(&self) -> bool {
        false
    }

    /// The value that is used for `variable`, of which TCP's own is `own` and the safe range `safe`.
    #[inline]
    pub(crate) fn used(&self, variable: Variable, own: u64, safe: Interval) -> u64 {
        match self.wishes[variable as usize] {
            Wish::Between { interval, .. } => self.safely(interval.clamp(own), safe),
            Wish::Nothing | Wish::Conflict => own,
        }
    }

    fn safely(&self, wanted: u64, safe: Interval) -> u64 {
        if self.is_unconstrained() { wanted } else { safe.clamp(wanted) }
    }

    /// What is used for `variable` and why, of which TCP's own value is `own` and the safe range `safe`.
    pub fn rule(&self, variable: Variable, own: u64, safe: Interval) -> Ruling {
        let ruling = Ruling {
            own,
            requested: None,
            safe,
            used: own,
            decided_by: Decider::Tcp,
            conflict: false,
        };
        match self.wishes[variable as usize] {
            Wish::Nothing => ruling,
            Wish::Conflict => Ruling { conflict: true, ..ruling },
            Wish::Between { interval, low_by, high_by } => {
                let wanted = interval.clamp(own);
                let used = self.safely(wanted, safe);
                let decided_by = if used != wanted {
                    Decider::SafeRange
                } else if wanted == own {
                    Decider::Tcp
                } else if wanted == interval.high() {
                    Decider::Layer(high_by)
                } else {
                    Decider::Layer(low_by)
                };
                Ruling { requested: Some(interval), used, decided_by, ..ruling }
            }
        }
    }
}

/// One layer more. Of two that ask for the same bound the one that was attached first stands for it, whichever is met first.
fn meet(wish: Wish, layer: LayerId, asked: Interval) -> Wish {
    if asked == Interval::ANY {
        return wish;
    }
    let Wish::Between { interval, low_by, high_by } = wish else {
        return match wish {
            Wish::Nothing => Wish::Between { interval: asked, low_by: layer, high_by: layer },
            _ => wish,
        };
    };
    let Some(both) = interval.intersect(asked) else { return Wish::Conflict };
    let stands = |bound: u64, before: u64, theirs: u64, who: LayerId| match (
        before == bound,
        theirs == bound,
    ) {
        (true, true) => who.min(layer),
        (true, false) => who,
        _ => layer,
    };
    Wish::Between {
        interval: both,
        low_by: stands(both.low(), interval.low(), asked.low(), low_by),
        high_by: stands(both.high(), interval.high(), asked.high(), high_by),
    }
}

/// Who decided which value is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// Nobody asked for another value than TCP's own, or for none that could be had together.
    Tcp,
    /// A layer.
    Layer(LayerId),
    /// The safe range, against what was asked for.
    SafeRange,
}

/// What came of the requests for one variable, in the variable's [unit](Variable::unit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// TCP's own value.
    pub own: u64,
    /// What all layers together ask for; nothing if none does, or if they contradict each other.
    pub requested: Option<Interval>,
    /// The safe range.
    pub safe: Interval,
    /// The value that is used.
    pub used: u64,
    /// Who decided it.
    pub decided_by: Decider,
    /// Layers contradict each other.
    pub conflict: bool,
}
