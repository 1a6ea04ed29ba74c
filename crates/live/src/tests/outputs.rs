//! The rows of one connection, as the status protocol and the JSON of `transom top` have them, against what they were when they were stored.

use crate::Row;
use transom_net::ConnectionStatus;
use transom_testkit::{assert_stored, tell_story};

#[test]
fn rows_are_as_they_were() {
    let rows: Vec<String> = tell_story()
        .looks
        .into_iter()
        .map(|(_, info)| {
            let row = Row::of(&ConnectionStatus {
                shard: 0,
                connection: 1,
                local: "10.0.0.1:40000".parse().unwrap(),
                remote: "10.0.0.2:80".parse().unwrap(),
                info,
                layers: vec!["halves".to_owned()],
                departed: Vec::new(),
                requests: Vec::new(),
            });
            let text = serde_json::to_string(&row).unwrap();
            // A reader tells the same.
            let read: Row = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            text
        })
        .collect();
    let path = format!("{}/src/tests/stored/rows.jsonl", env!("CARGO_MANIFEST_DIR"));
    assert_stored(path, &(rows.join("\n") + "\n"));
}
