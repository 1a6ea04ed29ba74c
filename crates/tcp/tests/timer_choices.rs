//! The choices of the retransmission timer on a connection, worked by hand. Segments are 1000 bytes.

use crate::common;

use common::{Setup, ms, seg};
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::{EifelConfig, FixedConfig, Rfc6298Config, TimerChoice};

fn with(timer: TimerChoice) -> Setup {
    Setup::newreno().profile(|profile| profile.timer = timer)
}

/// For any round-trip time: one second, and twice as much each time.
#[test]
fn a_fixed_timer_does_not_measure() {
    let mut peer = with(TimerChoice::Fixed(FixedConfig::default())).active();
    assert_eq!((peer.info().srtt, peer.info().rto), (Some(ms(100)), ms(1000)));
    peer.write(500).run_to(16_000);
    peer.expect_timed(&[
        "100 PA 1:501 ack 1",
        "1100 PA 1:501 ack 1",
        "3100 PA 1:501 ack 1",
        "7100 PA 1:501 ack 1",
        "15100 PA 1:501 ack 1",
    ]);
    let config = FixedConfig::default().with_rto(ms(50)).with_back_off(false);
    let mut peer = with(TimerChoice::Fixed(config)).active();
    peer.write(500).run_to(220);
    peer.expect_timed(&["100 PA 1:501 ack 1", "150 PA 1:501 ack 1", "200 PA 1:501 ack 1"]);
}

/// Two segments leave at 90 ms; the first is acknowledged at 180. SRTT stays at 90 ms, RTTVAR falls from 45 by a ninth to 40, and the timeout
/// is 90 + 3·40 = 210 ms. The second segment has been out for 90 of them: it is sent again at 300 ms. (RFC 6298 would wait
/// from 180 on for 90 + 4·33.75 ms, until 405.)
#[test]
fn the_eifel_timer_counts_from_when_the_segment_left() {
    let mut setup = with(TimerChoice::Eifel(EifelConfig::default()));
    setup.rtt = 90;
    let mut peer = setup.active();
    peer.write(2000).drain();
    peer.run_to(180).recv(seg().ack(1001));
    assert_eq!(peer.info().rto, ms(210));
    peer.run_to(299).silent();
    peer.run_to(1_000);
    // And then from when it was sent again, with the back-off.
    peer.expect_timed(&["300 PA 1001:2001 ack 1", "720 PA 1001:2001 ack 1"]);
}

/// The samples of a flight are counted, so that the gain is their share: here 1/5.
#[test]
fn the_eifel_timer_scales_with_the_load() {
    let mut setup = with(TimerChoice::Eifel(EifelConfig::default()));
    setup.rtt = 90;
    let mut peer = setup.active();
    peer.write(5000).drain();
    peer.run_to(180);
    for end in [1001, 2001, 3001, 4001, 5001] {
        peer.recv(seg().ack(end));
    }
    // 45 · (8/9)³ with a gain of 1/3, then with 1/4 and 1/5, as there are that many samples: · 15/16 · 24/25.
    let rttvar = 45.0 * (8.0f64 / 9.0).powi(3) * 15.0 / 16.0 * 24.0 / 25.0;
    let expected = 90.0 + 5.0 * rttvar;
    let rto = peer.info().rto.as_secs_f64() * 1000.0;
    assert!((rto - expected).abs() < 0.001, "{rto}, not {expected}");
    // The next round trip has one segment in flight, so n is the least again, three: RTTVAR loses a ninth, and its weight is three.
    peer.write(1000).wait(90).recv(seg().ack(6001));
    let expected = 90.0 + 3.0 * rttvar * 8.0 / 9.0;
    let rto = peer.info().rto.as_secs_f64() * 1000.0;
    assert!((rto - expected).abs() < 0.001, "{rto}, not {expected}");
}

#[test]
fn timers_have_words() {
    let timer = |text: &str| compose(text).map(|profile| profile.timer);
    let fixed = FixedConfig::default().with_rto(ms(300)).with_back_off(false);
    assert_eq!(timer("fixed-timer(rto=300ms, back-off=off)"), Ok(TimerChoice::Fixed(fixed)));
    let eifel = EifelConfig::default().with_tick(ms(1)).with_scaled(false);
    assert_eq!(timer("eifel-timer(tick=1ms, gains=fixed)"), Ok(TimerChoice::Eifel(eifel)));
    let strict = Rfc6298Config::default().with_min(ms(1000));
    assert_eq!(timer("rfc6298(min=1s)"), Ok(TimerChoice::Rfc6298(strict)));
    let loose = Rfc6298Config::default().with_min(ms(10)).with_min_variation(ms(10));
    assert_eq!(timer("rfc6298(min=10ms)"), Ok(TimerChoice::Rfc6298(loose)));
    let error = |text: &str| compose(text).unwrap_err().to_string();
    assert_eq!(
        error("fixed-timer + rfc6298"),
        "`fixed-timer` and `rfc6298` are both the retransmission timer"
    );
    assert!(error("rfc6298(min=2min)").contains("min ≤ max"), "{}", error("rfc6298(min=2min)"));
    assert!(error("fixed-timer(rto=0s)").contains("0 < initial"));
}
