//! The event log of a running host: read in the program, and in files of each format.

use std::fs::{self, File};
use std::io::{Read, Write};
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{Limits, LogFormat, LogPosition, Stack};
use transom_stack::log::file::{self, Entry};
use transom_stack::log::{FlowEvent, Record, What};

const BYTES: usize = 300_000;

/// Two hosts, of which the first sends to the second while `watch` has its hands on it.
fn transfer(records: usize, watch: impl FnOnce(&Stack) -> Box<dyn FnOnce(&Stack)>) {
    let (a, b) = pair(&MemoryConfig::default()).unwrap();
    let host = |number: u8, device, records| {
        let host = Stack::builder().address([10, 0, 0, number].into(), 24);
        host.limits(Limits::default().with_log_records(records)).start(device).unwrap()
    };
    let (a, b) = (host(1, a, records), host(2, b, 0));
    let done = watch(&a);
    let listener = b.listen("10.0.0.2:0").unwrap();
    let mut stream = a.connect(listener.local_addr().unwrap()).unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).map(|_| all.len())
    });
    stream.write_all(&vec![1; BYTES]).unwrap();
    drop(stream);
    assert_eq!(reader.join().unwrap().unwrap(), BYTES);
    a.drain(std::time::Duration::from_secs(10));
    assert_eq!(b.log_end().0, [0], "a log that is off");
    done(&a);
}

/// Data that left for the first time, and what was acknowledged of it.
fn sums<'a>(records: impl Iterator<Item = &'a Record>) -> (u64, u64) {
    let (mut sent, mut acknowledged) = (0, 0);
    for record in records {
        match record.what {
            What::Flow(FlowEvent::Sent, values) => sent += u64::from(values.bytes),
            What::Flow(FlowEvent::Acknowledged, values) => acknowledged += u64::from(values.bytes),
            _ => {}
        }
    }
    (sent, acknowledged)
}

/// The data, and the SYN and the FIN.
const SPACE: u64 = BYTES as u64 + 2;

fn records(entries: &[Entry]) -> impl Iterator<Item = &Record> {
    entries.iter().map(|entry| entry.record.as_ref().unwrap())
}

#[test]
fn a_program_reads_its_own_log() {
    transfer(100_000, |_| {
        Box::new(|host| {
            let reading = host.read_log(&LogPosition::default());
            assert_eq!(reading.missed, 0);
            let records: Vec<_> =
                reading.records.iter().map(|bytes| Record::decode(bytes).unwrap().0).collect();
            assert_eq!(sums(records.iter()), (SPACE, SPACE));
            assert!(records.is_sorted_by_key(|record| record.at));
            assert!(host.read_log(&reading.next).records.is_empty());
        })
    });
}

#[test]
fn a_binary_file_has_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    transfer(100_000, |host| {
        let writer = host.log_to(File::create(&path).unwrap(), LogFormat::Binary).unwrap();
        let path = path.clone();
        Box::new(move |_| {
            let written = writer.finish().unwrap();
            let (header, entries) = file::read(&fs::read(path).unwrap()).unwrap();
            assert_eq!((written.records, written.missed), (entries.len() as u64, 0));
            assert!(entries.iter().all(|entry| entry.missed == 0));
            assert_eq!(sums(records(&entries)), (SPACE, SPACE));
            // The origin is some time before now, and after this was written.
            let first = header.origin + entries[0].record.as_ref().unwrap().at.as_nanos();
            assert!(first > 1_700_000_000 * 1_000_000_000);
        })
    });
}

#[test]
fn a_file_that_is_a_ring_has_the_latest_and_does_not_grow() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    transfer(100_000, |host| {
        let writer = host.log_to(File::create(&path).unwrap(), LogFormat::Ring(32)).unwrap();
        let path = path.clone();
        Box::new(move |host| {
            let written = writer.finish().unwrap();
            let bytes = fs::read(path).unwrap();
            assert_eq!(bytes.len(), 64 + 32 * 64);
            let (_, entries) = file::read(&bytes).unwrap();
            let sequences: Vec<_> = entries.iter().map(|entry| entry.sequence).collect();
            assert_eq!(sequences, (written.records - 32..written.records).collect::<Vec<_>>());
            let kept = host.read_log(&LogPosition::default()).records;
            assert_eq!(
                Record::decode(kept.last().unwrap()).map(|(record, _)| record),
                entries[31].record
            );
        })
    });
}

#[test]
fn lines_are_json_and_say_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.jsonl");
    // A ring so small that the writer cannot keep up.
    transfer(8, |host| {
        let writer = host.log_to(File::create(&path).unwrap(), LogFormat::JsonLines).unwrap();
        let path = path.clone();
        Box::new(move |host| {
            let written = writer.finish().unwrap();
            assert!(written.missed > 0, "{written:?}");
            assert_eq!(written.records + written.missed, host.log_end().0.iter().sum::<u64>());
            let text = fs::read_to_string(path).unwrap();
            let missed = |line: &&str| line.starts_with("{\"event\":\"missed\",\"records\":");
            let lines = text.lines().filter(|line| !missed(line)).count();
            assert_eq!(lines as u64, written.records);
            assert!(text.lines().any(|line| missed(&line)));
        })
    });
}

/// A writer that begins late writes the records that are still there, and has missed none.
#[test]
fn a_file_begins_with_the_oldest_record_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    transfer(8, |_| {
        Box::new(move |host| {
            assert!(host.read_log(&LogPosition::default()).missed > 0);
            let writer = host.log_to(File::create(&path).unwrap(), LogFormat::Binary).unwrap();
            let written = writer.finish().unwrap();
            assert_eq!((written.records, written.missed), (8, 0));
            let (_, entries) = file::read(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(entries.len(), 8);
        })
    });
}
