//! qlog: the main schema (draft-ietf-quic-qlog-main-schema) as a sequence of JSON texts (RFC 7464), with an event set for TCP of our own.
//!
//! The first text describes the file and the trace. Each further text is an event `tcp:…`, named like the log's; its data is the record's object,
//! so nothing is lost. `group_id` is the connection.

use serde_json::{Value, json};

use super::json::{Object, object, record};
use super::{ConvertError, Log};

/// What begins each text (RFC 7464 section 2.2).
const SEPARATOR: u8 = 0x1e;
/// The names of our events; docs/formats.md lists them. A URI of one's own must not look like one of the registry.
const EVENTS: &str = "urn:x-transom:qlog:events:tcp:1";
const NAMESPACE: &str = "tcp:";
/// What the schema had before `file_schema`, up to version 0.4. qvis refuses a file without these, or with another version.
const OLDER: [(&str, &str); 2] = [("qlog_version", "0.3"), ("qlog_format", "JSON-SEQ")];

pub(super) fn write(log: &Log) -> Vec<u8> {
    let mut reference = json!({ "clock_type": "monotonic", "epoch": "unknown" });
    if let (true, Some(object)) = (log.origin > 0, reference.as_object_mut()) {
        object.insert("wall_clock_time".into(), rfc3339(log.origin).into());
    }
    let mut head = json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": "An event log of Transom",
        "trace": {
            "vantage_point": { "name": "transom", "type": "unknown" },
            "event_schemas": [EVENTS],
            "common_fields": {
                "time_format": "relative_to_epoch",
                "reference_time": reference,
                "origin_ns": log.origin,
            },
        },
    });
    if let Some(head) = head.as_object_mut() {
        head.extend(OLDER.map(|(key, value)| (key.to_owned(), value.into())));
    }
    let mut bytes = Vec::new();
    let mut text = |value: String| {
        bytes.push(SEPARATOR);
        bytes.extend(value.as_bytes());
        bytes.push(b'\n');
    };
    text(head.to_string());
    for (number, one) in &log.records {
        let mut data = object(*number, one);
        let name = data.remove("event");
        let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
        let group = data.get("connection").map(Value::to_string).unwrap_or_default();
        let data = Value::Object(data);
        // Milliseconds, to the nanosecond; the exact number is in the data too.
        let nanos = one.at.as_nanos();
        let (whole, part) = (nanos / 1_000_000, nanos % 1_000_000);
        text(format!(
            "{{\"time\":{whole}.{part:06},\"name\":\"{NAMESPACE}{name}\",\"group_id\":\"{group}\",\"data\":{data}}}"
        ));
    }
    bytes
}

pub(super) fn read(bytes: &[u8]) -> Result<Log, ConvertError> {
    let mut log = Log::default();
    let mut texts =
        bytes.split(|byte| *byte == SEPARATOR).filter(|text| !text.trim_ascii().is_empty());
    let form = |what: &str| ConvertError::Form(what.into());
    let head = texts.next().ok_or_else(|| form("the file has no qlog in it"))?;
    let head: Value = serde_json::from_slice(head)
        .map_err(|_| form("this is no qlog as a sequence of JSON texts (RFC 7464)"))?;
    let schemas = head.pointer("/trace/event_schemas").and_then(Value::as_array);
    if !schemas.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(EVENTS))) {
        return Err(form(
            "this qlog has no TCP events of Transom; its event_schemas lack their name",
        ));
    }
    log.origin =
        head.pointer("/trace/common_fields/origin_ns").and_then(Value::as_u64).unwrap_or(0);
    for (place, text) in texts.enumerate() {
        let bad = |what: String| ConvertError::Record { number: place + 1, what };
        let event: Object = serde_json::from_slice(text).map_err(|error| bad(error.to_string()))?;
        let name = event.get("name").and_then(Value::as_str).unwrap_or_default();
        // Events of others may stand between ours.
        let Some(name) = name.strip_prefix(NAMESPACE) else { continue };
        let data = event.get("data").and_then(Value::as_object);
        let mut data = data.ok_or_else(|| bad("the event has no data".into()))?.clone();
        data.insert("event".into(), name.into());
        log.take(record(&data).map_err(bad)?);
    }
    Ok(log)
}

/// A time as RFC 3339 has it, in UTC.
fn rfc3339(nanos: u64) -> String {
    let (seconds, part) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Eras of 400 years that begin in March, so that a leap day is the last of its year (the usual arithmetic of the Gregorian calendar).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{part:09}Z")
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn times_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(rfc3339(951_782_400_000_000_001), "2000-02-29T00:00:00.000000001Z");
        assert_eq!(rfc3339(1_709_251_199_999_999_999), "2024-02-29T23:59:59.999999999Z");
        assert_eq!(rfc3339(4_107_542_400_000_000_000), "2100-03-01T00:00:00.000000000Z");
    }
}
