//! The grammar of profiles: all words, and their units.

use crate::adu::AduConfig;
use crate::arguments::{ArgumentError, Arguments};
use crate::congestion::{ALGORITHMS, CongestionChoice, Counting, InitialWindow};
use crate::ecn::EcnConfig;
use crate::flow::receive_window::ReceiveWindowConfig;
use crate::holes::HoleChoice;
use crate::named::named;
use crate::path_mtu::PathMtuChoice;
use crate::persistence::Persistence;
use crate::profile::{
    AckChoice, EcnChoice, FlowChoice, OrderingChoice, PacingChoice, Profile, RecoveryChoice,
    ReductionChoice, SlowStartChoice, TimerChoice, ValidationChoice,
};
use crate::reordering::CAP;
use crate::rto::eifel::EifelConfig;
use crate::rto::fixed::FixedConfig;
use crate::rto::rfc6298::Rfc6298Config;
use crate::slow_start::limited::Limited;
use crate::slow_start::standard::Standard;
use crate::time::Duration;
use crate::undo::UndoConfig;
use core::num::NonZeroU32;

/// The unit that a word chooses. Its name is its key in a table that has one for each unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Congestion control: how much may be in flight.
    Congestion,
    /// The initial window, which is the restart window too.
    InitialWindow,
    /// The amount that an acknowledgement counts for when the window grows.
    Counting,
    /// Slow start: how the window grows at the beginning.
    SlowStart,
    /// Loss recovery: which data is retransmitted.
    Recovery,
    /// Persistence: how often and how long lost data is retransmitted.
    Persistence,
    /// The receiver's handling of missing data.
    Holes,
    /// Early retransmit: the duplicates that mean a loss when few segments are outstanding.
    EarlyRetransmit,
    /// The duplicates that mean a loss on a path that reorders.
    Reordering,
    /// Limited transmit: whether the first duplicates release new data.
    LimitedTransmit,
    /// How fast recovery reduces the window.
    Reduction,
    /// The validation of a window that was not fully used.
    Validation,
    /// Detectors of spurious reductions. Several may be combined.
    Undo,
    /// The retransmission timer.
    Timer,
    /// Explicit congestion notification.
    Ecn,
    /// When transmissions leave.
    Pacing,
    /// When the receiver acknowledges.
    Acknowledgements,
    /// The order and form in which data is delivered.
    Ordering,
    /// The window that the receiver advertises.
    FlowControl,
    /// Whether SACK is offered.
    SackOption,
    /// Whether timestamps are offered.
    TimestampsOption,
    /// Whether window scaling is offered.
    WindowScaleOption,
    /// Nagle's algorithm.
    Nagle,
    /// Path MTU discovery.
    PathMtu,
}

named! {
    Unit:
    Congestion = "congestion", "congestion control";
    InitialWindow = "initial-window", "the initial window";
    Counting = "counting", "the counting of acknowledgements";
    SlowStart = "slow-start", "slow start";
    Recovery = "recovery", "loss recovery";
    Persistence = "persistence", "the persistence of retransmission";
    Holes = "holes", "the handling of missing data";
    EarlyRetransmit = "early-retransmit", "early retransmit";
    Reordering = "reordering", "robustness against reordering";
    LimitedTransmit = "limited-transmit", "limited transmit";
    Reduction = "reduction", "the reduction of the window";
    Validation = "validation", "the validation of the window";
    Undo = "undo", "undo";
    Timer = "timer", "the retransmission timer";
    Ecn = "ecn", "ECN";
    Pacing = "pacing", "pacing";
    Acknowledgements = "acknowledgements", "the acknowledgement policy";
    Ordering = "ordering", "the order of delivery";
    FlowControl = "flow-control", "flow control";
    SackOption = "sack-option", "the SACK option";
    TimestampsOption = "timestamps", "the timestamps option";
    WindowScaleOption = "window-scale", "the window scale option";
    Nagle = "nagle", "Nagle's algorithm";
    PathMtu = "path-mtu", "path MTU discovery";
}

impl Unit {
    /// Its words: those of this crate.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let words = WORDS.iter().filter(move |word| word.unit == self).map(|word| word.name);
        // The word of the algorithm `none` is `no-congestion-control`.
        let algorithms = ALGORITHMS
            .iter()
            .map(|entry| entry.name)
            .filter(move |name| self == Unit::Congestion && *name != "none");
        words.chain(algorithms)
    }

    /// The word that adds nothing, for a unit of which several words add up instead of contradicting each other.
    pub fn none(self) -> Option<&'static str> {
        (self == Unit::Undo).then_some("no-undo")
    }
}

/// A word and its unit.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Word {
    /// The word.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its meaning, in a few words.
    pub summary: &'static str,
    pub(super) choose: fn(&mut Profile, &mut Arguments<'_>) -> Result<(), ArgumentError>,
}

const fn word(
    name: &'static str,
    unit: Unit,
    summary: &'static str,
    choose: fn(&mut Profile, &mut Arguments<'_>) -> Result<(), ArgumentError>,
) -> Word {
    Word { name, unit, summary, choose }
}

/// A word without parameters.
macro_rules! plain {
    ($name:literal, $unit:ident, $summary:literal, $($field:ident).+ = $value:expr) => {
        word($name, Unit::$unit, $summary, |profile, _| {
            profile.$($field).+ = $value;
            Ok(())
        })
    };
}

const OFFERED: EcnConfig = EcnConfig { offer: true, control_packets: false };

/// Accurate ECN; options=off sends the count of packets alone.
fn accurate(
    profile: &mut Profile,
    given: &mut Arguments<'_>,
    ecn: EcnConfig,
) -> Result<(), ArgumentError> {
    let options = given.word("options", &[("on", true), ("off", false)])?.unwrap_or(true);
    profile.ecn = EcnChoice::Accurate { ecn, options };
    Ok(())
}

/// The buffer of `size`, or of the given size.
fn memory(
    given: &mut Arguments<'_>,
    key: &'static str,
    size: usize,
) -> Result<usize, ArgumentError> {
    let Some(bytes) = given.bytes(key)? else { return Ok(size) };
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// A number of segments.
fn segments(
    given: &mut Arguments<'_>,
    key: &'static str,
) -> Result<Option<NonZeroU32>, ArgumentError> {
    let Some(number) = given.number(key)? else { return Ok(None) };
    let number = u32::try_from(number).ok().and_then(NonZeroU32::new);
    let reason = format_args!("{key} is a number of segments, from one to 4294967295");
    number.map(Some).ok_or_else(|| given.impossible(reason))
}

/// Units in order or not; max=… is the largest.
fn units(
    profile: &mut Profile,
    given: &mut Arguments<'_>,
    ordered: bool,
) -> Result<(), ArgumentError> {
    let max = memory(given, "max", AduConfig::default().max)?;
    profile.ordering = OrderingChoice::Units(AduConfig { max, ordered });
    Ok(())
}

/// The default delay of an acknowledgement.
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// How long the acknowledgements of Linux are delayed at most.
const QUICK_ACK: Duration = Duration::from_millis(200);

/// The widest window without the option (RFC 9293 section 3.1).
const UNSCALED_WINDOW: usize = 65_535;

/// All words but those of congestion control.
pub const WORDS: &[Word] = &[
    plain!(
        "no-congestion-control",
        Congestion,
        "only the receiver's window limits the flight",
        congestion = CongestionChoice::none()
    ),
    word(
        "initial-window",
        Unit::InitialWindow,
        "segments=10, RFC 6928's and the most; the restart window too",
        |profile, given| {
            let segments = given.number("segments")?;
            let choice = segments.map_or(Some(InitialWindow::default()), InitialWindow::segments);
            let Some(choice) = choice else {
                return Err(given.impossible("segments is a number from 1 to 10"));
            };
            profile.initial_window = choice;
            Ok(())
        },
    ),
    plain!(
        "count-bytes",
        Counting,
        "RFC 5681: the window grows by the bytes acknowledged",
        counting = Counting::Bytes
    ),
    plain!(
        "count-acks",
        Counting,
        "RFC 5681's other way: each new acknowledgement counts for a segment",
        counting = Counting::Acks
    ),
    word(
        "slow-start",
        Unit::SlowStart,
        "RFC 5681; limit=L as in RFC 3465; ssthresh=N segments, as known of the route",
        |profile, given| {
            let limit = given.number("limit")?;
            let limit = limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
            let mut unit = Standard::new(limit);
            if let Some(known) = segments(given, "ssthresh")? {
                unit = unit.beginning_at(known);
            }
            profile.slow_start = SlowStartChoice::Standard(unit);
            Ok(())
        },
    ),
    word(
        "abc",
        Unit::SlowStart,
        "RFC 5681 with RFC 3465's limit for one acknowledgement; limit=2",
        |profile, given| {
            let limit = segments(given, "limit")?.map_or(2, NonZeroU32::get);
            profile.slow_start = SlowStartChoice::Standard(Standard::new(Some(limit)));
            Ok(())
        },
    ),
    word("limited-slow-start", Unit::SlowStart, "RFC 3742; max=100 segments", |profile, given| {
        let default = Limited::default().max_ssthresh;
        let max_ssthresh = segments(given, "max")?.map_or(default, NonZeroU32::get);
        profile.slow_start = SlowStartChoice::Limited(Limited { max_ssthresh });
        Ok(())
    }),
    plain!("hystart++", SlowStart, "RFC 9406", slow_start = SlowStartChoice::HyStartPp),
    plain!(
        "hystart",
        SlowStart,
        "Ha, Rhee: 2011, as Linux' CUBIC: trains of acknowledgements and delay",
        slow_start = SlowStartChoice::HyStart
    ),
    plain!(
        "search",
        SlowStart,
        "draft-chung-ccwg-search: less arrives than was sent a round trip ago",
        slow_start = SlowStartChoice::Search
    ),
    plain!(
        "go-back-n",
        Recovery,
        "resends everything from the loss on",
        recovery = RecoveryChoice::GoBackN
    ),
    plain!(
        "whole-window",
        Recovery,
        "FreeBSD 4.7: resends everything, again with each partial acknowledgement",
        recovery = RecoveryChoice::WholeWindow
    ),
    plain!(
        "reno-recovery",
        Recovery,
        "RFC 2581: the first new acknowledgement ends fast recovery",
        recovery = RecoveryChoice::Reno
    ),
    plain!("newreno", Recovery, "RFC 6582", recovery = RecoveryChoice::NewReno),
    plain!("sack", Recovery, "RFC 6675", recovery = RecoveryChoice::Sack),
    plain!("rack-tlp", Recovery, "RFC 8985", recovery = RecoveryChoice::RackTlp),
    plain!("full-retransmission", Persistence, "until it is acknowledged", persistence = None),
    plain!(
        "no-retransmission",
        Persistence,
        "lost data is given up, if the peer agrees",
        persistence = Some(Persistence::NONE)
    ),
    word(
        "retransmit",
        Unit::Persistence,
        "given up after times=1 retransmissions, or lifetime=T, if the peer agrees",
        |profile, given| {
            let lifetime = given.duration("lifetime")?;
            let times = given.number("times")?.or(lifetime.is_none().then_some(1));
            let times = times.map(u16::try_from).transpose();
            let Ok(retransmissions) = times else {
                return Err(given.impossible("times is a number from 0 to 65535"));
            };
            profile.persistence = Some(Persistence { retransmissions, lifetime });
            Ok(())
        },
    ),
    plain!("wait-for-holes", Holes, "waits until the data arrives", holes = HoleChoice::Wait),
    plain!(
        "accept-holes",
        Holes,
        "accepts holes that the sender announces, if both have agreed",
        holes = HoleChoice::Accept
    ),
    word(
        "skip-holes",
        Unit::Holes,
        "acknowledges data that is missing for after=500ms; any sender",
        |profile, given| {
            let after = given.duration("after")?.unwrap_or(Duration::from_millis(500));
            profile.holes = HoleChoice::Skip(after);
            Ok(())
        },
    ),
    plain!(
        "no-early-retransmit",
        EarlyRetransmit,
        "always three duplicates",
        early_retransmit = false
    ),
    plain!(
        "early-retransmit",
        EarlyRetransmit,
        "RFC 5827: fewer duplicates when few segments are outstanding",
        early_retransmit = true
    ),
    plain!("no-rr", Reordering, "three duplicates, even if the path reorders", reordering = None),
    word(
        "rr",
        Unit::Reordering,
        "Blanton, Allman: CCR 2002; more where DSACKs show reordering, up to cap=0.9 of the window",
        |profile, given| {
            profile.reordering = Some(given.fraction("cap")?.unwrap_or(CAP));
            Ok(())
        },
    ),
    plain!(
        "limited-transmit",
        LimitedTransmit,
        "RFC 3042: the first two duplicates release new data",
        limited_transmit = true
    ),
    plain!(
        "no-limited-transmit",
        LimitedTransmit,
        "new data waits for recovery",
        limited_transmit = false
    ),
    plain!("no-prr", Reduction, "RFC 5681: at once", reduction = ReductionChoice::AtOnce),
    plain!("prr", Reduction, "RFC 9937: proportional", reduction = ReductionChoice::Prr),
    plain!(
        "restart-window",
        Validation,
        "RFC 5681: the initial window after an idle period",
        validation = ValidationChoice::RestartWindow
    ),
    plain!("cwv", Validation, "RFC 7661", validation = ValidationChoice::Cwv),
    plain!(
        "no-validation",
        Validation,
        "an unused window is kept",
        validation = ValidationChoice::Keep
    ),
    plain!("no-undo", Undo, "a reduction is never undone", undo = UndoConfig::default()),
    plain!("eifel", Undo, "RFC 3522: by timestamps", undo.eifel = true),
    plain!("dsack", Undo, "RFC 3708: by reported duplicates", undo.dsack = true),
    plain!("f-rto", Undo, "RFC 5682: after timeouts", undo.f_rto = true),
    plain!("undo", Undo, "eifel, dsack and f-rto", undo = UndoConfig::ALL),
    word(
        "rfc6298",
        Unit::Timer,
        "RFC 6298; initial=1s, min=200ms, variation=200ms, max=60s",
        |profile, given| {
            profile.timer = TimerChoice::Rfc6298(Rfc6298Config::read(given)?);
            Ok(())
        },
    ),
    word(
        "eifel-timer",
        Unit::Timer,
        "Ludwig, Sklower: CCR 2000; initial=1s, tick=10ms, max=60s, gains=scaled or fixed",
        |profile, given| {
            profile.timer = TimerChoice::Eifel(EifelConfig::read(given)?);
            Ok(())
        },
    ),
    word(
        "fixed-timer",
        Unit::Timer,
        "the same for every path; rto=1s, max=60s, back-off=on",
        |profile, given| {
            profile.timer = TimerChoice::Fixed(FixedConfig::read(given)?);
            Ok(())
        },
    ),
    plain!("no-ecn", Ecn, "neither offered nor accepted", ecn = EcnChoice::Off),
    plain!(
        "passive-ecn",
        Ecn,
        "RFC 3168, accepted but not offered",
        ecn = EcnChoice::Classic(EcnConfig { offer: false, ..OFFERED })
    ),
    plain!("ecn", Ecn, "RFC 3168, offered", ecn = EcnChoice::Classic(OFFERED)),
    plain!(
        "ecn++",
        Ecn,
        "RFC 3168, for SYN-ACKs, retransmissions, probes and FINs too",
        ecn = EcnChoice::Classic(EcnConfig { control_packets: true, ..OFFERED })
    ),
    plain!(
        "ecn-per-packet",
        Ecn,
        "RFC 8257, for DCTCP at both ends",
        ecn = EcnChoice::PerPacket(OFFERED)
    ),
    word(
        "passive-accecn",
        Unit::Ecn,
        "RFC 9768, accepted but not offered; options=on",
        |profile, given| accurate(profile, given, EcnConfig { offer: false, ..OFFERED }),
    ),
    word("accecn", Unit::Ecn, "RFC 9768, offered; options=on", |profile, given| {
        accurate(profile, given, OFFERED)
    }),
    word(
        "accecn++",
        Unit::Ecn,
        "RFC 9768, for SYN-ACKs, retransmissions, probes and FINs too; options=on",
        |profile, given| accurate(profile, given, EcnConfig { control_packets: true, ..OFFERED }),
    ),
    plain!("no-pacing", Pacing, "as soon as the windows allow", pacing = PacingChoice::None),
    plain!("pacing", Pacing, "spread over the round trip", pacing = PacingChoice::Rate),
    word("delayed-ack", Unit::Acknowledgements, "RFC 5681; delay=40ms", |profile, given| {
        let delay = given.duration("delay")?;
        profile.ack = AckChoice::Delayed(delay.unwrap_or(DELAYED_ACK));
        Ok(())
    }),
    word(
        "quick-ack",
        Unit::Acknowledgements,
        "Linux: at once at the start, then delayed as arrivals and replies suggest; max=200ms",
        |profile, given| {
            let max = given.duration("max")?;
            profile.ack = AckChoice::Quick(max.unwrap_or(QUICK_ACK));
            Ok(())
        },
    ),
    plain!(
        "immediate-ack",
        Acknowledgements,
        "as soon as the input is drained",
        ack = AckChoice::Immediate
    ),
    plain!("in-order", Ordering, "the stream of RFC 9293", ordering = OrderingChoice::InOrder),
    plain!(
        "unordered",
        Ordering,
        "each piece as it arrives, with its offset",
        ordering = OrderingChoice::Unordered
    ),
    word("adu", Unit::Ordering, "data units, encoded (COBS); max=16KiB", |profile, given| {
        units(profile, given, true)
    }),
    word(
        "adu-unordered",
        Unit::Ordering,
        "the same, each as soon as it is complete; max=16KiB",
        |profile, given| units(profile, given, false),
    ),
    word(
        "receive-window",
        Unit::FlowControl,
        "RFC 9293, tuned to the reader; initial=128KiB, max=6MiB",
        |profile, given| {
            let ReceiveWindowConfig { initial, max } = profile.flow.buffer();
            let initial = memory(given, "initial", initial)?;
            let max = memory(given, "max", max.max(initial))?;
            profile.flow = FlowChoice::ReceiveWindow(ReceiveWindowConfig { initial, max });
            Ok(())
        },
    ),
    word("fixed-window", Unit::FlowControl, "of one size; size=128KiB", |profile, given| {
        let size = memory(given, "size", profile.flow.buffer().initial)?;
        profile.flow = FlowChoice::Fixed(size);
        Ok(())
    }),
    word(
        "no-flow-control",
        Unit::FlowControl,
        "the largest window; drops data that does not fit; memory=6MiB",
        |profile, given| {
            let memory = memory(given, "memory", ReceiveWindowConfig::default().max)?;
            profile.flow = FlowChoice::None { memory };
            Ok(())
        },
    ),
    plain!("sack-option", SackOption, "RFC 2018, offered", options.sack = true),
    plain!("no-sack", SackOption, "SACK is not offered", options.sack = false),
    plain!("timestamps", TimestampsOption, "RFC 7323, offered", options.timestamps = true),
    plain!("no-timestamps", TimestampsOption, "not offered", options.timestamps = false),
    plain!("window-scale", WindowScaleOption, "RFC 7323, offered", options.window_scale = true),
    word(
        "no-window-scale",
        Unit::WindowScaleOption,
        "not offered; windows of 65535 bytes",
        |profile, _| {
            profile.options.window_scale = false;
            let ReceiveWindowConfig { initial, max } = profile.flow.buffer();
            let most = |bytes: usize| bytes.min(UNSCALED_WINDOW);
            let config = ReceiveWindowConfig { initial: most(initial), max: most(max) };
            // Memory that no window is about is as large as it is.
            if !matches!(profile.flow, FlowChoice::None { .. }) {
                profile.flow = profile.flow.with_buffer(config);
            }
            Ok(())
        },
    ),
    plain!("nagle", Nagle, "RFC 9293: small segments wait for others", nodelay = false),
    plain!("nodelay", Nagle, "small segments leave at once", nodelay = true),
    plain!("icmp-pmtud", PathMtu, "RFC 1191: by ICMP alone", path_mtu = PathMtuChoice::Icmp),
    plain!(
        "plpmtud",
        PathMtu,
        "RFC 4821: also by data probes, if ICMP messages are missing",
        path_mtu = PathMtuChoice::Probing
    ),
];
