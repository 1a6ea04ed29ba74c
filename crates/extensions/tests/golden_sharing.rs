//! Flows that share, by the Congestion Manager or beside a companion, on real connections, worked by hand.
//!
//! Segments are 1000 bytes, the initial window is 10 of them, the handshake takes 100 ms.

use crate::common::{Peer, Setup, ms, seg};
use transom_extensions::cm::{Feedback, LossMode, Manager};
use transom_extensions::{Allowance, Companion};
use transom_extensions::{stack, stack_sharing};
use transom_tcp::Phase;
use transom_tcp::arguments::Fraction;
use transom_tcp::extension::{ExtensionChoice, Variable};

/// The window in use, in bytes.
fn window(peer: &Peer) -> u64 {
    peer.connection.ruling(Variable::Cwnd).effective
}

/// A connection with plenty to send.
fn busy(choice: &ExtensionChoice) -> Peer {
    let mut peer = Setup::default().active();
    peer.attach(choice.extension());
    peer.write(64_000).drain();
    peer
}

/// One connection is in its second round and has 20 000 bytes, the other has 10 000: the first goes on with 15 000. Then it is the other's
/// turn, which has 20 000 by then: both have all that they have. And so on: TCP's own windows grow by what is acknowledged, for as long as
/// more than half of them is used.
#[test]
fn cm_evens_out() {
    let cm = &stack("cm").unwrap()[0];
    let (mut one, mut two) = (busy(cm), busy(cm));
    assert_eq!([window(&one), window(&two)], [10_000; 2], "each alone has what it has");
    let mut round = |turn: usize| {
        let peer = if turn == 1 { &mut one } else { &mut two };
        peer.wait(100);
        peer.ack_all();
        (peer.info().cwnd, window(peer), peer.info().in_flight)
    };
    assert_eq!(round(1), (20_000, 15_000, 15_000));
    assert_eq!(round(2), (20_000, 20_000, 20_000));
    // 35 000 and 20 000; with half of a segment there is not another one.
    assert_eq!(round(1), (35_000, 27_500, 27_000));
    // 35 000 and 40 000.
    assert_eq!(round(2), (40_000, 37_500, 34_000), "it has no more to send");
}

/// A loss of one is told to the other, which comes down to the mean with its next acknowledgement; and when the first has gone, what it
/// had is nobody's.
#[test]
fn cm_shares_a_loss() {
    let cm = &stack("cm(poll=ack)").unwrap()[0];
    let (mut one, mut two) = (busy(cm), busy(cm));
    one.wait(100);
    two.wait(100);
    for n in 1..=3 {
        one.recv(seg().ack(1).sack(&[(1001, 1001 + 1000 * n)])).drain();
    }
    assert_eq!(one.info().counters.fast_recoveries, 1);
    let halved = one.info().cwnd;
    assert!(halved < 10_000);
    two.recv(seg().ack(1001)).drain();
    assert_eq!((two.info().cwnd, window(&two)), (11_000, (halved + 11_000) / 2));
    drop(one);
    two.recv(seg().ack(2001)).drain();
    assert_eq!(window(&two), two.info().cwnd);
}

/// 10 000 each, in three parts: the one with two of them is entitled to more than it has, the other one has 6666, which are six segments.
#[test]
fn cm_weighs() {
    let manager = Manager::default();
    let one = |text| stack_sharing(text, &manager).unwrap().remove(0);
    let heavy = busy(&one("cm(weight=2, poll=send)"));
    let light = busy(&one("cm(poll=send)"));
    // Not the same macroflow, and not the same manager.
    let (other, stranger) = (busy(&one("cm(macroflow=other)")), busy(&stack("cm").unwrap()[0]));
    assert_eq!([&heavy, &light, &other, &stranger].map(window), [10_000, 6666, 10_000, 10_000]);
    assert_eq!(light.info().in_flight, 6000);
    let all = manager.macroflows(heavy.now)["default"];
    assert_eq!((all.members, all.active, all.window), (2, 2, 20_000));
    assert_eq!(all.outstanding, 16_000);
}

/// Who has nothing more to send leaves its part to the other.
#[test]
fn cm_counts_the_idle_for_what_they_use() {
    let cm = &stack("cm(poll=ack)").unwrap()[0];
    let mut busy = busy(cm);
    let mut idle = Setup::default().active();
    idle.attach(cm.extension());
    busy.wait(100);
    idle.write(2000).drain();
    idle.wait(100);
    // It has 1000 outstanding and nothing else, the busy one 11 000: 12 000, of which it wants a twelfth.
    idle.recv(seg().ack(1001)).drain();
    busy.recv(seg().ack(1001)).drain();
    assert_eq!((busy.info().cwnd, window(&busy)), (11_000, 11_000));
}

/// A UDP flow that has just begun, and a connection: what the one loses the other one notices.
#[test]
fn cm_takes_udp_in() {
    let manager = Manager::default();
    let cm = stack_sharing("cm(poll=ack, macroflow=peer)", &manager).unwrap().remove(0);
    let mut tcp = busy(&cm);
    let mut udp = manager.open("peer", 1, 1000);
    tcp.wait(100);
    let mut sent = 0;
    udp.request(tcp.now, 100);
    while let Some(grant) = udp.poll_grant(tcp.now) {
        udp.notify(tcp.now, grant.bytes);
        sent += grant.bytes;
    }
    assert_eq!(sent, 10_000);
    // It has no round-trip time of its own yet, and takes the connection's: 10 000 bytes in 100 ms.
    assert_eq!(
        udp.query(tcp.now).map(|known| (known.rate, known.rtt.srtt)),
        Some((100_000, ms(100)))
    );
    udp.update(tcp.now, Feedback { lost: 1000, mode: LossMode::Loss, ..Feedback::default() });
    tcp.recv(seg().ack(1001)).drain();
    assert_eq!((tcp.info().cwnd, window(&tcp)), (11_000, (5000 + 11_000) / 2));
    // A connection that is closed tells of nothing any more, and does not count for long.
    tcp.abort();
    udp.request(tcp.now, 100);
    assert_eq!(udp.allowed(tcp.now), 5000);
    let shares = manager.macroflows(tcp.now + ms(10_000))["peer"];
    assert_eq!((shares.members, shares.active), (2, 0));
}

/// A connection that is reset when everything had just been acknowledged, so that it told of nothing outstanding, does not count for long
/// either, though its owner keeps it: the other one has all that it has.
#[test]
fn cm_does_not_wait_for_one_that_is_gone() {
    let manager = Manager::default();
    let cm = stack_sharing("cm", &manager).unwrap().remove(0);
    let (mut gone, mut other) = (busy(&cm), busy(&cm));
    gone.wait(100);
    gone.ack_all();
    gone.abort();
    let active = |at| manager.macroflows(at)["default"].active;
    assert_eq!((active(gone.now), active(gone.now + ms(10_000))), (2, 0));
    // By then the other one's timer has expired, and what is left of its window is the whole macroflow.
    other.wait(10_000).drain();
    other.ack_all();
    assert_eq!(window(&other), other.info().cwnd);
    assert_eq!(manager.macroflows(other.now)["default"].window, other.info().cwnd);
}

/// Losing everything, one after the other, all go on: nobody waits for a share that does not come.
#[test]
fn cm_does_not_starve() {
    let cm = &stack("cm").unwrap()[0];
    let mut peers = [busy(cm), busy(cm), busy(cm)];
    for _ in 0..3 {
        for peer in &mut peers {
            peer.wait(1000).drain();
        }
    }
    let before = peers.each_ref().map(Peer::acked);
    for _ in 0..4 {
        for peer in &mut peers {
            peer.wait(100);
            let first = peer.acked();
            peer.recv(seg().ack(first + 1000)).drain();
        }
    }
    for (peer, before) in peers.iter().zip(before) {
        assert!(peer.info().counters.timeouts > 0);
        assert_eq!(peer.acked(), before + 4000);
        assert!(window(peer) >= 1000);
    }
}

/// A window of 10 000 bytes in 100 ms are 100 kB/s, half of which are a packet of 1000 bytes each 20 ms. Twice the window, twice the rate.
#[test]
fn a_companion_goes_beside_a_connection() {
    let companion = Companion::default();
    let mut beside = companion.allowance(Fraction::from_millionths(500_000));
    let mut tcp = Setup::default().active();
    assert_eq!((companion.path(), beside.may_send(tcp.now)), (None, false));
    assert_eq!(beside.next_time(tcp.now), None);
    tcp.attach(companion.publisher().extension());
    let path = companion.path().unwrap();
    assert_eq!((path.window, path.rtt.srtt, path.rate), (10_000, ms(100), 100_000));
    assert_eq!((path.loss, path.phase), (Fraction::from_millionths(0), Phase::Open));
    let sent = |beside: &mut Allowance, now, span| {
        let mut sent = vec![];
        for passed in 0..span {
            let now = now + ms(passed);
            if beside.may_send(now) {
                beside.on_send(now, 1000);
                assert!(beside.next_time(now).unwrap() > now);
                sent.push(passed);
            }
        }
        sent
    };
    assert_eq!(sent(&mut beside, tcp.now, 100), [0, 20, 40, 60, 80]);
    tcp.write(60_000).drain();
    tcp.wait(100);
    tcp.ack_all();
    assert_eq!(sent(&mut beside, tcp.now, 50), [0, 10, 20, 30, 40]);
    // Nothing is heard: after 400 ms half of 200 kB/s, after 800 a quarter. One round trip's estimate: the timeout is shorter.
    let rates = [399, 400, 799, 800].map(|span| beside.rate(tcp.now + ms(span)));
    assert_eq!(rates, [100_000, 50_000, 50_000, 25_000]);
    assert_eq!(beside.rate(tcp.now + ms(1_000_000)), 0);
    // A loss of the connection's is one of its companion's.
    tcp.wait(100);
    let una = tcp.acked();
    for n in 1..=3 {
        tcp.recv(seg().ack(una).sack(&[(una + 1000, una + 1000 + 1000 * n)])).drain();
    }
    let path = companion.path().unwrap();
    assert_eq!((path.phase, path.window), (Phase::Recovery, tcp.info().cwnd));
    assert!(path.window < 20_000 && path.loss > Fraction::from_millionths(0));
    drop(tcp);
    assert_eq!((companion.path(), beside.next_time(path.at)), (None, None));
}

/// What another extension leaves of the window is what the companion goes by.
#[test]
fn a_companion_of_a_limited_connection_is_limited() {
    let companion = Companion::default();
    let mut tcp = busy(&stack("limited-slow-start(max-ssthresh=2)").unwrap()[0]);
    tcp.attach(companion.publisher().extension());
    tcp.wait(100);
    tcp.ack_all();
    // 10 000 and a tenth for each segment; the publisher sees what the other one had asked for before.
    tcp.wait(100);
    tcp.ack_all();
    assert!(tcp.info().cwnd >= 20_000);
    assert_eq!(companion.path().unwrap().window, 11_000);
}
