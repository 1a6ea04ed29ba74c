//! One socket of the kernel's with its layers.

use std::net::SocketAddr;

use transom_extensions::Guarded;
use transom_tcp::extension::{
    Capabilities, Decider, ExtensionChoice, ObservedLayers, Occasion, Variable, Wake,
};
use transom_tcp::time::{Duration, Instant};

use crate::layout::{ANY, Decision, NAME, NO_SLOT, Opening, RawEvent, Request, text};
use crate::log::{LogEvent, Windows};
use crate::report::{ConnectionReport, LayerReport, Limit};
use crate::state::Known;
use crate::variable_forms::{EVENTS, Form, form};

/// Who decides where the program in the kernel does.
const IN_KERNEL: &str = "the program in the kernel";

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) slot: u32,
    cookie: u64,
    local: SocketAddr,
    remote: SocketAddr,
    had: [u8; NAME],
    known: Known,
    layers: ObservedLayers,
    departed: Vec<String>,
    /// What is to be written.
    pub(crate) request: Request,
    events: u64,
    missed: u64,
    /// The kernel must look at the socket, as nothing may arrive by itself.
    pub(crate) needs_kick: bool,
    /// The number of its network namespace.
    pub(crate) place: u32,
    /// What the program in the kernel has decided last.
    decided: Option<Decision>,
    /// Until then it lets nothing leave.
    pause_until: Option<u64>,
    /// What there is to be logged.
    pub(crate) log: Vec<LogEvent>,
}

impl Connection {
    /// Attaches an extension of each choice. One that the connection cannot have is noted.
    pub(crate) fn open(opening: &Opening, choices: &[ExtensionChoice]) -> Self {
        let mut connection = Connection {
            slot: opening.slot,
            cookie: opening.cookie,
            local: opening.local,
            remote: opening.remote,
            had: opening.had,
            known: Known::new(opening),
            layers: ObservedLayers::default(),
            departed: Vec::new(),
            request: Request::none(opening.cookie),
            events: 0,
            missed: 0,
            needs_kick: false,
            place: opening.place,
            decided: None,
            pause_until: None,
            log: vec![LogEvent::Opened {
                local: opening.local,
                remote: opening.remote,
                had: text(&opening.had),
                limited: opening.slot != NO_SLOT,
            }],
        };
        let now = Instant::from_nanos(opening.at);
        // Losses are counted in what extensions see, and they are rare.
        let (mut waking, mut listed) = (Wake::empty(), Wake::LOSS | Wake::TIMEOUT);
        for choice in choices {
            let guarded = Guarded::against_panics(|| choice.extension());
            let (wakes, requires) = {
                use transom_tcp::extension::Extension as _;
                (guarded.wake_on(), guarded.requires())
            };
            let observed = &connection.known.observed;
            match connection.layers.attach(now, observed, Box::new(guarded)) {
                Ok(_) => {
                    waking |= wakes & EVENTS;
                    if requires.contains(Capabilities::ACK_LIST) {
                        listed |= Wake::ACK | Wake::DUPLICATE_ACK;
                    }
                }
                Err(error) => connection.depart(format!("{choice}: {error}")),
            }
        }
        if choices.is_empty() {
            listed = Wake::empty();
        }
        connection.request.waking = (waking - Wake::TIMER).bits();
        connection.request.reported = (waking | listed).bits() & !Wake::TIMER.bits();
        connection.ask();
        connection.needs_kick = false;
        connection
    }

    /// A record of it has arrived.
    pub(crate) fn on_event(&mut self, raw: &RawEvent) {
        let (occasion, missed) = self.known.take(raw);
        self.events += 1;
        self.missed += missed;
        self.layers.missed(missed);
        self.wake(&occasion);
        self.note(occasion.what, occasion.ack.and_then(|ack| ack.rtt));
    }

    /// The program in the kernel has decided by itself.
    pub(crate) fn on_decision(&mut self, raw: &RawEvent, decision: Decision) {
        let acks = self.known.acks();
        // With layers, they are told of the same event by another record.
        let what = if self.layers.layers().next().is_some() { 0 } else { raw.what };
        let (occasion, _) = self.known.take(&RawEvent { acks, what, ..*raw });
        self.events += 1;
        let changed = self.decided.replace(decision) != Some(decision);
        if decision.pause_us > 0 {
            self.pause_until = Some(raw.at.saturating_add(u64::from(decision.pause_us) * 1000));
        }
        if changed {
            self.note_request(Variable::Cwnd);
        }
        self.note(occasion.what, None);
    }

    /// The time has come that a layer asked for, or a pause is over.
    pub(crate) fn on_time(&mut self, now: Instant) {
        if self.pause_until.is_some_and(|until| until <= now.as_nanos()) {
            self.pause_until = None;
            self.needs_kick = true;
        }
        self.wake(&Occasion { now, what: Wake::empty(), ack: None, sent: None });
        self.needs_kick |= self.request.segments > 0;
    }

    /// When the clock wakes a layer, or a pause ends.
    pub(crate) fn next_wake(&self) -> Option<u64> {
        let layers = self.layers.next_wake().map(Instant::as_nanos);
        layers.into_iter().chain(self.pause_until).min()
    }

    fn depart(&mut self, reason: String) {
        self.log.push(LogEvent::Departed { reason: reason.clone() });
        self.departed.push(reason);
    }

    /// Logs an event that is rare enough.
    fn note(&mut self, what: Wake, rtt: Option<Duration>) {
        let event = match () {
            () if what.contains(Wake::TIMEOUT) => LogEvent::Timeout,
            () if what.contains(Wake::LOSS) => LogEvent::Loss,
            () if what.contains(Wake::ROUND) => LogEvent::Round,
            () => return,
        };
        let info = &self.known.observed.state;
        self.log.push(event(Windows {
            own: info.cwnd,
            used: self.limit(Variable::Cwnd).used,
            in_flight: info.in_flight,
            srtt_us: info.srtt.map(Duration::as_micros),
            rtt_us: rtt.map(Duration::as_micros),
            min_rtt_us: info.min_rtt.map(Duration::as_micros),
            missed: self.missed,
        }));
    }

    fn note_request(&mut self, variable: Variable) {
        let limit = self.limit(variable);
        self.log.push(LogEvent::Request(limit));
    }

    fn wake(&mut self, occasion: &Occasion) {
        self.layers.wake(&self.known.observed, occasion);
        while let Some(departure) = self.layers.poll_departure() {
            self.depart(departure.to_string());
        }
        self.ask();
    }

    /// The upper end of what is asked of a variable.
    fn most(&self, variable: Variable) -> Option<u64> {
        let ruling = self.layers.ruling(&self.known.observed, variable);
        ruling.requested.map(|asked| asked.high()).filter(|high| *high < u64::MAX)
    }

    /// Brings the request up to date. A lower end never matters: TCP's own value is never above its safe range.
    fn ask(&mut self) {
        let mss = u64::from(self.known.observed.state.mss).max(1);
        let segments = |bytes: Option<u64>| {
            bytes.map_or(ANY, |bytes| u32::try_from(bytes / mss).unwrap_or(ANY))
        };
        let before = self.request;
        self.request.segments = segments(self.most(Variable::Cwnd));
        self.request.cwnd_cnt = segments(self.most(Variable::CwndCnt));
        self.request.ssthresh = segments(self.most(Variable::Ssthresh));
        self.request.rate = self.most(Variable::PacingRate).map_or(0, |rate| rate.max(1));
        let now = self.request;
        for (variable, changed) in [
            (Variable::Cwnd, now.segments != before.segments),
            (Variable::CwndCnt, now.cwnd_cnt != before.cwnd_cnt),
            (Variable::Ssthresh, now.ssthresh != before.ssthresh),
            (Variable::PacingRate, now.rate != before.rate),
        ] {
            if changed {
                self.note_request(variable);
            }
        }
        // With a window of nothing, nothing arrives that would make the kernel look.
        if before.segments == 0 && self.request.segments > 0 {
            self.needs_kick = true;
        }
    }

    /// What is asked of a variable, and what is used.
    fn limit(&self, variable: Variable) -> Limit {
        let ruling = self.layers.ruling(&self.known.observed, variable);
        let name = |id| {
            let found = self.layers.layers().find(|layer| layer.id == id);
            found.map_or_else(|| format!("layer {id}"), |layer| layer.name.to_owned())
        };
        let mut limit = Limit {
            variable: variable.to_string(),
            own: ruling.own,
            asked: ruling.requested.map(|asked| asked.to_string()),
            used: ruling.effective,
            by: match ruling.decided_by {
                _ if ruling.conflict => "conflict".to_owned(),
                Decider::Tcp => "tcp".to_owned(),
                Decider::SafeRange => "safe-range".to_owned(),
                Decider::Layer(id) => name(id),
            },
        };
        let decided = self.decided.filter(|_| variable == Variable::Cwnd);
        if let Some(decision) = decided {
            let asked = match self.pause_until {
                Some(_) => 0,
                None => u64::from(decision.window) * u64::from(self.known.observed.state.mss),
            };
            limit.asked.get_or_insert_with(|| format!("0..={asked}"));
            if asked < limit.used {
                (limit.used, limit.by) = (asked, IN_KERNEL.to_owned());
            }
        }
        limit
    }

    pub(crate) fn report(&self) -> ConnectionReport {
        let info = &self.known.observed.state;
        let (mut limits, mut without_effect) = (Vec::new(), Vec::new());
        for variable in Variable::ALL {
            let ruling = self.layers.ruling(&self.known.observed, variable);
            let asked = ruling.requested.is_some() || ruling.conflict;
            if asked && matches!(form(variable), Form::Unbounded(_)) {
                without_effect.push(variable.to_string());
            } else if asked || variable == Variable::Cwnd {
                limits.push(self.limit(variable));
            }
        }
        let layers = self.layers.layers();
        ConnectionReport {
            cookie: self.cookie,
            local: self.local,
            remote: self.remote,
            had: text(&self.had),
            grows_by: info.congestion.to_string(),
            layers: layers
                .map(|layer| LayerReport { id: layer.id.get(), name: layer.name.to_owned() })
                .collect(),
            departed: self.departed.clone(),
            limits,
            without_effect,
            mss: info.mss,
            in_flight: info.in_flight,
            srtt_us: info.srtt.map(|time| time.as_micros()),
            min_rtt_us: info.min_rtt.map(|time| time.as_micros()),
            delivered: info.delivered,
            delivery_rate: info.delivery_rate,
            retransmitted: info.counters.retransmitted_segments,
            phase: info.phase.name().to_owned(),
            events: self.events,
            missed_acks: self.missed,
        }
    }
}
