//! Explicit window adaptation, worked by hand.

use super::*;

#[test]
fn logarithms() {
    // 256 · log2: exact for powers of two, on the chord between them: 3 is half-way from 2 to 4, 6 from 4 to 8.
    let expected = [(0, 0), (1, 0), (2, 256), (3, 384), (4, 512), (6, 640), (50, 1424)];
    for (value, log) in expected {
        assert_eq!(log2(value), log, "{value}");
    }
    assert_eq!(log2(u64::MAX), 64 * 256 - 1);
}

#[test]
fn the_window_follows_the_free_space() {
    let mut policy = ExplicitWindow::new(50, 1000, Duration::from_millis(10));
    let mut window = |now, packets| {
        let now = Instant::from_millis(now);
        policy.on_arrival(now, 1500, Length { packets, bytes: 0 });
        policy.target().unwrap()
    };
    // α is one. 32 packets are free: five segments. 2: one. None: one all the same.
    assert_eq!(window(0, 18), 5000);
    assert_eq!(window(1, 48), 1000);
    assert_eq!(window(2, 50), 1000);
    // The average of the three was 38.7 of 50, more than a fifth: α falls to 15/16.
    assert_eq!(window(10, 18), 4687);
    // It was 18, then it is 4 on average (8 and 0): first 225/256, then up by an eighth, to 1.0039.
    assert_eq!(window(20, 8), log2(42) * 225 * 1000 / 256 / 256);
    assert_eq!(window(21, 0), log2(50) * 225 * 1000 / 256 / 256);
    assert_eq!(window(30, 18), 5000 * 257 / 256);
}
