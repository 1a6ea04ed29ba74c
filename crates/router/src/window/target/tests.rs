//! The Target Window Modifier against appendix B, worked by hand.

use super::*;

fn queue(packets: u64) -> Length {
    Length { packets, bytes: packets * 1500 }
}

fn arrive(policy: &mut TargetWindow, packets: u64, times: usize) -> u64 {
    (0..times).for_each(|_| policy.on_arrival(Instant::ZERO, 1500, queue(packets)));
    policy.target
}

#[test]
fn figure_5s_parameters() {
    let (upper, lower) = (Threshold::Packets(35), Threshold::Packets(15));
    let mut policy = TargetWindow::new(TargetWindowConfig::new(upper, lower));
    // Below 15 packets each arrival adds 1500/64 = 23 bytes, fractions dropped as shifting does.
    assert_eq!(arrive(&mut policy, 14, 10), 65_536 + 230);
    // From 15 to 35 nothing happens: the thresholds themselves are neither above nor below.
    assert_eq!(arrive(&mut policy, 15, 100), 65_766);
    assert_eq!(arrive(&mut policy, 35, 100), 65_766);
    // Above, the fifteenth packet halves the target, and the count starts again.
    assert_eq!(arrive(&mut policy, 36, 14), 65_766);
    assert_eq!(arrive(&mut policy, 36, 1), 32_883);
    assert_eq!(arrive(&mut policy, 50, 14), 32_883);
    // The count is kept while the queue is shorter; the paper sets it back only when it has halved.
    assert_eq!(arrive(&mut policy, 20, 3), 32_883);
    assert_eq!(arrive(&mut policy, 36, 1), 16_441);
}

#[test]
fn counting_bytes() {
    let mut policy = TargetWindow::new(TargetWindowConfig {
        halve_after: Threshold::Bytes(3000),
        raise_shift: 0,
        ..TargetWindowConfig::new(Threshold::Bytes(52_500), Threshold::Bytes(22_500))
    });
    assert_eq!(arrive(&mut policy, 36, 2), 32_768, "3000 bytes are two packets");
    assert_eq!(arrive(&mut policy, 14, 1), 34_268, "a whole packet");
}

#[test]
fn the_target_has_ends() {
    let (upper, lower) = (Threshold::Packets(35), Threshold::Packets(15));
    let mut policy = TargetWindow::new(TargetWindowConfig::new(upper, lower));
    assert_eq!(arrive(&mut policy, 36, 15 * 20), LEAST);
    assert_eq!(arrive(&mut policy, 0, 100_000), 1 << 20);
}

#[test]
fn when_windows_fall() {
    let (upper, lower) = (Threshold::Packets(35), Threshold::Packets(15));
    let mut policy = TargetWindow::new(TargetWindowConfig {
        rule: Rule::AppendixB,
        ..TargetWindowConfig::new(upper, lower)
    });
    let at = |packets| AckContext {
        queue: queue(packets),
        advertised: 0,
        newly_acked: 0,
        mss: 0,
        rtt: None,
        active: 1,
    };
    assert_eq!(
        policy.on_ack(Instant::ZERO, &at(35)),
        AckAction::Window { bytes: 65_536, fall: false }
    );
    assert_eq!(
        policy.on_ack(Instant::ZERO, &at(36)),
        AckAction::Window { bytes: 65_536, fall: true }
    );
    let config =
        TargetWindowConfig { rule: Rule::Section32, ..TargetWindowConfig::new(upper, lower) };
    let wish = TargetWindow::new(config).on_ack(Instant::ZERO, &at(0));
    assert_eq!(wish, AckAction::Window { bytes: 65_536, fall: true });
}
