//! The limited virtual variables: the ten of icTCP's Table 1, and a pacing rate.
//!
//! Windows are in bytes, where the paper counts packets.

use crate::named::named;
use crate::pos::Pos;
use crate::time::Duration;
use bitflags::bitflags;
use core::fmt;

/// A variable an extension may limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variable {
    /// The congestion window, in bytes. Used in whole segments: below one segment nothing new leaves.
    Cwnd,
    /// The bytes acknowledged towards the next increase of cwnd in congestion avoidance. It has no effect on a controller whose window
    /// does not grow by counting.
    CwndCnt,
    /// The slow-start threshold, in bytes.
    Ssthresh,
    /// The receive window, in bytes. Data within an earlier advertised window is still accepted.
    RcvWnd,
    /// The next position expected of the peer: data before it is not taken.
    RcvNxt,
    /// The next position to be sent: acknowledgements beyond it are not believed.
    SndNxt,
    /// The oldest position not acknowledged: acknowledgements before it are not believed.
    SndUna,
    /// How many duplicate acknowledgements mean a loss.
    Dupthresh,
    /// The retransmission timeout.
    Rto,
    /// The timeouts in a row that count towards giving the connection up.
    Retransmits,
    /// The rate at which data leaves at most, in bytes per second.
    PacingRate,
}

named! {
    Variable:
    Cwnd = "cwnd",
    CwndCnt = "cwnd_cnt",
    Ssthresh = "ssthresh",
    RcvWnd = "rcv_wnd",
    RcvNxt = "rcv_nxt",
    SndNxt = "snd_nxt",
    SndUna = "snd_una",
    Dupthresh = "dupthresh",
    Rto = "rto",
    Retransmits = "retransmits",
    PacingRate = "pacing_rate",
}

impl Variable {
    /// The unit of its values as numbers.
    pub const fn unit(self) -> &'static str {
        match self {
            Variable::Cwnd | Variable::CwndCnt | Variable::Ssthresh | Variable::RcvWnd => "bytes",
            Variable::RcvNxt | Variable::SndNxt | Variable::SndUna => "position",
            Variable::Dupthresh => "duplicates",
            Variable::Rto => "nanoseconds",
            Variable::Retransmits => "timeouts",
            Variable::PacingRate => "bytes per second",
        }
    }
}

bitflags! {
    /// Some of the variables: a bit for each, in the order of Table 1.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Variables: u16 {
        const _ = !0;
    }
}

impl Variables {
    /// One of them.
    pub(crate) const fn one(variable: Variable) -> Self {
        Variables::from_bits_retain(1 << variable as u16)
    }

    /// Whether one is among them.
    pub(crate) fn has(self, variable: Variable) -> bool {
        self.intersects(Variables::one(variable))
    }

    /// Takes the first out, in the order of Table 1.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Variable> {
        let first = Variable::ALL.get(self.bits().trailing_zeros() as usize).copied()?;
        self.remove(Variables::one(first));
        Some(first)
    }

    /// Each, in the order of Table 1.
    #[inline]
    pub(crate) fn each(mut self) -> impl Iterator<Item = Variable> {
        core::iter::from_fn(move || self.pop())
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value of a variable, of the variable's own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Bytes.
    Cwnd(u64),
    /// Bytes.
    CwndCnt(u64),
    /// Bytes.
    Ssthresh(u64),
    /// Bytes.
    RcvWnd(u64),
    /// A position.
    RcvNxt(Pos),
    /// A position.
    SndNxt(Pos),
    /// A position.
    SndUna(Pos),
    /// Duplicates.
    Dupthresh(u32),
    /// A span of time.
    Rto(Duration),
    /// Timeouts.
    Retransmits(u32),
    /// Bytes per second.
    PacingRate(u64),
}

impl Value {
    /// Its variable, and the value as a number in the variable's [unit](Variable::unit).
    #[inline]
    pub(crate) fn parts(self) -> (Variable, u64) {
        match self {
            Value::Cwnd(bytes) => (Variable::Cwnd, bytes),
            Value::CwndCnt(bytes) => (Variable::CwndCnt, bytes),
            Value::Ssthresh(bytes) => (Variable::Ssthresh, bytes),
            Value::RcvWnd(bytes) => (Variable::RcvWnd, bytes),
            Value::RcvNxt(at) => (Variable::RcvNxt, at.get()),
            Value::SndNxt(at) => (Variable::SndNxt, at.get()),
            Value::SndUna(at) => (Variable::SndUna, at.get()),
            Value::Dupthresh(count) => (Variable::Dupthresh, count.into()),
            Value::Rto(span) => (Variable::Rto, span.as_nanos()),
            Value::Retransmits(count) => (Variable::Retransmits, count.into()),
            Value::PacingRate(rate) => (Variable::PacingRate, rate),
        }
    }
}
