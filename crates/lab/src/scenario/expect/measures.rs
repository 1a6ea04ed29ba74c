//! All measures, each with its properties.

use crate::scenario::Unit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

use super::Statistic;

/// The source of a measure, and the number of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasureSource {
    /// One value of each flow.
    FromEachFlow,
    /// Many values of each flow.
    OftenFromFlows,
    /// One value of all flows together.
    FromAllFlows,
    /// One value of a link.
    FromLink,
    /// Many values of a link.
    OftenFromLink,
}

/// A requirement of a measure on its flow or link direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// Nothing.
    Nothing,
    /// TCP.
    Tcp,
    /// A window control.
    WindowControl,
    /// A window control whose policy has one target for all flows.
    WindowTarget,
}

/// How a measure varies over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeCourse {
    /// It has a value at every sample.
    AtSamples,
    /// At every sample it has the value of the window that ends there.
    OverWindow,
}

/// Makes [`Measure`] from lines with each measure's unit, source, requirement, and time course if it has one.
macro_rules! measures {
    ($($(#[doc = $doc:literal])+ $name:ident: $unit:ident, $taken:ident, $needs:ident $(, $course:ident)?;)+) => {
        /// The measures.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Measure {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Measure {
            /// Its unit.
            pub(crate) fn unit(self) -> Unit {
                match self {
                    $(Measure::$name => Unit::$unit,)+
                }
            }

            /// Its source.
            pub(crate) fn source(self) -> MeasureSource {
                match self {
                    $(Measure::$name => MeasureSource::$taken,)+
                }
            }

            /// Its requirement.
            pub(crate) fn needs(self) -> Requirement {
                match self {
                    $(Measure::$name => Requirement::$needs,)+
                }
            }

            /// Its time course, if `reaches` and `stays-above` apply to it.
            pub(crate) fn course(self) -> Option<TimeCourse> {
                match self {
                    $(Measure::$name => measures!(@course $($course)?),)+
                }
            }
        }
    };
    (@course) => { None };
    (@course $course:ident) => { Some(TimeCourse::$course) };
}

measures! {
    /// Of a flow: bytes per second that reached the application. A rate.
    Goodput: Rate, FromEachFlow, Nothing, OverWindow;
    /// Of a flow: bytes per second of all IP packets that its sender sent, headers included. A rate.
    Throughput: Rate, FromEachFlow, Nothing, OverWindow;
    /// Of a flow: bytes that reached the application. A size.
    Delivered: Size, FromEachFlow, Nothing;
    /// Of a flow: bytes that never came, reported to the application as holes. A size.
    Skipped: Size, FromEachFlow, Tcp;
    /// Of a flow: segments that its sender sent again, over all its connections. A number.
    Retransmissions: Number, FromEachFlow, Tcp;
    /// Of a flow: retransmission timeouts of its sender, over all its connections. A number.
    Timeouts: Number, FromEachFlow, Tcp;
    /// Of a flow: times its sender began fast recovery, over all its connections. A number.
    FastRecoveries: Number, FromEachFlow, Tcp;
    /// Of a flow: goodput divided by throughput. A number.
    Efficiency: Number, FromEachFlow, Nothing;
    /// Of a flow's transfers, or requests: from the start to the last byte. Times.
    CompletionTime: Time, OftenFromFlows, Tcp;
    /// Of a flow: at the sampled times, the last round-trip time that was measured; a kernel tells only the smoothed one. Times.
    Rtt: Time, OftenFromFlows, Tcp, AtSamples;
    /// Of a flow: the retransmission timeout in use, with its back-off, at the sampled times. Times.
    Rto: Time, OftenFromFlows, Tcp, AtSamples;
    /// Of a flow: that timeout divided by the last round-trip time, at the sampled times. Numbers.
    RtoToRtt: Number, OftenFromFlows, Tcp, AtSamples;
    /// Of a flow: congestion window at the sampled times. Sizes.
    Cwnd: Size, OftenFromFlows, Tcp, AtSamples;
    /// Of a flow: slow-start threshold at the sampled times. Sizes.
    Ssthresh: Size, OftenFromFlows, Tcp, AtSamples;
    /// Of a flow: bytes in flight at the sampled times. Sizes.
    Flight: Size, OftenFromFlows, Tcp, AtSamples;
    /// Of a flow: from each reduction of its congestion window, by 2 % and more, until 98 % of what it lost is back. Times, to a sample interval.
    RecoveryTime: Time, OftenFromFlows, Tcp;
    /// Of two flows and more: Jain's fairness index of their goodputs. A number.
    Jain: Number, FromAllFlows, Nothing, OverWindow;
    /// Of a link: throughput divided by its rate. A number.
    Utilisation: Number, FromLink, Nothing, OverWindow;
    /// Of a link: packets dropped and lost, divided by packets offered. A number.
    LossRate: Number, FromLink, Nothing;
    /// Of a link: packets dropped by its queue. A number.
    Drops: Number, FromLink, Nothing;
    /// Of a link: packets marked by its queue. A number.
    Marks: Number, FromLink, Nothing;
    /// Of a link: packets in its queue at the sampled times. Numbers.
    QueueLength: Number, OftenFromLink, Nothing, AtSamples;
    /// Of a link: how long the packets that it sent were in its queue, those included that found it idle. Times, to 1 %; the mean and the
    /// greatest are exact.
    QueueDelay: Time, OftenFromLink, Nothing;
    /// Of a link with a dual queue: the same of the packets in its low-latency queue. Times, to 1 %.
    LowLatencyDelay: Time, OftenFromLink, Nothing;
    /// Of a link: the same of the packets that were not in a low-latency queue. Times, to 1 %.
    ClassicDelay: Time, OftenFromLink, Nothing;
    /// Of a link's window control: the window that its policy has arrived at, at the sampled times; of `target-window` and `explicit-window`. Sizes.
    WindowTarget: Size, OftenFromLink, WindowTarget, AtSamples;
    /// Of a link's window control: acknowledgements whose window it has rewritten. A number.
    WindowsRewritten: Number, FromLink, WindowControl;
    /// Of a link's window control: acknowledgements that have come back past it, SYNs and resets not counted. A number.
    AcksSeen: Number, FromLink, WindowControl;
    /// Of a link's window control: acknowledgements that it has left as they were because it does not know their flow. A number.
    AcksUnknown: Number, FromLink, WindowControl;
    /// Of a link's window control: acknowledgements that it left unchanged because their numbers cannot belong to the flow. A number.
    AcksImplausible: Number, FromLink, WindowControl;
    /// Of a link's window control: acknowledgements that it delayed. A number.
    AcksHeld: Number, FromLink, WindowControl;
    /// Of a link's window control: flows whose handshake it has seen. A number.
    FlowsOpened: Number, FromLink, WindowControl;
}

impl MeasureSource {
    /// Whether it is a measure of a link.
    pub(crate) fn is_of_link(self) -> bool {
        matches!(self, MeasureSource::FromLink | MeasureSource::OftenFromLink)
    }

    /// The statistic if none is named; `None` for a measure that has only one value.
    pub(crate) fn usual_statistic(self) -> Option<Statistic> {
        match self {
            MeasureSource::FromEachFlow => Some(Statistic::Each),
            MeasureSource::OftenFromFlows | MeasureSource::OftenFromLink => Some(Statistic::Mean),
            MeasureSource::FromAllFlows | MeasureSource::FromLink => None,
        }
    }
}

/// As scenarios have it: "queue-delay".
impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
