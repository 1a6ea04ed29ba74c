//! SYNs that come more than once, in whatever order: none takes back what another has told.

use super::*;

#[test]
fn a_syn_that_is_sent_again_takes_nothing_back() {
    let (set, mut path) = wishing(6000);
    path.call();
    assert_eq!(path.answer_with(60_000), 6000);
    set.to(2000);
    assert_eq!(path.answer_with(60_000), 6000, "what was told, though the wish has fallen");
    assert_eq!(path.answer_with(4000), 4000, "the receiver may take back");
    // The sender's again, and whoever answers now counts from elsewhere.
    path.call();
    assert_eq!(path.answer_to(101, 7777, 60_000), 6000);
    set.to(8000);
    assert_eq!(path.answer_to(101, 7777, 60_000), 8000);
    set.to(1000);
    assert_eq!(path.answer_to(101, 7777, 60_000), 8000);
    path.forward(Flags::ACK, (101, 7778), &Options::default(), 0);
    assert_eq!((path.ack(101, 60_000), path.ack(1101, 60_000)), (8000, 7000));
}

#[test]
fn a_syn_that_passed_as_it_was_is_remembered_as_well() {
    let (set, mut path) = wishing(20_000);
    path.call();
    assert_eq!(path.answer_with(10_000), 10_000);
    set.to(1000);
    assert_eq!(path.answer_with(60_000), 10_000);
    assert_eq!(path.answer_with(3000), 3000);
    path.confirm();
    assert_eq!(path.ack(101, 60_000), 10_000, "not the last one's, but the furthest");
}

#[test]
fn an_answer_that_is_not_believed_has_still_been_told() {
    let (set, mut path) = wishing(2000);
    path.mss = Some(1000);
    path.call();
    assert_eq!(path.answer_with(60_000), 2000);
    // Another number without another question: somebody else's, with another segment size.
    set.to(5000);
    path.mss = Some(4000);
    assert_eq!(path.answer_to(101, 5555, 60_000), 5000);
    set.to(600);
    path.confirm();
    assert_eq!(path.ack(101, 60_000), 5000);
    assert_eq!(path.ack(5101, 60_000), 1000, "a segment of the first");
    // An answer that acknowledges another SYN belongs to no flow.
    let (_, mut path) = wishing(2000);
    path.call();
    for ack in [0, 100, 101 + 65_536, 1 << 31] {
        assert_eq!(path.answer_to(ack, 900, 60_000), 60_000, "{ack}");
    }
    assert_eq!(path.answer_to(101 + 65_535, 900, 60_000), 2000);
}

#[test]
fn a_copy_after_the_handshake_takes_nothing_back_either() {
    let (set, mut path) = wishing(3000);
    path.call();
    path.answer_with(60_000);
    path.confirm();
    set.to(2000);
    assert_eq!(path.answer_with(60_000), 3000);
    set.to(4000);
    assert_eq!(path.answer_with(60_000), 4000);
    set.to(2000);
    assert_eq!(path.ack(101, 60_000), 4000, "the copy has moved the edge");
    assert_eq!(path.ack(3101, 60_000), 2000);
    // Now up to 5101. A copy that comes this late tells nobody anything new: 101 + 60,000 would lie beyond the edge.
    assert_eq!(path.answer_with(60_000), 5000);
    assert_eq!(path.ack(3101, 60_000), 2000);
    // Its acknowledgement does not fit this flow, and it opens no flow that is open.
    assert_eq!(path.answer_to(50_000, 900, 60_000), 60_000);
    assert_eq!(path.call_back(900, 60_000), 60_000);
    assert_eq!(path.ack(3101, 60_000), 2000);
}

#[test]
fn the_same_handshake_is_no_new_one_after_a_reset() {
    let (set, mut path) = wishing(3000);
    path.call();
    path.answer_with(60_000);
    path.confirm();
    path.forward(Flags::RST, (5, 0), &Options::default(), 0);
    set.to(2000);
    path.call();
    assert_eq!(path.answer_with(60_000), 3000);
    assert_eq!(path.ack(101, 60_000), 3000);
    // Another one is.
    let options = path.options(None);
    path.forward(Flags::SYN, (200, 0), &options, 0);
    assert_eq!(path.answer_to(201, 900, 60_000), 2000);
}

#[test]
fn data_in_the_senders_syn() {
    let (set, mut path) = wishing(2000);
    let options = path.options(None);
    path.forward(Flags::SYN, (100, 0), &options, 300);
    // Acknowledged with it: up to 401 + 2000 is told.
    assert_eq!(path.answer_to(401, 900, 60_000), 2000);
    set.to(600);
    // And once more without: the same edge is 2300 from there.
    assert_eq!(path.answer_to(101, 900, 60_000), 2300);
    path.confirm();
    assert_eq!(path.ack(401, 60_000), 2000);
    assert_eq!(path.ack(1401, 60_000), 1000);
    // Not acknowledged with it, but soon after.
    let (_, mut path) = wishing(600);
    path.mss = Some(300);
    path.forward(Flags::SYN, (100, 0), &options, 300);
    assert_eq!(path.answer_to(101, 900, 60_000), 600);
    path.confirm();
    assert_eq!(path.ack(401, 60_000), 600);
    assert_eq!(path.control.report().counters.opened, 1);
}

#[test]
fn the_receiver_calls() {
    let (set, mut path) = wishing(3000);
    assert_eq!(path.call_back(900, 60_000), 3000);
    set.to(1000);
    assert_eq!(path.call_back(900, 60_000), 3000, "again");
    path.answer_back();
    assert_eq!(path.call_back(900, 60_000), 3000, "and once more");
    assert_eq!((path.ack(101, 60_000), path.ack(3101, 60_000)), (3000, 1000));
    // Another call from another number is another connection.
    let (set, mut path) = wishing(3000);
    assert_eq!(path.call_back(900, 60_000), 3000);
    set.to(1000);
    assert_eq!(path.call_back(901, 60_000), 1000);
}

#[test]
fn both_call_at_once() {
    // The sender gets two SYNs of the receiver, the second of which acknowledges its own. Both orders of the first two.
    for receiver_first in [true, false] {
        let (set, mut path) = wishing(3000);
        if !receiver_first {
            path.call();
        }
        assert_eq!(path.call_back(900, 60_000), 3000);
        if receiver_first {
            path.call();
        }
        set.to(1000);
        if receiver_first {
            assert_eq!(path.answer_with(60_000), 3000);
            path.answer_back();
        } else {
            path.answer_back();
            assert_eq!(path.answer_with(60_000), 3000);
        }
        assert_eq!((path.ack(101, 60_000), path.ack(2101, 60_000)), (3000, 1000));
    }
    // The receiver's second overtakes what acknowledges its first.
    let (set, mut path) = wishing(3000);
    path.call();
    assert_eq!(path.call_back(900, 60_000), 3000);
    set.to(5000);
    assert_eq!(path.answer_with(60_000), 5000);
    path.answer_back();
    set.to(1000);
    assert_eq!((path.ack(101, 60_000), path.ack(5101, 60_000)), (5000, 1000));
}
