//! The tables of a run, column by column.

use super::*;
use crate::results::arrays::{Array, Cells, arrays};
use transom_sim::measure::SenderSample;

/// What a run saw of two flows and both ways of a link, made by hand.
fn observations() -> Observations {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let name = |text: &str| Name::new(text).unwrap();
    let sample = |millis, delivered, cwnd: Option<u64>| FlowSample {
        at: at(millis),
        delivered,
        skipped: 0,
        completed: 0,
        sent: SentSample::default(),
        sender: cwnd.map(|cwnd| SenderSample {
            cwnd,
            ssthresh: None,
            in_flight: 0,
            mss: 1448,
            srtt: None,
            last_rtt: None,
            rto: Duration::from_millis(200),
        }),
    };
    let flow = |text, samples, completions| FlowObservations {
        name: name(text),
        samples,
        completions,
        departures: Vec::new(),
    };
    let link_sample = |millis, dequeued| LinkSample {
        at: at(millis),
        waiting: Traffic::default(),
        counters: Counters { dequeued, ..Counters::default() },
        delays: Delays::default(),
        low_delays: Delays::default(),
        window: None,
    };
    let link = |back, samples| LinkObservations {
        name: name("middle"),
        back,
        rate: Rate::from_bits_per_sec(1_000_000),
        samples,
    };
    Observations {
        flows: vec![
            flow("one", vec![sample(100, 7, Some(14_480)), sample(200, 9, None)], Vec::new()),
            flow("none", Vec::new(), vec![(at(50), Duration::from_millis(5))]),
            flow("two", vec![sample(100, 1, Some(2896))], Vec::new()),
        ],
        links: vec![
            link(false, vec![link_sample(100, 10), link_sample(200, 30)]),
            link(true, vec![link_sample(100, 4), link_sample(200, 5)]),
        ],
        packets: 0,
        events: None,
        lost: Vec::new(),
    }
}

fn column<'a>((table, columns): &'a (&str, Vec<Array>), name: &str) -> &'a Array {
    let found = columns.iter().find(|column| column.name == name);
    found.unwrap_or_else(|| panic!("{table} has no column {name}"))
}

/// The number of rows of a column.
fn rows(column: &Array) -> usize {
    match &column.cells {
        Cells::Texts(texts) => texts.iter().map(|(_, times)| times).sum(),
        Cells::Integers(cells) => cells.len(),
        Cells::Maybe(cells) => cells.len(),
    }
}

#[test]
fn each_cell_stands_in_the_row_of_its_owner() {
    let [flows, completions, links] = arrays(&observations());
    let text = |text: &str, times| (text.to_owned(), times);
    assert_eq!(
        column(&flows, "flow").cells,
        Cells::Texts(vec![text("one", 2), text("none", 0), text("two", 1)])
    );
    // Times are in nanoseconds.
    let times = vec![100_000_000, 200_000_000, 100_000_000];
    assert_eq!(column(&flows, "time").cells, Cells::Integers(times));
    assert_eq!(column(&flows, "delivered").cells, Cells::Integers(vec![7, 9, 1]));
    // Without a connection there is no window, and before a reduction no threshold.
    assert_eq!(column(&flows, "cwnd").cells, Cells::Maybe(vec![Some(14_480), None, Some(2896)]));
    assert_eq!(column(&flows, "ssthresh").cells, Cells::Maybe(vec![None; 3]));
    assert_eq!(
        column(&completions, "flow").cells,
        Cells::Texts(vec![text("one", 0), text("none", 1), text("two", 0)])
    );
    assert_eq!(column(&completions, "took").cells, Cells::Integers(vec![5_000_000]));
    assert_eq!(column(&links, "link").cells, Cells::Texts(vec![text("middle", 2); 2]));
    assert_eq!(
        column(&links, "direction").cells,
        Cells::Texts(vec![text("there", 2), text("back", 2)])
    );
}

/// What is computed from a row and the one before it begins anew with each owner. Nothing waited, so that the delay of what left the queue is zero.
#[test]
fn the_first_row_of_an_owner_has_none_before_it() {
    let [.., links] = arrays(&observations());
    let median = column(&links, "queue_delay_p50");
    assert_eq!(median.cells, Cells::Maybe(vec![None, Some(0), None, Some(0)]));
}

#[test]
fn the_columns_of_a_table_have_the_same_length_and_a_description() {
    let empty = Observations { flows: Vec::new(), links: Vec::new(), ..observations() };
    for (seen, expected) in [(observations(), [3, 1, 4]), (empty, [0; 3])] {
        for ((table, columns), expected) in arrays(&seen).iter().zip(expected) {
            for column in columns {
                assert_eq!(rows(column), expected, "{} of {table}", column.name);
                assert!(!column.doc.is_empty(), "{}", column.name);
            }
        }
    }
    // Bytes are for files alone.
    let [flows, completions, links] = arrays(&observations());
    assert!(links.1.iter().all(|column| column.name != "queue_delays"));
    assert_eq!([flows.0, completions.0, links.0], ["flows", "completions", "links"]);
}
