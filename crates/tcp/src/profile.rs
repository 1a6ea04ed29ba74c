//! Which unit a connection uses for each job, and the settings that go with them.
//!
//! A [`Profile`] is checked once, when it is built, and shared by all connections that use it. A combination that
//! cannot work is refused with the reason; it is never silently repaired.

mod ack_rule;
mod assemble;
mod check;
mod choices;

use crate::arguments::Fraction;
use crate::ecn::EcnConfig;
use crate::extension::ExtensionChoice;
use crate::flow::receive_window::ReceiveWindowConfig;
use crate::holes::HoleChoice;
use crate::path_mtu::{PathMtuChoice, PathMtuDiscovery};
use crate::persistence::Persistence;
use crate::rto::rfc6298::Rfc6298Config;
use crate::slow_start::standard::Standard;
use crate::time::Duration;
use crate::undo::UndoConfig;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub use crate::congestion::{CongestionChoice, Counting, InitialWindow};
pub use ack_rule::AckRule;
pub use check::ProfileError;
pub use choices::{
    AckChoice, EcnChoice, FlowChoice, OfferedOptions, OrderingChoice, PacingChoice, RecoveryChoice,
    ReductionChoice, SlowStartChoice, TimerChoice, ValidationChoice,
};

/// Keep-alive settings (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection is given up.
    pub probes: u32,
}

transom_base::setters! {
    const KeepAlive:
    with_idle = idle: Duration,
    with_interval = interval: Duration,
    with_probes = probes: u32,
}

impl Default for KeepAlive {
    // [MUST-28] two hours.
    fn default() -> Self {
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// Everything that can be chosen about a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// Congestion control: how much may be in flight.
    pub congestion: CongestionChoice,
    /// The initial and the restart window.
    pub initial_window: InitialWindow,
    /// The amount that an acknowledgement counts for when the window grows.
    pub counting: Counting,
    /// Slow start: how the window grows at the beginning.
    pub slow_start: SlowStartChoice,
    /// Loss recovery: which data is retransmitted.
    pub recovery: RecoveryChoice,
    /// How often and how long that is tried, with a peer that has agreed to it; `None`: until it has arrived.
    pub persistence: Option<Persistence>,
    /// This end's handling of missing data.
    pub holes: HoleChoice,
    /// The retransmission timer.
    pub timer: TimerChoice,
    /// The order of delivery.
    pub ordering: OrderingChoice,
    /// The window that the receiver advertises.
    pub flow: FlowChoice,
    /// When the receiver acknowledges.
    pub ack: AckChoice,
    /// When transmissions leave.
    pub pacing: PacingChoice,
    /// How fast recovery reduces the window.
    pub reduction: ReductionChoice,
    /// The validation of a window that was not fully used.
    pub validation: ValidationChoice,
    /// The detectors of spurious reductions.
    pub undo: UndoConfig,
    /// How marks are fed back, and whether ECN is offered.
    pub ecn: EcnChoice,
    /// Extensions that every connection gets, from the bottom up.
    pub extensions: Vec<ExtensionChoice>,
    /// Options offered to the peer.
    pub options: OfferedOptions,
    /// The largest segment announced and sent, in bytes of payload and options, if less than the interface takes
    /// (what `TCP_MAXSEG` sets); at least 64.
    pub max_segment: Option<u16>,
    /// How the connection finds out what its path carries.
    pub path_mtu: PathMtuChoice,
    /// Whether packets may be fragmented, and whether what routers say of their size counts.
    pub path_mtu_discovery: PathMtuDiscovery,
    /// The path MTU of IPv4 is never taken to be less, in bytes, whatever routers say; 68 to 65,535 (`min_pmtu` of Linux). Where they say that a path
    /// carries less, packets of this size may be fragmented.
    pub min_path_mtu: u32,
    /// Duplicate acknowledgements that mean loss (DupThresh of RFC 6675).
    pub dup_thresh: u32,
    /// Take fewer for a loss when so few segments are outstanding that not enough can come (RFC 5827).
    pub early_retransmit: bool,
    /// Take more for a loss where DSACKs show that the path reorders, up to this share of cwnd; `None`: the usual number.
    pub reordering: Option<Fraction>,
    /// Let the first of them bring new data out (RFC 3042).
    pub limited_transmit: bool,
    /// A laboratory's rule about which acknowledgements are believed, beside those of RFC 9293.
    pub ack_rule: Option<Arc<dyn AckRule>>,
    /// Send buffer at the start, in bytes; it grows with the congestion window.
    pub send_buffer: usize,
    /// Send buffer at most, in bytes.
    pub max_send_buffer: usize,
    /// Send small segments at once instead of gathering them (switches Nagle's algorithm off).
    pub nodelay: bool,
    /// Keep-alive probes; off by default.
    pub keep_alive: Option<KeepAlive>,
    /// Retransmissions of one segment after which the application gets a report (R1 of RFC 9293).
    pub r1: u32,
    /// Retransmissions of one segment after which the connection is given up (R2 of RFC 9293); `None`: never.
    pub r2: Option<u32>,
    /// The same for a SYN; with the back-off this has to amount to three minutes at least. A SYN that offers accurate ECN has four more, which do not back
    /// off.
    pub syn_r2: u32,
    /// Give up when data that the application has written stays unacknowledged for so long, sent or not (RFC 9293 section 3.9.1.2, RFC 5482).
    pub user_timeout: Option<Duration>,
    /// Tell the peer of the user timeout, if one is set (RFC 5482's ENABLED).
    pub advertise_user_timeout: bool,
    /// Take over the peer's User Timeout option within these bounds (RFC 5482 section 3.1): (lower, upper).
    pub adopt_user_timeout: Option<(Duration, Duration)>,
    /// Calls report soft errors; see [`Setting::SoftErrors`](crate::connection::Setting::SoftErrors).
    pub report_soft_errors: bool,
    /// Data that came in order before an error can be read after it, as on Linux. Without it the error takes that data away, so that no reader takes a part
    /// for the whole (RFC 9293 section 3.10.7.4 has all queues flushed).
    pub read_after_error: bool,
    /// How long TIME-WAIT lasts: 2·MSL.
    pub time_wait: Duration,
    /// How long a closed connection waits for the peer's FIN (FIN-WAIT-2); zero: not at all.
    pub fin_wait_2: Duration,
    /// Zero-window probes or retransmissions after which a connection that the application has closed is given up.
    pub orphan_retries: u32,
    /// How long a connection keeps its extensions after the application has closed it. After that it is plain TCP, which ends by itself, even if an
    /// extension delayed it.
    pub extensions_after_close: Duration,
    /// Hop limit (time to live) of its packets.
    pub hop_limit: u8,
    /// Differentiated services code point of its packets, 0 to 63.
    pub dscp: u8,
}

transom_base::setters! {
    Profile:
    with_congestion = congestion: CongestionChoice,
    with_initial_window = initial_window: InitialWindow,
    with_counting = counting: Counting,
    with_slow_start = slow_start: SlowStartChoice,
    with_recovery = recovery: RecoveryChoice,
    with_persistence = persistence: Option<Persistence>,
    with_holes = holes: HoleChoice,
    with_timer = timer: TimerChoice,
    with_ordering = ordering: OrderingChoice,
    with_flow = flow: FlowChoice,
    with_ack = ack: AckChoice,
    with_pacing = pacing: PacingChoice,
    with_reduction = reduction: ReductionChoice,
    with_validation = validation: ValidationChoice,
    with_undo = undo: UndoConfig,
    with_ecn = ecn: EcnChoice,
    with_extensions = extensions: Vec<ExtensionChoice>,
    with_options = options: OfferedOptions,
    with_max_segment = max_segment: Option<u16>,
    with_path_mtu = path_mtu: PathMtuChoice,
    with_path_mtu_discovery = path_mtu_discovery: PathMtuDiscovery,
    with_min_path_mtu = min_path_mtu: u32,
    with_dup_thresh = dup_thresh: u32,
    with_early_retransmit = early_retransmit: bool,
    with_reordering = reordering: Option<Fraction>,
    with_limited_transmit = limited_transmit: bool,
    with_ack_rule = ack_rule: Option<Arc<dyn AckRule>>,
    with_send_buffer = send_buffer: usize,
    with_max_send_buffer = max_send_buffer: usize,
    with_nodelay = nodelay: bool,
    with_keep_alive = keep_alive: Option<KeepAlive>,
    with_r1 = r1: u32,
    with_r2 = r2: Option<u32>,
    with_syn_r2 = syn_r2: u32,
    with_user_timeout = user_timeout: Option<Duration>,
    with_advertise_user_timeout = advertise_user_timeout: bool,
    with_adopt_user_timeout = adopt_user_timeout: Option<(Duration, Duration)>,
    with_report_soft_errors = report_soft_errors: bool,
    with_read_after_error = read_after_error: bool,
    with_time_wait = time_wait: Duration,
    with_fin_wait_2 = fin_wait_2: Duration,
    with_orphan_retries = orphan_retries: u32,
    with_extensions_after_close = extensions_after_close: Duration,
    with_hop_limit = hop_limit: u8,
    with_dscp = dscp: u8,
}

/// The units of the preset `modern`, which is what a new connection should use today; every setting that is no unit's as in
/// [`Profile::classic`].
impl Default for Profile {
    fn default() -> Self {
        Profile {
            congestion: CongestionChoice::cubic(),
            slow_start: SlowStartChoice::HyStart,
            recovery: RecoveryChoice::RackTlp,
            reduction: ReductionChoice::Prr,
            undo: UndoConfig::ALL,
            ecn: EcnChoice::Classic(EcnConfig { offer: true, ..EcnConfig::default() }),
            ack: AckChoice::Quick(Duration::from_millis(200)),
            path_mtu: PathMtuChoice::Probing,
            ..Profile::classic()
        }
    }
}

/// The controller whose slow start is plain, unless a word says otherwise. HyStart is a part of Linux' CUBIC, and ends slow start at half of what the
/// path carries. Reno would gain one segment in each round trip from there on.
pub(crate) const PLAIN: &str = "reno";

/// The slow start that goes before a controller: `chosen`, but HyStart only before one that grows fast.
pub(crate) fn slow_start_before(controller: &str, chosen: SlowStartChoice) -> SlowStartChoice {
    if controller == PLAIN && chosen == SlowStartChoice::HyStart {
        return SlowStartChoice::Standard(Standard::default());
    }
    chosen
}

impl Profile {
    /// Chooses the controller, and what belongs to it: pacing for one that counts on it, and its slow start, which is plain for Reno in the place of
    /// `hystart`. The one that is there already changes nothing.
    pub fn choose_congestion(&mut self, choice: CongestionChoice) {
        if choice == self.congestion {
            return;
        }
        if choice.needs_pacing() {
            self.pacing = PacingChoice::Rate;
        }
        self.slow_start = slow_start_before(choice.name(), self.slow_start);
        self.congestion = choice;
    }

    /// The units that the core RFCs describe, and no later ones: Reno with SACK (RFC 5681, RFC 6675), delayed acknowledgements, one
    /// retransmission timer (RFC 6298). The papers' experiments name it as the preset `classic`.
    pub fn classic() -> Self {
        Profile {
            congestion: CongestionChoice::reno(),
            initial_window: InitialWindow::default(),
            counting: Counting::default(),
            slow_start: SlowStartChoice::Standard(Standard::default()),
            recovery: RecoveryChoice::Sack,
            persistence: None,
            holes: HoleChoice::Wait,
            timer: TimerChoice::Rfc6298(Rfc6298Config::default()),
            ordering: OrderingChoice::InOrder,
            flow: FlowChoice::ReceiveWindow(ReceiveWindowConfig::default()),
            ack: AckChoice::Delayed(Duration::from_millis(40)),
            pacing: PacingChoice::None,
            reduction: ReductionChoice::AtOnce,
            validation: ValidationChoice::RestartWindow,
            undo: UndoConfig::default(),
            ecn: EcnChoice::Classic(EcnConfig::default()),
            extensions: Vec::new(),
            options: OfferedOptions::default(),
            max_segment: None,
            path_mtu: PathMtuChoice::Icmp,
            path_mtu_discovery: PathMtuDiscovery::Want,
            min_path_mtu: 552,
            dup_thresh: 3,
            early_retransmit: false,
            reordering: None,
            limited_transmit: true,
            ack_rule: None,
            send_buffer: 256 * 1024,
            max_send_buffer: 4 * 1024 * 1024,
            nodelay: false,
            // [MAY-5] [MUST-25] offered, and off
            keep_alive: None,
            // [SHLD-10]
            r1: 3,
            // [SHLD-11] 15 retransmissions from 200 ms on, doubled up to a minute, come to more than eight minutes
            r2: Some(15),
            syn_r2: 7,
            user_timeout: None,
            advertise_user_timeout: false,
            adopt_user_timeout: None,
            report_soft_errors: false,
            read_after_error: false,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            orphan_retries: 8,
            extensions_after_close: Duration::from_secs(120),
            hop_limit: 64,
            dscp: 0,
        }
    }
}

/// The largest window that can be advertised (RFC 7323 section 2.3).
pub const MAX_WINDOW: usize = 65_535 << 14;
