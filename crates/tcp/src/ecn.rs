//! Explicit congestion notification: how a receiver tells its sender of the marks that routers set.
//!
//! Both ends agree in the handshake (RFC 3168 section 6.1.1). From then on a sender marks its data as ECN-capable, a router marks it
//! instead of dropping it, and the receiver echoes the mark. The unit decides how. The connection makes the sender respond to an echo once
//! a window, as to a loss, and report it with CWR.
//!
//! Accurate ECN (RFC 9768) tells counts instead of an echo, in both directions at once: [`accurate_ecn`](crate::accurate_ecn).

//! # Beyond RFC 3168
//!
//! RFC 3168 lets only new data be marked. The loss of other packets can cost more. A SYN-ACK or a retransmission costs a timeout.
//! draft-ietf-tcpm-generalized-ecn ("ECN++", an experiment under RFC 8311 section 4.3) lets more be marked. [`EcnConfig::control_packets`]
//! chooses it, as far as it is safe with the feedback of RFC 3168, and the same with that of RFC 9768:
//!
//! | packet | ECN-capable | why |
//! |---|---|---|
//! | SYN | no | A server cannot tell of a mark on it with RFC 3168's flags, and Linux servers decline ECN if a SYN is ECN-capable. With accurate ECN (RFC 9768) it can, but whether the server has that is not known yet. |
//! | SYN-ACK | the first | ECN is agreed by then. A mark is echoed by the acknowledgement that completes the handshake, and the initial window becomes one segment. Sent again it is not, in case somebody drops it for the codepoint: RFC 5562, which the draft replaces, sent a second one after every mark. |
//! | SYN-ACK of a SYN cookie | no | Nobody would send it again otherwise. |
//! | retransmission, FIN, window probe | yes | Marks come back like data's. |
//! | RST | yes | There is nobody left to react. |
//! | pure acknowledgement | no | Its mark could not be told: acknowledgements are not acknowledged. |

mod classic;
mod per_packet;
mod unit;

use core::fmt;
pub(crate) use unit::FeedbackUnit;

/// The receiving half of ECN.
pub(crate) trait EcnFeedback: fmt::Debug + Send {
    /// Data arrived, in packets that were `marked` or not; the sender says whether it has `reduced` its window. Returns whether what was
    /// received before has to be acknowledged first, with the echo as it was.
    fn on_data(&mut self, marked: bool, reduced: bool) -> bool;

    /// Whether acknowledgements are to carry the echo, ECE.
    fn echo(&self) -> bool;
}

/// With whom ECN is agreed, and for which packets it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EcnConfig {
    /// Offer it when connecting; otherwise only agree to a peer's offer.
    pub offer: bool,
    /// Let SYN-ACKs, retransmissions, window probes, FINs and resets be marked too (generalized ECN, "ECN++": draft-ietf-tcpm-generalized-ecn).
    pub control_packets: bool,
}

transom_base::setters! {
    const EcnConfig:
    with_offer = offer: bool,
    with_control_packets = control_packets: bool,
}
