//! One socket of the kernel's with its layers.

use std::net::SocketAddr;

use transom_extensions::Guarded;
use transom_tcp::extension::{
    Capabilities, Decider, Event, ExtensionChoice, ObservedLayers, Variable, Wake, variable,
};
use transom_tcp::time::Instant;

use crate::forms::{EVENTS, Form, form};
use crate::layout::{ANY, NAME, Opening, RawEvent, Request, text};
use crate::report::{ConnectionReport, LayerReport, Limit};
use crate::state::Known;

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
        };
        let now = Instant::from_nanos(opening.at);
        // Losses are counted in what extensions see, and they are rare.
        let (mut waking, mut listed) = (Wake::empty(), Wake::LOSS | Wake::TIMEOUT);
        for choice in choices {
            let guarded = Guarded::made(|| choice.extension());
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
                Err(error) => connection.departed.push(format!("{choice}: {error}")),
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
        let (event, missed) = self.known.take(raw);
        self.events += 1;
        self.missed += missed;
        self.layers.missed(missed);
        self.wake(&event);
    }

    /// The time has come that a layer asked for.
    pub(crate) fn on_time(&mut self, now: Instant) {
        self.wake(&Event { now, what: Wake::empty(), ack: None, sent: None });
        self.needs_kick |= self.request.cwnd > 0;
    }

    /// When the clock wakes a layer.
    pub(crate) fn next_wake(&self) -> Option<u64> {
        self.layers.next_wake().map(Instant::as_nanos)
    }

    fn wake(&mut self, event: &Event) {
        self.layers.wake(&self.known.observed, event);
        while let Some(departure) = self.layers.poll_departure() {
            self.departed.push(departure.to_string());
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
        let mss = u64::from(self.known.observed.info.mss).max(1);
        let segments = |bytes: Option<u64>| {
            bytes.map_or(ANY, |bytes| u32::try_from(bytes / mss).unwrap_or(ANY))
        };
        let before = self.request;
        self.request.cwnd = segments(self.most(Variable::Cwnd));
        self.request.cwnd_cnt = segments(self.most(Variable::CwndCnt));
        self.request.ssthresh = segments(self.most(Variable::Ssthresh));
        self.request.rate = self.most(Variable::PacingRate).map_or(0, |rate| rate.max(1));
        // With a window of nothing, nothing arrives that would make the kernel look.
        if before.cwnd == 0 && self.request.cwnd > 0 {
            self.needs_kick = true;
        }
    }

    pub(crate) fn report(&self) -> ConnectionReport {
        let info = &self.known.observed.info;
        let name = |id| {
            let found = self.layers.layers().find(|layer| layer.id == id);
            found.map_or_else(|| format!("layer {id}"), |layer| layer.name.to_owned())
        };
        let (mut limits, mut without_effect) = (Vec::new(), Vec::new());
        for variable in variable::ALL {
            let ruling = self.layers.ruling(&self.known.observed, variable);
            let asked = ruling.requested.is_some() || ruling.conflict;
            if asked && matches!(form(variable), Form::Unbounded(_)) {
                without_effect.push(variable.to_string());
            } else if asked || variable == Variable::Cwnd {
                limits.push(Limit {
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
                });
            }
        }
        let layers = self.layers.layers();
        ConnectionReport {
            cookie: self.cookie,
            local: self.local,
            remote: self.remote,
            had: text(&self.had),
            grows_by: info.congestion.to_owned(),
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
