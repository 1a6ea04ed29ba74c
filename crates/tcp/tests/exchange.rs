//! Units exchanged on a live connection, worked by hand from what `transom_tcp::UnitChoice` promises.
//!
//! Segments are 1000 bytes, the initial window is 10 of them, SRTT is 100 ms.

use crate::common;

use common::{Peer, Setup, ms, seg};
use transom_tcp::UnitChoice;
use transom_tcp::compose::{ComposeError, Composer, Unit, compose_classic as compose};
use transom_tcp::congestion::{ALGORITHMS, CongestionChoice};
use transom_tcp::congestion::{Algorithm, CongestionControl, Controller, Takeover, Window};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{
    AckChoice, AckContext, Estimate, PacingChoice, Phase, Profile, ProfileError, ReductionChoice,
    Setting, UndoConfig,
};

/// Ten segments out, thirty more queued, and 100 ms have passed.
fn ten_out(setup: Setup) -> Peer {
    let mut peer = setup.active();
    peer.write(40_000);
    assert_eq!(peer.ranges().len(), 10);
    peer.wait(100);
    peer
}

fn exchange(peer: &mut Peer, text: &str) {
    peer.connection
        .exchange(peer.now, UnitChoice::Congestion(compose(text).unwrap().congestion))
        .unwrap();
    peer.pump();
}

/// The duplicates by which the first of ten segments is known to be lost: fast recovery, with ssthresh 5000.
fn lose_the_first(peer: &mut Peer) {
    for i in 2..=4 {
        peer.recv(seg().sack(&[(1001, i * 1000 + 1)]));
    }
    assert_eq!((peer.info().phase, peer.info().ssthresh), (Phase::Recovery, 5000));
    peer.drain();
}

/// A controller that would have everything at once, and tells what it was given.
#[derive(Clone, Copy, Debug)]
struct Greedy;

impl Algorithm for Greedy {
    fn controller(&self) -> Controller {
        Controller::custom(*self)
    }
}

impl std::fmt::Display for Greedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("greedy")
    }
}

impl CongestionControl for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn on_takeover(&mut self, window: &mut Window, takeover: &Takeover) {
        // Ten segments left at 100 ms, and the first two are acknowledged: after that of the SYN a second sample of 100 ms.
        assert_eq!(
            *takeover,
            Takeover {
                now: Instant::from_millis(200),
                in_flight: 12_000,
                delivered: 2000,
                estimate: Some(Estimate { srtt: ms(100), rttvar: Duration::from_micros(37_500) }),
                min_rtt: Some(ms(100)),
            }
        );
        assert_eq!((window.cwnd, window.ssthresh), (12_000, u64::MAX));
        window.cwnd = 1_000_000;
        window.cwnd_cnt = 999;
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        window.resize(window.cwnd + 10 * acked);
    }
}

/// The window and what was measured are kept; a controller has nothing more than its predecessor until it earns it.
#[test]
fn the_window_is_handed_over() {
    let mut peer = ten_out(Setup::newreno());
    peer.recv(seg().ack(2001)).drain();
    let before = peer.info();
    assert_eq!((before.cwnd, before.in_flight), (12_000, 12_000));
    peer.connection
        .exchange(peer.now, UnitChoice::Congestion(CongestionChoice::new(Greedy)))
        .unwrap();
    peer.pump();
    peer.silent();
    let after = peer.info();
    assert_eq!((&*after.congestion, after.cwnd, after.cwnd_cnt), ("greedy", 12_000, 0));
    assert_eq!(peer.connection.profile().congestion.name(), "greedy");
    assert_eq!((after.srtt, after.rttvar, after.rto), (before.srtt, before.rttvar, before.rto));
    assert_eq!((after.min_rtt, after.delivered), (before.min_rtt, before.delivered));
    // Slow start is the other unit's: 1000 for 1000.
    peer.recv(seg().ack(3001));
    assert_eq!(peer.info().cwnd, 13_000);
}

/// Reno's count towards its next segment does not pass to Vegas; but a unit is not exchanged for itself.
#[test]
fn nothing_is_exchanged_for_the_same() {
    let mut peer = ten_out(Setup::default());
    lose_the_first(&mut peer);
    peer.wait(100).recv(seg().ack(12_001)).drain();
    assert_eq!((peer.info().phase, peer.info().cwnd), (Phase::Open, 5000));
    peer.wait(100).recv(seg().ack(13_001)).drain();
    assert_eq!((peer.info().cwnd, peer.info().cwnd_cnt), (5000, 1000));
    exchange(&mut peer, "reno");
    assert_eq!(peer.info().cwnd_cnt, 1000);
    exchange(&mut peer, "cubic");
    assert_eq!((peer.info().cwnd, peer.info().cwnd_cnt, peer.info().ssthresh), (5000, 0, 5000));
    // CUBIC begins an epoch of its own: cwnd is W_max, and W_est grows by 1000·1000/5000 for a segment.
    peer.recv(seg().ack(14_001));
    assert_eq!(peer.info().cwnd, 5200);
}

/// Without congestion control nothing is learned of the path: who comes after it begins at the beginning, and waits until what is in flight
/// allows it.
#[test]
fn after_no_control_the_beginning() {
    let mut peer =
        Setup::newreno().profile(|profile| profile.congestion = CongestionChoice::none()).active();
    peer.write(60_000);
    assert_eq!(peer.ranges().len(), 60);
    exchange(&mut peer, "reno");
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (10_000, u64::MAX));
    peer.write(60_000).wait(100);
    // Slow start: after x bytes the window is 10,000 + x, and 60,000 - x are in flight.
    for end in (2..=24).step_by(2) {
        peer.recv(seg().ack(end * 1000 + 1)).silent();
    }
    peer.recv(seg().ack(26_001)).expect(&["A 60001:61001 ack 1", "A 61001:62001 ack 1"]);
    assert_eq!((peer.info().cwnd, peer.info().in_flight), (36_000, 36_000));
    // And the other way the window stays what it was until something is acknowledged.
    let mut peer = ten_out(Setup::newreno());
    exchange(&mut peer, "no-congestion-control");
    assert_eq!(peer.info().cwnd, 10_000);
    peer.silent();
    peer.recv(seg().ack(1001));
    assert_eq!(peer.info().in_flight, 39_000);
}

/// The reduction that is under way goes on to ssthresh, and there is no second one.
#[test]
fn in_recovery_the_reduction_goes_on() {
    for reduction in [ReductionChoice::AtOnce, ReductionChoice::Prr] {
        let mut peer = ten_out(Setup::default().profile(|profile| profile.reduction = reduction));
        lose_the_first(&mut peer);
        let before = peer.info();
        exchange(&mut peer, "cubic");
        let after = peer.info();
        assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, 5000), "{reduction:?}");
        assert_eq!(after.phase, Phase::Recovery);
        for end in 5..=12 {
            peer.recv(seg().sack(&[(1001, end * 1000 + 1)]));
        }
        let flight = peer.info().in_flight;
        assert!(flight <= 5000, "{reduction:?}: {flight}");
        peer.recv(seg().ack(12_001));
        let end = peer.info();
        assert_eq!((end.phase, end.cwnd, end.ssthresh), (Phase::Open, 5000, 5000), "{reduction:?}");
        assert_eq!(end.counters.fast_recoveries, 1);
    }
}

/// BBR looks after recovery itself: it is told, dismisses the reduction unit, and has no more than there was.
#[test]
fn in_recovery_a_controller_with_its_own_is_told() {
    let prr = |profile: &mut transom_tcp::Profile| profile.reduction = ReductionChoice::Prr;
    let mut peer = ten_out(Setup::default().profile(prr));
    lose_the_first(&mut peer);
    let before = peer.info();
    exchange(&mut peer, "bbr");
    let after = peer.info();
    // As much as is in flight and one segment (its section 4.2.3.4), if there was as much.
    assert_eq!(after.cwnd, before.cwnd.min(before.in_flight + 1000));
    // A round trip long as much leaves as is delivered; then the window of before comes back, which is that of the exchange.
    peer.wait(100).recv(seg().ack(12_001));
    assert_eq!(peer.info().phase, Phase::Open);
    assert!(peer.info().cwnd >= after.cwnd, "{}", peer.summary());
    assert!(peer.info().cwnd < 40_000, "not by all that was ever delivered: {}", peer.summary());
}

/// Bytes delivered before do not count: BBR's window grows by what is acknowledged from now on.
#[test]
fn earlier_deliveries_are_no_news() {
    let mut peer = Setup::default().active();
    for i in 1..=100 {
        peer.write(5000).wait(100).recv(seg().ack(i * 5000 + 1));
    }
    let before = peer.info();
    assert_eq!((before.delivered, before.in_flight), (500_000, 0));
    peer.write(5000);
    exchange(&mut peer, "bbr");
    peer.wait(100).recv(seg().ack(501_001));
    assert!(peer.info().cwnd <= before.cwnd + 1000, "{}", peer.summary());
}

/// After a timeout the window goes on growing from one segment.
#[test]
fn after_a_timeout_slow_start_goes_on() {
    let mut peer = ten_out(Setup::newreno());
    peer.wait(250).drain();
    assert_eq!((peer.info().phase, peer.info().cwnd), (Phase::Loss, 1000));
    exchange(&mut peer, "scalable");
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (1000, 5000));
    peer.recv(seg().ack(1001));
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (2000, 5000));
}

/// The Eifel detection finds that the reduction was for nothing; but it was another controller's.
#[test]
fn the_reduction_of_another_controller_is_not_taken_back() {
    let undo = UndoConfig::default().with_eifel(true);
    for exchanged in [false, true] {
        let setup = Setup::default().mss(Some(1012)).timestamps();
        let mut peer = ten_out(setup.profile(|profile| profile.undo = undo));
        let original = peer.last_tsval;
        lose_the_first(&mut peer);
        if exchanged {
            exchange(&mut peer, "cubic");
        }
        peer.wait(1);
        let clock = peer.clock.wrapping_add(peer.now.as_millis() as u32);
        peer.recv(seg().ack(4001).ts(clock, original));
        let info = peer.info();
        let expected = if exchanged { (5000, 5000, 0) } else { (10_000, u64::MAX, 1) };
        assert_eq!((info.cwnd, info.ssthresh, info.counters.spurious_reductions), expected);
    }
}

/// Before the handshake is over there is no window; the controller that is there then starts.
#[test]
fn in_the_handshake_the_last_one_starts() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    peer.connection
        .exchange(peer.now, UnitChoice::Congestion(compose("ledbat").unwrap().congestion))
        .unwrap();
    setup.accept(&mut peer);
    // LEDBAT begins with two segments (RFC 6817 section 2.4.2).
    assert_eq!((&*peer.info().congestion, peer.info().cwnd), ("ledbat", 2000));
    // On a live connection it goes on with what is there.
    let mut peer = ten_out(Setup::default());
    exchange(&mut peer, "ledbat");
    assert_eq!(peer.info().cwnd, 10_000);
}

/// Every exchange of controllers: the window never grows by it.
#[test]
fn never_more_than_there_was() {
    for from in ALGORITHMS {
        for to in ALGORITHMS {
            for recovering in [false, true] {
                let word = |name| if name == "none" { "no-congestion-control" } else { name };
                let text = format!("{} + pacing + prr", word(from.name));
                let congestion = compose(&text).unwrap().congestion;
                let paced = |profile: &mut Profile| {
                    profile.congestion = congestion;
                    profile.pacing = PacingChoice::Rate;
                };
                let mut peer = Setup::default().profile(paced).active();
                peer.write(60_000).wait(100);
                peer.recv(seg().ack(1001));
                if recovering {
                    for i in 3..=6 {
                        peer.recv(seg().sack(&[(2001, i * 1000 + 1)]));
                    }
                }
                let before = peer.info();
                exchange(&mut peer, word(to.name));
                let after = peer.info();
                let names = format!("{} to {}", from.name, to.name);
                assert!(after.cwnd <= before.cwnd, "{names}: {} of {}", after.cwnd, before.cwnd);
                assert!(after.ssthresh >= 2000, "{names}");
                // And it works: everything arrives.
                peer.wait(100)
                    .recv(seg().ack(i64::try_from(after.snd_nxt.stream_offset() + 1).unwrap()));
                assert!(peer.info().cwnd >= 1000, "{names}");
            }
        }
    }
}

/// An acknowledgement that is being held back leaves with the policy that held it.
#[test]
fn a_held_acknowledgement_leaves() {
    let mut peer = Setup::default().active();
    peer.recv(seg().data(1000)).recv(seg().data(1000)).expect(&["A 1:1 ack 2001"]);
    peer.recv(seg().data(1000)).silent();
    peer.connection.exchange(peer.now, UnitChoice::Acknowledgements(AckChoice::Immediate)).unwrap();
    peer.pump();
    peer.expect(&["A 1:1 ack 3001"]);
    peer.recv(seg().data(10)).expect(&["A 1:1 ack 3011"]);
    // With nothing held nothing leaves, and the peer's slow start is over: no quick acknowledgements.
    peer.connection
        .exchange(peer.now, UnitChoice::Acknowledgements(AckChoice::Delayed(ms(200))))
        .unwrap();
    peer.pump();
    peer.silent();
    let start = peer.millis();
    peer.recv(seg().data(10)).run_to(start + 199).silent();
    peer.run_to(start + 200).expect(&["A 1:1 ack 3021"]);
    assert_eq!(
        peer.connection
            .exchange(peer.now, UnitChoice::Acknowledgements(AckChoice::Delayed(ms(500)))),
        Err(ProfileError::AckDelay(ms(500)))
    );
    assert_eq!(peer.connection.profile().ack, AckChoice::Delayed(ms(200)));
}

/// In slow start a window of 10,000 bytes leaves in half of the 100 ms: a segment each 5 ms, and two at first, with a millisecond of slack.
#[test]
fn pacing_starts_and_ends() {
    let mut peer = Setup::newreno().profile(|profile| profile.pacing = PacingChoice::Rate).active();
    peer.write(40_000).wait(20);
    let paced = peer.ranges().len();
    assert!((4..=6).contains(&paced), "{paced}");
    peer.connection.exchange(peer.now, UnitChoice::Pacing(PacingChoice::None)).unwrap();
    peer.pump();
    assert_eq!(peer.ranges().len(), 10 - paced);
    peer.wait(80).recv(seg().ack(5001));
    assert_eq!(peer.ranges().len(), 10, "15,000 bytes of window, of which 5000 are out");
    peer.connection.exchange(peer.now, UnitChoice::Pacing(PacingChoice::Rate)).unwrap();
    peer.recv(seg().ack(10_001));
    let at_once = peer.ranges().len();
    assert!(at_once <= 2, "{at_once}");
    // To exchange it for itself again and again lets nothing out.
    for _ in 0..10 {
        peer.connection.exchange(peer.now, UnitChoice::Pacing(PacingChoice::Rate)).unwrap();
        Composer::default().exchange(&mut peer.connection, peer.now, "pacing").unwrap();
        peer.pump();
    }
    peer.silent();
}

#[test]
fn by_name() {
    let mut peer = ten_out(Setup::default());
    Composer::default()
        .exchange(&mut peer.connection, peer.now, "vegas + pacing + nodelay + prr + undo")
        .unwrap();
    let profile = peer.connection.profile();
    assert_eq!((profile.congestion.name(), profile.pacing), ("vegas", PacingChoice::Rate));
    assert_eq!(
        (profile.reduction, profile.undo),
        (
            ReductionChoice::Prr,
            UndoConfig::default().with_eifel(true).with_dsack(true).with_f_rto(true)
        )
    );
    assert!(peer.connection.settings().nodelay);
    // A text does not undo settings of a call that it does not mention.
    peer.connection.set(Setting::NoDelay(false));
    Composer::default().exchange(&mut peer.connection, peer.now, "cubic").unwrap();
    assert!(!peer.connection.settings().nodelay);
    assert_eq!(peer.info().congestion, "cubic");
    // Nothing of a text that is refused takes effect.
    let error =
        Composer::default().exchange(&mut peer.connection, peer.now, "bbr + newreno").unwrap_err();
    let ComposeError::Fixed { word, unit, reason: _ } = &error else { panic!("{error}") };
    assert_eq!((word.as_str(), *unit), ("newreno", Unit::Recovery));
    assert!(
        Composer::default()
            .exchange(&mut peer.connection, peer.now, "bbr + delayed-ack(delay=1s)")
            .is_err()
    );
    assert_eq!(peer.info().congestion, "cubic");
    // A program's own algorithms go by name too.
    const MINE: transom_tcp::congestion::Entry = transom_tcp::congestion::Entry {
        name: "mine",
        source: "here",
        summary: "Reno",
        read: |_| Ok(CongestionChoice::reno()),
    };
    let composer = Composer::default().with(MINE);
    assert!(Composer::default().exchange(&mut peer.connection, peer.now, "mine").is_err());
    composer.exchange(&mut peer.connection, peer.now, "mine").unwrap();
    assert_eq!(peer.info().congestion, "reno");
}

/// A controller that counts on being paced brings pacing with it, and keeps it.
#[test]
fn a_controller_that_needs_pacing_is_paced() {
    let mut peer = Setup::default().active();
    peer.connection
        .exchange(peer.now, UnitChoice::Congestion(compose("bbr").unwrap().congestion))
        .unwrap();
    assert_eq!(peer.connection.profile().pacing, PacingChoice::Rate);
    let refused = peer.connection.exchange(peer.now, UnitChoice::Pacing(PacingChoice::None));
    assert_eq!(refused, Err(ProfileError::NeedsPacing("bbr")));
    Composer::default().exchange(&mut peer.connection, peer.now, "reno + no-pacing").unwrap();
    assert_eq!(peer.connection.profile().pacing, PacingChoice::None);
    assert_eq!(peer.connection.profile().validate(), Ok(()));
}
