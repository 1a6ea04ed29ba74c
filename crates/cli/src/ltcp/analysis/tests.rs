//! The numbers of the paper's analysis.

use super::*;
use transom_tcp::congestion::ltcp::Layers;

fn fraction(millionths: u64) -> Fraction {
    Fraction::from_millionths(millionths)
}

/// The paper: with K = 15 the bandwidth is claimed 9.6 times faster. 27950 round trips for Reno, and for LTCP
/// (15 − 2)(15 + 3)/4 · 50 = 2925.
#[test]
fn time_to_claim_bandwidth() {
    let rows: Vec<_> = table(&Layers::default()).collect();
    let row = rows[13];
    assert_eq!((row.layer, row.window, row.step), (15, 28_000, Some(6000)));
    assert_eq!(row.claim, fraction(2_925_000_000));
    assert_eq!(row.claim_speedup, fraction(9_555_555)); // 27950 / 2925
    // K = 3: (1)(6)/4 · 50 = 75, 150/75 = 2. K = 10: 8·13/4 · 50 = 1300; W_10 = 165·50 = 8250, 8200/1300 = 6.307692.
    assert_eq!((rows[1].claim, rows[1].claim_speedup), (fraction(75_000_000), fraction(2_000_000)));
    assert_eq!(
        (rows[8].claim, rows[8].claim_speedup),
        (fraction(1_300_000_000), fraction(6_307_692))
    );
    assert_eq!(rows[0].claim_speedup, Fraction::ONE);
}

/// The paper: 3.33·(K − 1) times faster; β·W/(K − 1) round trips. At K = 15: 46.67; 0.15·28000/14 = 300 instead of 14000.
#[test]
fn recovery() {
    let layers = Layers::default();
    assert_eq!(recovery_speedup(&layers, 15), fraction(46_666_666));
    assert_eq!(recovery_speedup(&layers, 2), fraction(3_333_333));
    assert_eq!(recovery_time(&layers, 15, 28_000), fraction(300_000_000));
    assert_eq!(recovery_time(&layers, 1, 40), fraction(20_000_000));
}

/// Equations 15, 17 and 18. W = 1000, β = 0.15, K' = 4: 0.15·10⁶/4·0.925 = 34687.5 packets.
#[test]
fn throughput_by_hand() {
    let beta = Layers::default().beta();
    assert_eq!(packets_per_loss(beta, 4, 1000), 34_687);
    assert_eq!(window_at_loss(beta, 4, 34_688), 1000);
    // Reno: N = 0.5·W²·0.75 = 3/8·W²; W = 100: 3750.
    assert_eq!(packets_per_loss(RENO_BETA, 1, 100), 3750);
    // √(3/2·10⁶)/0.1 s = 1224.74/0.1; LTCP with K' = 15: √(15·0.925/0.15) = √92.5 = 9.617692 times 1000/0.1.
    let rtt = Duration::from_millis(100);
    assert_eq!(throughput(RENO_BETA, 1, 1_000_000, rtt), 12_247);
    assert_eq!(throughput(beta, 15, 1_000_000, rtt), 96_176);
    // "An improvement of a factor of about 8": 9.617692/1.224745 = 7.853.
    assert_eq!(96_176 * 1000 / 12_247, 7853);
}

/// A flow's steady window agrees with itself: the loss rate of the window before a loss leads back to that window.
#[test]
fn the_steady_state() {
    let layers = Layers::default();
    let rtt = Duration::from_millis(150);
    // 30000 packets at K' = 14 need 0.15·9·10⁸/14·0.925 = 8919642 packets for each loss.
    let packets = packets_per_loss(layers.beta(), 14, 30_000);
    assert_eq!(packets, 8_919_642);
    let state = steady_state(&layers, packets, rtt);
    assert_eq!((state.layer, state.before, state.after), (14, 29_999, 25_500));
    // √(14·0.925/0.15) = 9.291573; 7.5865 times Reno.
    assert!(
        state.gain >= fraction(7_586_000) && state.gain <= fraction(7_587_000),
        "{}",
        state.gain
    );
    // Many losses: Reno, one flow.
    let state = steady_state(&layers, 100, rtt);
    assert_eq!((state.layer, state.gain), (1, Fraction::ONE));
    // Hardly any: the last layer.
    assert_eq!(steady_state(&layers, u64::MAX, rtt).layer, 18);
}
