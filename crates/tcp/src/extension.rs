//! Information and safe control: what any program may see of a connection, and how far it may change it.
//!
//! A *congestion controller* is trusted; the operator of the stack chooses it. An [`Extension`] is not. It sees everything of its
//! connection ([`View`]) and sets *limited virtual variables* ([`Limits`]): for each [`Variable`] an interval for the value that TCP uses.
//! After icTCP (Gunawi, Arpaci-Dusseau and Arpaci-Dusseau, OSDI 2004), three rules make that safe:
//!
//! - Any request is accepted. The *effective* value is clamped into the variable's [safe range](safe) at every use, because the range moves
//!   with the connection.
//! - TCP's own value never changes. An effective value is a [`safe::Effective`], which can be compared and consumed. It cannot be stored
//!   where TCP keeps its own: code that computed an original from it would not compile.
//! - Each extension is a *layer*. Layers only narrow: the request of a stack is the intersection of all requests. So their order does not
//!   matter, and two equal layers act like one. If the intersection is empty, TCP's own value is effective, and the conflict is recorded.
//! - All layers that an event wakes see the connection as it was before any of them was woken.
//! - A layer that fails is detached with its limits, and the connection continues ([`Fault`], [`Departure`]).
//!
//! ```
//! use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};
//!
//! /// Never more than eight segments in the network.
//! #[derive(Debug)]
//! struct Eight;
//!
//! impl Extension for Eight {
//!     fn name(&self) -> &str {
//!         "eight"
//!     }
//!
//!     fn wake_on(&self) -> Wake {
//!         Wake::ROUND
//!     }
//!
//!     fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
//!         limits.at_most(Value::Cwnd(8 * view.mss()));
//!     }
//!
//!     fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
//!         limits.at_most(Value::Cwnd(8 * view.mss()));
//!     }
//! }
//! ```
//!
//! An extension cannot change what it sees:
//!
//! ```compile_fail
//! # use transom_tcp::extension::{Limits, View};
//! fn greedy(view: &View<'_>, limits: &mut Limits) {
//!     view.cwnd() += 10 * view.mss();
//! }
//! ```
//!
//! and a variable only has values of its own kind:
//!
//! ```compile_fail
//! # use transom_tcp::extension::{Limits, Value};
//! # use transom_tcp::time::Duration;
//! fn confused(limits: &mut Limits) {
//!     limits.at_most(Value::Cwnd(Duration::from_secs(1)));
//! }
//! ```

mod choice;
mod history;
mod interval;
mod limits;
mod occasion;
pub mod safe;
pub(crate) mod stack;
pub(crate) mod variable;

#[cfg(test)]
mod tests;

pub use crate::connection::extensions::{Observed, ObservedLayers, RequestCounters, View};
pub use crate::event::LayerChange;
pub use choice::ExtensionChoice;
pub(crate) use history::History;
pub use history::{Ack, AckKind, Message};
pub use interval::Interval;
pub use limits::Limits;
pub use occasion::{Capabilities, Occasion, Wake};
pub use stack::{Decider, LayerId, Ruling};
pub use variable::{Value, Variable};

use crate::time::Duration;
use alloc::string::String;
use core::fmt;

/// The most layers of a connection. Every event costs a call for each layer.
pub const MAX_LAYERS: usize = 16;

/// The clock wakes a layer at most once in this time, so that no layer keeps its host busy with itself.
pub(crate) const LEAST_WAIT: Duration = Duration::from_micros(100);

/// A layer may ask this many times in a row for a time that has passed, without catching up. Once more is a [fault](Fault::Restless).
pub(crate) const MAX_LATE_WAKES: u32 = 100;

/// Something that watches a connection and narrows what it does.
pub trait Extension: fmt::Debug + Send {
    /// The name by which reports call it.
    fn name(&self) -> &str;

    /// The capabilities that it requires; it is not attached to a connection without them.
    fn requires(&self) -> Capabilities {
        Capabilities::empty()
    }

    /// The events it is woken for. Asked once, when it is attached.
    fn wake_on(&self) -> Wake;

    /// It is attached: the first view, and the first limits.
    fn on_attach(&mut self, _view: &View<'_>, _limits: &mut Limits) {}

    /// One of its events has happened. `limits` are its own, as it left them.
    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits);
}

/// Why a layer was detached without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It panicked.
    #[error("it panicked")]
    Panicked,
    /// It took longer than it may.
    #[error("it took {took:?}, but {allowed:?} are allowed")]
    Overran {
        /// How long it took.
        took: Duration,
        /// How long it may take.
        allowed: Duration,
    },
    /// It kept asking to be woken at times that had passed, and did not catch up.
    #[error("it asked {MAX_LATE_WAKES} times in a row to be woken in the past")]
    Restless,
    /// All extensions of its host together have used up the time they may take.
    #[error("the extensions of this host have used up their time")]
    NoTime,
    /// It requested an interval that ends before it begins.
    #[error("its limits for {0} are impossible: the lower one is above the upper one")]
    Nonsense(Variable),
    /// It lives in another process, which has gone or does not answer.
    #[error("its process has ended")]
    Gone,
    /// It lives in another process, which says what it must not.
    #[error("its process broke the protocol")]
    Protocol,
}

/// Why an extension was not attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The handshake is not complete, or the connection is gone, or its owner closed it and extensions have had
    /// [their time](crate::profile::Profile::extensions_after_close).
    #[error("the connection is not established")]
    NotEstablished,
    /// The connection does not have what the extension requires.
    #[error("the connection does not have what the extension requires: {0}")]
    Lacks(Capabilities),
    /// There are [`MAX_LAYERS`] already.
    #[error("a connection takes at most {MAX_LAYERS} extensions")]
    TooMany,
    /// It failed when it was attached.
    #[error("it failed when it was attached: {0}")]
    Failed(Fault),
}

/// Why there is no such layer (any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DepartureReason {
    /// It failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The profile names it, and it could not be attached.
    #[error(transparent)]
    NotAttached(#[from] AttachError),
    /// The owner closed the connection, and the connection did not end in the time that
    /// [`Profile::extensions_after_close`](crate::profile::Profile::extensions_after_close) gives it.
    #[error("the connection was closed and did not end in time")]
    Orphaned,
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

/// A layer that was removed without a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Which it was, if it ever was attached.
    pub layer: Option<LayerId>,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: DepartureReason,
}
