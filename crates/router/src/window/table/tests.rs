//! The table: full, flooded, growing old.

use super::*;
use crate::window::flow::{Open, Opening, Step, SynFlags};
use crate::window::segment::Segment;
use transom_wire::Seq;
use transom_wire::tcp::Flags;

const AGES: Ages = Ages { idle: 300_000, closing: 30_000, opening: 10_000 };

fn key(number: u32) -> FlowKey {
    FlowKey::forward(&Segment::peek(&syn(number), 40).unwrap())
}

/// The headers of a SYN whose addresses and ports are made of `number`.
fn syn(number: u32) -> [u8; 40] {
    let mut packet = [0; 40];
    packet[0] = 0x45;
    packet[3] = 40;
    packet[9] = 6;
    packet[12..16].copy_from_slice(&number.to_be_bytes());
    packet[16..20].copy_from_slice(&[10, 0, 0, 1]);
    packet[21] = number as u8;
    packet[32] = 0x50;
    packet[33] = Flags::SYN.bits() as u8;
    packet
}

fn opening(seen: u32) -> Record {
    let phase = Phase::Opening(Opening {
        iss: Seq::new(0),
        irs: Seq::new(0),
        began: 0,
        seen_edge: 0,
        mss: 536,
        syn_flags: SynFlags::default(),
        step: Step::Called,
    });
    Record { seen, phase }
}

fn open(seen: u32) -> Record {
    let phase = Phase::Open(Open {
        edge: Seq::new(0),
        ack: Seq::new(0),
        desired: 0,
        rtt: 0,
        period: 0,
        mss: 536,
        scale: 0,
        implausible_in_a_row: 0,
        closing: false,
    });
    Record { seen, phase }
}

fn insert(table: &mut FlowTable, number: u32, record: Record) -> bool {
    let key = key(number);
    let hash = table.hash(&key);
    table.insert(hash, key, record, &AGES).is_some()
}

fn holds(table: &FlowTable, number: u32) -> bool {
    let key = key(number);
    table.find(table.hash(&key), &key).is_some()
}

#[test]
fn the_requested_number_of_flows_fits() {
    let mut table = FlowTable::new(4000, [7; 16]);
    assert_eq!(table.stats().capacity, 6000);
    let first = (0..8192).position(|number| !insert(&mut table, number, open(0))).unwrap();
    assert!(first >= 4000, "refused after {first}");
    let mut many = FlowTable::new(100_000, [7; 16]);
    assert!((0..100_000).all(|number| insert(&mut many, number, open(0))), "{many:?}");
    assert!((0..first as u32).all(|number| holds(&table, number)));
    assert!(!holds(&table, first as u32) && !holds(&table, 1 << 20));
    let stats = table.stats();
    assert_eq!((stats.open, stats.evicted, stats.expired), (stats.flows, 0, 0));
    assert_eq!(table.iter().count(), stats.flows);
}

#[test]
fn a_flood_of_handshakes_harms_no_flow_that_is_under_way() {
    let mut table = FlowTable::new(800, [7; 16]);
    (0..500).for_each(|number| assert!(insert(&mut table, number, open(0))));
    (1_000..101_000).for_each(|number| {
        insert(&mut table, number, opening(1));
    });
    assert!((0..500).all(|number| holds(&table, number)));
    let stats = table.stats();
    assert_eq!((stats.open, stats.capacity), (500, 1200));
    assert!(stats.flows <= 1200 && stats.evicted > 90_000, "{stats:?}");
    // One that comes now finds room, and keeps it if its handshake ends.
    assert!(insert(&mut table, 200_000, opening(2)));
    let key = key(200_000);
    let place = table.find(table.hash(&key), &key).unwrap();
    table.set_phase(place, open(0).phase);
    (300_000..400_000).for_each(|number| {
        insert(&mut table, number, opening(3));
    });
    assert!(holds(&table, 200_000));
    assert_eq!(table.stats().open, 501);
}

/// Both kinds of table hold the same flows after the same calls, in whatever order these come and go.
#[test]
fn a_searched_table_holds_the_same_flows() {
    let mut tables = [FlowTable::new(200, [7; 16]), FlowTable::searched(200, [7; 16])];
    for round in 0..2_000u32 {
        let number = round.wrapping_mul(2_654_435_761) % 500;
        let record = if round % 3 == 0 { opening(round * 10) } else { open(round * 10) };
        let known = tables.each_ref().map(|table| holds(table, number));
        assert_eq!(known[0], known[1], "{round}");
        if !known[0] {
            let taken = tables.each_mut().map(|table| insert(table, number, record));
            assert_eq!(taken[0], taken[1], "{round}");
        }
        tables.iter_mut().for_each(|table| table.sweep(round * 10, &AGES));
    }
    let [hashed, searched] = &tables;
    assert_eq!(hashed.stats(), searched.stats());
    assert!(hashed.stats().expired + hashed.stats().evicted > 0, "{hashed:?}");
    assert!((0..500).all(|number| holds(hashed, number) == holds(searched, number)));
}

#[test]
fn silent_flows_are_forgotten_after_their_time() {
    let mut table = FlowTable::new(50, [7; 16]);
    insert(&mut table, 1, open(1_000));
    insert(&mut table, 2, opening(1_000));
    // At its time, and before it was seen: a clock that goes back makes nothing old.
    for now in [11_000, 0] {
        (0..table.buckets()).for_each(|_| table.sweep(now, &AGES));
    }
    assert!(holds(&table, 1) && holds(&table, 2));
    (0..table.buckets()).for_each(|_| table.sweep(11_001, &AGES));
    assert!(holds(&table, 1) && !holds(&table, 2));
    (0..table.buckets()).for_each(|_| table.sweep(301_001, &AGES));
    assert_eq!(table.stats(), TableStats { capacity: 80, expired: 2, ..TableStats::default() });
}

#[test]
fn a_full_table_makes_room_of_what_is_old() {
    let mut table = FlowTable::new(5, [7; 16]);
    (0..8).for_each(|number| assert!(insert(&mut table, number, open(number * 1000))));
    assert!(!insert(&mut table, 100, open(300_000)), "the oldest is 300 s old");
    assert!(insert(&mut table, 100, open(300_001)));
    assert_eq!((table.stats().refused, table.stats().expired), (1, 1));
}

#[test]
fn no_room_at_all() {
    let mut table = FlowTable::new(0, [7; 16]);
    assert!(!insert(&mut table, 1, open(0)) && !holds(&table, 1));
    table.sweep(0, &AGES);
    assert_eq!(table.stats(), TableStats { refused: 1, ..TableStats::default() });
}

#[test]
fn another_secret_is_another_order() {
    let tables = [[7; 16], [8; 16]].map(|secret| {
        let mut table = FlowTable::new(1024, secret);
        (0..100).for_each(|number| assert!(insert(&mut table, number, open(0))));
        std::format!("{:?}", table.iter().map(|(key, _)| key).collect::<Vec<_>>())
    });
    assert_ne!(tables[0], tables[1]);
}
