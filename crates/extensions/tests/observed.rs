//! Every extension decides the same over a reported state of a connection as over the connection itself.

use crate::common::Setup;
use crate::common::world::{Path, lossy, transfer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use transom_extensions::{CATALOGUE, stack};
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::extension::{
    Capabilities, Extension, ExtensionChoice, Limits, Observed, ObservedLayers, Occasion, Value,
    Variable, View, Wake,
};
use transom_tcp::time::Instant;

/// An extension on a connection, and a second one over the reported state. Both must set the same limits at all times.
#[derive(Debug)]
struct Twice {
    on_connection: Box<dyn Extension>,
    waiting: Option<Box<dyn Extension>>,
    layers: ObservedLayers,
    acks_seen: u64,
    compared: Arc<AtomicU64>,
}

impl Twice {
    fn compare(&self, limits: &Limits) {
        let layer = self.layers.layers().next().expect("the other is still attached");
        for variable in Variable::ALL {
            assert_eq!(limits.asked(variable), layer.limits.asked(variable), "{variable}");
        }
        self.compared.fetch_add(1, Ordering::Relaxed);
    }
}

impl Extension for Twice {
    fn name(&self) -> &str {
        self.on_connection.name()
    }

    fn requires(&self) -> Capabilities {
        self.on_connection.requires()
    }

    fn wake_on(&self) -> Wake {
        // All acknowledgements, so that the other's list has them too.
        self.on_connection.wake_on() | Wake::ACK | Wake::DUPLICATE_ACK
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.on_connection.on_attach(view, limits);
        let other = self.waiting.take().expect("attached once");
        self.layers.attach(view.now(), &Observed::from(view), other).expect("the same connection");
        self.acks_seen = view.acks_seen();
        self.compare(limits);
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        let observed = Observed::from(view);
        for variable in Variable::ALL {
            let ruling = self.layers.ruling(&observed, variable);
            assert_eq!(view.ruling(variable), ruling, "{variable}");
        }
        // Acknowledgements that woke no layer are reported now.
        let seen = view.acks_seen() - self.acks_seen;
        self.acks_seen += seen;
        let before = (seen - u64::from(occasion.ack.is_some())) as usize;
        if self.requires().contains(Capabilities::ACK_LIST) {
            for ack in view.last_acks(seen as usize).take(before) {
                let quiet = Occasion {
                    now: Instant::ZERO,
                    what: Wake::empty(),
                    ack: Some(ack.clone()),
                    sent: None,
                };
                self.layers.wake(&observed, &quiet);
            }
        } else {
            self.layers.missed(before as u64);
        }
        if occasion.what.intersects(self.on_connection.wake_on() | Wake::TIMER) {
            self.on_connection.on_wake(occasion, view, limits);
        }
        self.layers.wake(&observed, occasion);
        self.compare(limits);
    }
}

fn twice(text: &str, compared: &Arc<AtomicU64>) -> ExtensionChoice {
    let choice = stack(text).unwrap().remove(0);
    let compared = compared.clone();
    ExtensionChoice::new(text, move || {
        Box::new(Twice {
            on_connection: choice.extension(),
            waiting: Some(choice.extension()),
            layers: ObservedLayers::default(),
            acks_seen: 0,
            compared: compared.clone(),
        })
    })
}

/// The name with its required parameters.
fn text(name: &str) -> &str {
    match name {
        "rate-cap" => "rate-cap(rate=200kB)",
        "deadline" => "deadline(bytes=200kB, within=3s)",
        "greedy" => "greedy(cwnd=4)",
        // By itself it may stop a transfer for good.
        "scramble" => "scramble(outside=2)",
        name => name,
    }
}

#[test]
fn every_extension_decides_the_same_over_a_reported_state() {
    let mut left_out = Vec::new();
    for entry in CATALOGUE {
        let choice = stack(text(entry.name)).unwrap().remove(0);
        // The copies of `cm` share a manager, which would see two connections. The list of past messages is not reported.
        let reported = !choice.extension().requires().contains(Capabilities::MESSAGE_LIST);
        if !reported || entry.name == "cm" {
            left_out.push(entry.name);
            continue;
        }
        let compared = Arc::new(AtomicU64::new(0));
        for seed in 0..8 {
            let mut setup = Setup::default();
            setup.profile.congestion = CongestionChoice::reno();
            setup.profile.r2 = Some(40);
            setup.profile.options.timestamps = true;
            setup.profile.extensions = vec![twice(text(entry.name), &compared)];
            let late = [0, 5, 30][seed as usize % 3];
            let loss = [0, 10, 50, 100][seed as usize % 4];
            let path = Path { loss, duplicate: late, late, delay: 20_000, jitter: 300 * late };
            let mut world = lossy([&setup, &setup], path, seed);
            transfer(&mut world, [200_000, 20_000], seed);
        }
        let compared = compared.load(Ordering::Relaxed);
        println!("{}: {compared} looks compared", entry.name);
        assert!(compared > 500, "{}: {compared}", entry.name);
    }
    println!("left out: {left_out:?}");
    assert!(left_out.contains(&"cm") && left_out.len() < CATALOGUE.len() / 2, "{left_out:?}");
}

/// Limits are kept within the safe range. A layer with an impossible limit is detached.
#[test]
fn layers_over_a_reported_state_are_safe_and_may_fail() {
    let compared = Arc::new(AtomicU64::new(0));
    let seen: Arc<std::sync::Mutex<Option<Observed>>> = Arc::default();
    #[derive(Debug)]
    struct Keep(Arc<std::sync::Mutex<Option<Observed>>>);
    impl Extension for Keep {
        fn name(&self) -> &str {
            "keep"
        }
        fn wake_on(&self) -> Wake {
            Wake::ROUND
        }
        fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, _limits: &mut Limits) {
            self.0.lock().unwrap().get_or_insert(Observed::from(view));
        }
    }
    let mut setup = Setup::default();
    let kept = seen.clone();
    let keep = ExtensionChoice::new("keep", move || Box::new(Keep(kept.clone())));
    setup.profile.extensions = vec![twice("nice", &compared), keep];
    let path = Path { loss: 0, duplicate: 0, late: 0, delay: 20_000, jitter: 0 };
    transfer(&mut lossy([&setup, &Setup::default()], path, 1), [100_000, 0], 1);
    let observed = seen.lock().unwrap().take().expect("a round is over");

    #[derive(Debug)]
    struct Wild(u32);
    impl Extension for Wild {
        fn name(&self) -> &str {
            "wild"
        }
        fn wake_on(&self) -> Wake {
            Wake::ACK
        }
        fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
            self.0 += 1;
            limits.at_least(Value::Cwnd(1000 * view.cwnd()));
            if self.0 > 1 {
                limits.between(Value::Cwnd(2), Value::Cwnd(1));
            }
        }
    }
    let mut layers = ObservedLayers::default();
    let now = Instant::from_nanos(5);
    let wild = layers.attach(now, &observed, Box::new(Wild(0))).unwrap();
    let occasion = Occasion { now, what: Wake::ACK, ack: None, sent: None };
    assert!(layers.wake(&observed, &occasion));
    let ruling = layers.ruling(&observed, Variable::Cwnd);
    assert_eq!((ruling.effective, ruling.own), (observed.state.cwnd, observed.state.cwnd));
    assert!(layers.wake(&observed, &occasion));
    assert_eq!(layers.ruling(&observed, Variable::Cwnd).requested, None);
    assert_eq!(layers.poll_departure().unwrap().layer, Some(wild));
    assert_eq!((layers.layers().count(), layers.next_wake()), (0, None));
    // An extension cannot require a capability that is not there.
    let nothing = Observed { capabilities: Capabilities::empty(), ..observed };
    for entry in CATALOGUE {
        let extension = stack(text(entry.name)).unwrap().remove(0).extension();
        let needs = !extension.requires().is_empty();
        assert_eq!(layers.attach(now, &nothing, extension).is_err(), needs, "{}", entry.name);
    }
}
