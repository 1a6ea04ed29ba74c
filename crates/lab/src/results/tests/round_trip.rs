//! Files are read back as they were written; files of another origin are refused.

use super::super::column::{Column, Kind, Table};
use super::*;
use std::sync::LazyLock;

/// A histogram of these delays: the greatest first, then buckets, which up to 255 ns have one value each.
fn delays(nanos: &[u32]) -> Delays {
    let mut nanos: Vec<u8> = nanos.iter().map(|nanos| *nanos as u8 & 0x7f).collect();
    nanos.sort_unstable();
    let Some(max) = nanos.last() else { return Delays::default() };
    let (mut bytes, mut before) = (vec![*max], 0);
    for group in nanos.chunk_by(|one, other| one == other) {
        bytes.extend([group[0] - before, group.len() as u8]);
        before = group[0];
    }
    Delays::from_bytes(&bytes).unwrap()
}

/// Anything that fits into a table of flows, of completions and of links.
fn observations() -> impl Strategy<Value = Observations> {
    let time = || prop_oneof![0..10_000_000_000u64, any::<u64>()].prop_map(Instant::from_nanos);
    let span = || any::<u64>().prop_map(Duration::from_nanos);
    let sender =
        (
            (any::<u64>(), any::<Option<u64>>(), any::<u64>(), any::<u32>()),
            (proptest::option::of(span()), proptest::option::of(span()), span()),
        )
            .prop_map(|((cwnd, ssthresh, in_flight, mss), (srtt, last_rtt, rto))| {
                SenderSample { cwnd, ssthresh, in_flight, mss, srtt, last_rtt, rto }
            });
    let sent = any::<[Option<u64>; 6]>().prop_map(
        |[packets, bytes, payload, retransmissions, timeouts, fast_recoveries]| SentSample {
            packets,
            bytes,
            payload,
            retransmissions,
            timeouts,
            fast_recoveries,
        },
    );
    let sample = (time(), any::<[u64; 2]>(), any::<usize>(), sent, proptest::option::of(sender))
        .prop_map(|(at, [delivered, skipped], completed, sent, sender)| FlowSample {
            at,
            delivered,
            skipped,
            completed,
            sent,
            sender,
        });
    let flow = (
        proptest::collection::vec(sample, 0..20),
        proptest::collection::vec((time(), span()), 0..20),
    );
    let traffic = || any::<[u64; 2]>().prop_map(|[packets, bytes]| Traffic { packets, bytes });
    let counters = (
        (traffic(), traffic(), traffic(), traffic(), traffic(), traffic(), traffic(), traffic()),
        any::<[u64; 8]>(),
    )
        .prop_map(
            |(
                traffic,
                [marked, corrupted, reordered, dequeued, delay, opportunities, low, low_delay],
            )| Counters {
                offered: traffic.0,
                delivered: traffic.1,
                too_big: traffic.2,
                queue_full: traffic.3,
                queue_dropped: traffic.4,
                marked,
                lost: traffic.5,
                duplicated: traffic.6,
                corrupted,
                reordered,
                dequeued,
                queue_delay: Duration::from_nanos(delay),
                opportunities,
                low_dequeued: low,
                low_queue_delay: Duration::from_nanos(low_delay),
                queue_peak: traffic.7,
            },
        );
    let window = any::<(Option<u64>, [u64; 6])>().prop_map(
        |(target, [acks, rewritten, unknown, implausible, held, opened])| WindowSample {
            target,
            acks,
            rewritten,
            unknown,
            implausible,
            held,
            opened,
        },
    );
    let waits = proptest::collection::vec(any::<u32>(), 0..5);
    let sample = (time(), traffic(), counters, waits, proptest::option::of(window)).prop_map(
        |(at, waiting, counters, waits, window)| LinkSample {
            at,
            waiting,
            counters,
            delays: delays(&waits),
            low_delays: delays(&waits),
            window,
        },
    );
    let rate = any::<u64>().prop_map(Rate::from_bits_per_sec);
    let link = (any::<bool>(), rate, proptest::collection::vec(sample, 0..20));
    let flows = proptest::collection::vec(flow, 0..5);
    let links = proptest::collection::vec(link, 0..5);
    (flows, links, any::<(u64, Option<u64>)>()).prop_map(|(flows, links, (packets, events))| {
        let name = |what, number| Name::new(&format!("{what}{number}")).unwrap();
        let flows = flows.into_iter().enumerate().map(|(number, (samples, completions))| {
            let departures = Vec::new();
            FlowObservations { name: name("flow", number), samples, completions, departures }
        });
        let links = links.into_iter().enumerate().map(|(number, (back, rate, samples))| {
            LinkObservations { name: name("link", number), back, rate, samples }
        });
        Observations {
            flows: flows.collect(),
            links: links.collect(),
            packets,
            events,
            lost: Vec::new(),
        }
    })
}

/// How tables are kept.
#[derive(Clone, Copy, Debug)]
enum Form {
    #[cfg(feature = "parquet")]
    Parquet,
    Plain,
}

const FORMS: &[Form] = &[
    #[cfg(feature = "parquet")]
    Form::Parquet,
    Form::Plain,
];

impl Form {
    fn write<O, R>(self, table: &Table<O, R>, owners: &[O]) -> Vec<u8> {
        let made_by = [("transom.seed", "7".to_owned())];
        let mut file = Vec::new();
        match self {
            #[cfg(feature = "parquet")]
            Form::Parquet => parquet::write(&mut file, table, &made_by, owners).unwrap(),
            Form::Plain => plain::write(&mut file, table, &made_by, owners).unwrap(),
        }
        file
    }

    fn read<O, R: Default>(self, table: &Table<O, R>, file: Vec<u8>) -> Result<Vec<O>, String> {
        match self {
            #[cfg(feature = "parquet")]
            Form::Parquet => parquet::read(table, file),
            Form::Plain => plain::read(table, &file),
        }
    }
}

fn stored(form: Form, seen: &Observations) -> [Vec<u8>; 3] {
    let Observations { flows, links, .. } = seen;
    [form.write(&FLOWS, flows), form.write(&COMPLETIONS, flows), form.write(&LINKS, links)]
}

fn read(form: Form, files: [Vec<u8>; 3]) -> Result<Observations, String> {
    let [flows, completions, links] = files;
    let mut flows = form.read(&FLOWS, flows)?;
    for (flow, other) in flows.iter_mut().zip(form.read(&COMPLETIONS, completions)?) {
        assert_eq!(flow.name, other.name);
        flow.completions = other.completions;
    }
    let links = form.read(&LINKS, links)?;
    Ok(Observations { flows, links, packets: 0, events: None, lost: Vec::new() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn tables_are_read_back_as_they_were(seen in observations()) {
        for form in FORMS {
            let files = stored(*form, &seen);
            prop_assert!(files == stored(*form, &seen));
            let back = read(*form, files).unwrap();
            prop_assert_eq!(&back.flows, &seen.flows);
            prop_assert_eq!(&back.links, &seen.links);
        }
    }

    /// Any change of a file gives a table or an error.
    #[test]
    fn a_file_can_be_anything(
        seen in observations(),
        which in 0..3usize,
        places in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        length in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        for form in FORMS {
            let mut files = stored(*form, &seen);
            let file = &mut files[which];
            for (place, byte) in &places {
                let at = place.index(file.len());
                file[at] = *byte;
            }
            if let Some(length) = length {
                file.truncate(length.index(file.len()));
            }
            let _ = read(*form, files);
        }
    }
}

#[test]
fn percentiles_of_a_queue_by_hand() {
    let sample = |dequeued, waits: &[u32]| LinkSample {
        at: Instant::ZERO,
        waiting: Traffic::default(),
        counters: Counters { dequeued, ..Counters::default() },
        delays: delays(waits),
        low_delays: Delays::default(),
        window: None,
    };
    // Of ten packets, six found the queue empty; then nothing happened.
    let samples = vec![sample(5, &[9]), sample(15, &[100, 20, 20, 7]), sample(15, &[])];
    let link = LinkObservations { name: Name::new("x").unwrap(), back: false, rate: None, samples };
    let mut text = Vec::new();
    csv::write(&mut text, &LINKS, &[link]).unwrap();
    let text = String::from_utf8(text).unwrap();
    let ends: Vec<Vec<&str>> =
        text.lines().map(|line| line.rsplit(',').take(4).collect()).collect();
    assert_eq!(
        ends[0],
        ["queue_delay_max", "queue_delay_p99", "queue_delay_p95", "queue_delay_p50"]
    );
    assert_eq!(ends[1], ["", "", "", ""]);
    assert_eq!(ends[2], ["100", "100", "100", "0"]);
    assert_eq!(ends[3], ["", "", "", ""]);
}

/// A table of more rows than go without compression, and of more than one row group.
#[cfg(feature = "parquet")]
#[test]
fn long_tables_are_read_back_as_they_were() {
    let mut link = (LINKS.owner)(&["x".into(), "back".into()]).unwrap();
    for number in 0..300_000 {
        let mut sample = LinkSample { at: Instant::from_millis(number), ..LinkSample::default() };
        sample.waiting.bytes = number * number % 1009;
        sample.counters.offered.packets = 3 * number;
        link.samples.push(sample);
    }
    let mut file = Vec::new();
    parquet::write(&mut file, &LINKS, &[], std::slice::from_ref(&link)).unwrap();
    assert!(file.len() < 1_000_000, "{}", file.len());
    assert!(parquet::read(&LINKS, file).unwrap() == [link]);
}

/// A table that says what no sender is like: a window is missing where everything else is there.
fn contradiction() -> Table<FlowObservations, FlowSample> {
    static COLUMNS: LazyLock<Vec<Column<FlowSample>>> = LazyLock::new(|| {
        let column = |column: &Column<FlowSample>| {
            let get: fn(&FlowSample) -> Option<u64> = match column.name {
                "cwnd" => |_| None,
                _ => |_| Some(1),
            };
            let optional = column.is_optional();
            let kind = Kind::Integer { optional, get, set: |_, _| Some(()) };
            Column { name: column.name, doc: column.doc, kind }
        };
        FLOWS.columns.iter().map(column).collect()
    });
    Table {
        name: FLOWS.name,
        keys: FLOWS.keys,
        attributes: FLOWS.attributes,
        columns: &COLUMNS,
        key: FLOWS.key,
        owner: FLOWS.owner,
        rows: FLOWS.rows,
        rows_mut: FLOWS.rows_mut,
    }
}

#[test]
fn impossible_observations_are_refused() {
    let mut flow = (FLOWS.owner)(&["x".into()]).unwrap();
    flow.samples.push(FlowSample::default());
    let flows = [flow];
    let contradiction = contradiction();
    for form in FORMS {
        let file = form.write(&contradiction, &flows);
        let error = form.read(&FLOWS, file).unwrap_err();
        let expected = "column `cwnd`: a value is there that cannot be, or one is missing";
        assert!(error.ends_with(expected), "{error}");
        // A table of another kind, and none.
        let file = form.write(&FLOWS, &flows);
        let error = form.read(&COMPLETIONS, file).unwrap_err();
        assert_eq!(error, "it does not have the columns of the table `completions`");
        assert!(form.read(&FLOWS, Vec::new()).is_err());
    }
}

/// Mistakes in a plain table are reported with their line.
#[test]
fn a_plain_table_is_what_was_written_or_refused() {
    let mut flows = [(FLOWS.owner)(&["x".into()]).unwrap(), (FLOWS.owner)(&["y".into()]).unwrap()];
    flows.iter_mut().for_each(|flow| flow.samples.push(FlowSample::default()));
    let text = String::from_utf8(Form::Plain.write(&FLOWS, &flows)).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    assert_eq!(rows, "0,0,0,0,0,,,,,,,,,,,,,\n1,0,0,0,0,,,,,,,,,,,,,\n");
    let read = |rows: &str| plain::read(&FLOWS, format!("{head}\n{rows}").as_bytes());
    assert_eq!(read(rows).unwrap(), flows);
    for (from, to, expected) in [
        ("\n1,", "\n2,", "line 3: it belongs to nothing that is listed"),
        ("0,0", ",0", "line 2: it has no owner"),
        ("0,0,", "0,,", "line 2: column `time`: a value cannot be one"),
        ("0,0,", "0,-1,", "line 2: column `time`: a value cannot be one"),
        (",\n", "\n", "line 2: it has too few cells"),
        (",\n", ",,\n", "line 2: it has too many cells"),
        ("1,0,0,0,0,,,,,,,,,,,,,\n", "1,0", "its last line is not whole"),
    ] {
        let altered = rows.replacen(from, to, 1);
        assert_eq!(read(&altered).unwrap_err(), expected, "{altered}");
    }
    let (first, second) = rows.split_once('\n').unwrap();
    let error = read(&format!("{second}{first}\n")).unwrap_err();
    assert_eq!(error, "line 3: it belongs further up");
}
