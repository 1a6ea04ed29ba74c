//! Files of the event log as a script will have them: the script's bytes as they are, and headers and records that are put together by it, mostly of
//! values that can be and at times with anything in their place; cut off anywhere.
//!
//! What must hold, whatever the bytes: no panic; no more entries than records, the numbers of those that follow each other not going back; what is missing
//! in front of one is what lies between its number and the one before; a record that can be read means the same after it was written again; and its
//! line of JSON is one line.

use crate::bytes::Script;
use transom_stack::log::file::{self, HEADER_LEN, Header};
use transom_stack::log::{Line, RECORD_LEN, Record};

/// Reads `file`. Returns how many records it could read.
fn check(file: &[u8]) -> u64 {
    let Ok((header, entries)) = file::read(file) else { return 0 };
    assert_eq!(file::read(&header.encode()), Ok((header, Vec::new())));
    assert!(entries.len() <= file.len().saturating_sub(HEADER_LEN) / RECORD_LEN);
    let mut read = 0;
    let mut next = entries.first().map_or(0, |entry| entry.sequence);
    for entry in &entries {
        assert!(entry.sequence + 1 >= next, "{} after {next}", entry.sequence);
        assert_eq!(entry.missed, entry.sequence.saturating_sub(next));
        next = entry.sequence + 1;
        let Ok(record) = &entry.record else { continue };
        let again = Record::decode(&record.encode(entry.sequence as u32));
        assert_eq!(again, Ok((record.clone(), entry.sequence as u32)));
        let line = Line { record, sequence: entry.sequence }.to_string();
        assert!(line.starts_with('{') && line.ends_with('}'), "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        read += 1;
    }
    read
}

/// A record, most of whose fields can be.
fn record(script: &mut Script<'_>, number: u32) -> [u8; RECORD_LEN] {
    let mut bytes = [0; RECORD_LEN];
    let body = script.take(RECORD_LEN);
    bytes[..body.len()].copy_from_slice(body);
    // Kind, state, phase and limit.
    let plausible = [1 + script.below(12), script.below(10), script.below(4), script.below(5)];
    for (place, value) in bytes[16..20].iter_mut().zip(plausible) {
        *place = value as u8;
    }
    bytes[20..24].copy_from_slice(&number.to_le_bytes());
    // What a state, a request or a layer begins with.
    for place in &mut bytes[24..28] {
        *place %= 12;
    }
    if script.flag() {
        // A request's interval, or a name of letters.
        bytes[32..40].fill(b'a' + script.below(26) as u8);
        bytes[40..64].fill(b'z');
    }
    if script.below(8) == 0 {
        bytes[script.below(RECORD_LEN)] = script.byte();
    }
    bytes
}

/// Plays a script. Returns how many records could be read.
pub(crate) fn play(bytes: &[u8]) -> u64 {
    check(bytes);
    let mut script = Script::new(bytes);
    let header = Header { origin: script.long().into(), places: script.byte().into() };
    let mut file = header.encode().to_vec();
    if script.below(16) == 0 {
        file[script.below(HEADER_LEN)] = script.byte();
    }
    let mut number = script.long();
    while !script.is_empty() {
        // Records follow each other, but for gaps, rings that begin anywhere, and lies.
        number = match script.below(16) {
            0 => number.wrapping_add(script.word().into()),
            1 => number.wrapping_sub(script.byte().into()),
            2 => script.long(),
            _ => number.wrapping_add(1),
        };
        file.extend(record(&mut script, number));
    }
    let cut = script.below(2 * RECORD_LEN);
    let whole = check(&file);
    check(&file[..file.len() - cut.min(file.len())]);
    whole
}
