//! What readers of an event log and of captures show of one connection, against what they showed when it was stored.

use transom_stack::log::Record;
use transom_testkit::{assert_stored, hex, tell_story};
use transom_trace::{Format, Log};

/// A file that is stored.
fn stored(name: &str) -> String {
    format!("{}/tests/stored/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn records_lines_qlog_and_comments_are_as_they_were() {
    let story = tell_story();
    let lines: Vec<String> = story.records.iter().map(|record| hex(record)).collect();
    assert_stored(stored("records.hex"), &(lines.join("\n") + "\n"));
    let records = story.records.iter().map(|record| Record::decode(record).unwrap().0);
    let log = Log { origin: 0, records: (0..).zip(records).collect(), unknown: 0 };
    let text = |format| String::from_utf8(log.write(format).unwrap()).unwrap();
    assert_stored(stored("log.jsonl"), &text(Format::Lines));
    assert_stored(stored("log.qlog"), &text(Format::Qlog));
    // Probes are named since then.
    let (mut loss_probes, mut comments) = (0, String::new());
    for comment in &story.comments {
        loss_probes += usize::from(comment.contains("phase=open probe=loss "));
        let words = comment.split(' ').filter(|word| !word.starts_with("probe="));
        comments += &words.collect::<Vec<_>>().join(" ");
        comments.push('\n');
    }
    assert_stored(stored("comments.txt"), &comments);
    assert!(loss_probes > 0, "{comments}");
    // What the story is for: each kind of event is in it.
    let lines = text(Format::Lines);
    for kind in [
        "opened",
        "ack",
        "data",
        "sent",
        "retransmitted",
        "lost",
        "recovery",
        "timeout",
        "state",
        "request",
        "layer",
        "limited",
    ] {
        assert!(lines.contains(&format!("\"event\":\"{kind}\"")), "{kind}");
    }
    #[cfg(feature = "columns")]
    for format in [Format::Parquet, Format::Arrow] {
        assert_eq!(Log::read(format, &log.write(format).unwrap()).unwrap(), log);
    }
}
