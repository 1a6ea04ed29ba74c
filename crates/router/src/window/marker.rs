//! The Window Marker (section 3.2 and appendix B): writes windows, and never one that does harm.
//!
//! The policy's decision moves the flow's `desired` window: up at once; down, if allowed, to the rest of the window that the sender has seen,
//! which shrinks by newly acknowledged bytes. The written window has three bounds, the later ones stronger:
//!
//! 1. not below one segment, or the sender would starve;
//! 2. not left of an edge that the sender has seen;
//! 3. not above what the receiver advertises.
//!
//! The paper reduces by the last acknowledged segment, which keeps the edge if acknowledgements come in order and the field has
//! the precision. Here the edge itself is kept, because neither is certain: old acknowledgements arrive late, and a scaled
//! window is a multiple of up to 16 KiB. It is rounded up to one, which never exceeds the receiver's field. The paper lets a
//! new flow's first acknowledgement pass. Here the edge is known from the SYN, whose window is not scaled, so a receiver's
//! megabyte need not be given away first.
//!
//! The SYN's own window is up to 64 KiB. If the policy lowers it ([`Policy::on_syn`](super::Policy::on_syn)), the same three bounds hold. The
//! earlier edge is that of the same SYN when it passed before; usually there is none.

use core::num::NonZeroU32;

use transom_wire::Seq;

use super::flow::Open;
use super::handshake::PROBE;
use super::policy::AckAction;

/// After this many impossible acknowledgements in a row, the flow is not the recorded one.
const MAX_IMPLAUSIBLE: u8 = 8;

/// The result for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    /// The window fits already, or the policy does not care.
    AsItWas,
    /// The window field should be this.
    Rewritten(u16),
    /// It acknowledges data that its flow cannot have sent. It passes unchanged, and nothing is learned from it.
    Implausible,
    /// Too many were implausible; the flow passes unchanged from now on.
    Lost,
}

/// Writes windows.
///
/// A namespace for the functions on one flow's record; the record is in the [`FlowTable`](super::table::FlowTable).
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowMarker;

/// An acknowledgement's two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    pub(super) number: Seq,
    pub(super) window: u16,
}

impl WindowMarker {
    /// Whether a flow can have got this acknowledgement: up to the edge, which its sender may not pass. How old it is does not
    /// matter: two of the largest windows (RFC 7323 2.3) are as much as numbers can be apart, and an old one changes nothing.
    pub(super) fn is_plausible(open: &Open, number: Seq) -> bool {
        number.distance_from(open.edge) <= PROBE as i32
    }

    /// Bytes that it acknowledges for the first time.
    pub(super) fn newly_acked(open: &Open, number: Seq) -> Option<NonZeroU32> {
        u32::try_from(number.distance_from(open.ack)).ok().and_then(NonZeroU32::new)
    }

    /// Counts an acknowledgement that cannot be.
    pub(super) fn strike(open: &mut Open) -> Marked {
        open.implausible_in_a_row = open.implausible_in_a_row.saturating_add(1);
        if open.implausible_in_a_row < MAX_IMPLAUSIBLE { Marked::Implausible } else { Marked::Lost }
    }

    /// The window to forward for a plausible acknowledgement; remembers it.
    pub(super) fn mark(open: &mut Open, ack: Ack, wish: AckAction) -> Marked {
        open.implausible_in_a_row = 0;
        let advertised = u32::from(ack.window) << open.scale;
        let newly = WindowMarker::newly_acked(open, ack.number).map_or(0, NonZeroU32::get);
        open.ack += newly;
        let window = match wish {
            AckAction::Window { bytes, fall } => {
                let wished = u32::try_from(bytes).unwrap_or(u32::MAX);
                // The first acknowledgement of a flow finds `desired` without a limit.
                let mut desired = open.desired.min(advertised.max(open.mss.into()));
                if fall && desired > wished {
                    desired = desired.min(WindowMarker::room_to_edge(open, ack.number));
                }
                open.desired = desired.max(wished);
                WindowMarker::bounded(open, ack)
            }
            AckAction::AsItIs | AckAction::Hold(_) => ack.window,
        };
        let told = ack.number + (u32::from(window) << open.scale);
        open.edge = open.edge.later(told);
        if window == ack.window { Marked::AsItWas } else { Marked::Rewritten(window) }
    }

    /// The window to forward in a receiver's SYN, when its sender has seen `told` bytes already.
    pub(super) fn first(advertised: u16, told: u32, mss: u16, wished: u64) -> u16 {
        let least = wished.max(mss.into()).max(told.into());
        u16::try_from(least).unwrap_or(u16::MAX).min(advertised)
    }

    /// A SYN of the receiver passes again with this new window. The router has seen its handshake end, but its sender perhaps has not.
    pub(super) fn first_again(open: &mut Open, syn: Ack, window: u16) {
        let edge = open.edge;
        open.edge = edge.later(syn.number + u32::from(window));
        if open.desired == u32::MAX {
            if window < syn.window {
                open.desired = WindowMarker::room_to_edge(open, open.ack);
            }
        } else if open.edge != edge {
            open.desired = open.desired.max(window.into());
        }
    }

    /// The bytes that the sender may still send beyond this number, by the edge that it has seen.
    pub(super) fn room_to_edge(open: &Open, number: Seq) -> u32 {
        u32::try_from(open.edge.distance_from(number)).unwrap_or(0)
    }

    /// `desired` within the bounds, as the header has it.
    fn bounded(open: &Open, ack: Ack) -> u16 {
        let told = WindowMarker::room_to_edge(open, ack.number);
        let least = open.desired.max(open.mss.into()).max(told);
        let unit = 1u32 << open.scale;
        u16::try_from(least.div_ceil(unit)).unwrap_or(u16::MAX).min(ack.window)
    }
}

#[cfg(test)]
mod tests;
