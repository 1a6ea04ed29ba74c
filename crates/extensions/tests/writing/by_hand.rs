/// Ten segments at first, and one more each round without a queue: 11, 12. 150 ms are more than 125: half of twelve. Then seven.
#[test]
fn shy_by_hand() {
    let mut peer = Setup::default().active();
    attach(&mut peer, "shy");
    peer.write(250_000).drain();
    let windows = [100, 100, 150, 100].map(|rtt| round(&mut peer, rtt));
    assert_eq!(windows, [11, 12, 6, 7]);
    assert!(peer.info().cwnd > 10_000, "TCP's own window is its own");
}
