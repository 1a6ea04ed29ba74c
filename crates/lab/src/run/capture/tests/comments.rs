//! Comments on what hosts send, read back here and by tshark.

use super::*;

const COMMENTS: &str = "capture = [\"path\"]\ncapture-comments = true";

/// The scenario of the other tests, with comments.
fn commented(options: &str) -> Resolved {
    let text = scenario(options).to_toml().replace("capture = [\"path\"]", COMMENTS);
    Scenario::parse("commented.toml", &text).unwrap().point(0).unwrap().resolved
}

/// A packet of a capture: whether it is outbound, and its comment.
type Read = (bool, Option<String>);

/// Enhanced packet blocks: 28 bytes, the packet, options (1 the comment, 2 the flags with the direction in the lowest two bits, 0 the end), the length again;
/// all in units of four bytes, little-endian as the machine.
fn packets(file: &Path) -> Vec<Read> {
    let bytes = fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let half = |at: usize| u16::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let end = at + word(at + 4);
        if word(at) == 6 {
            let (mut outbound, mut comment) = (false, None);
            let mut option = at + 28 + word(at + 20).next_multiple_of(4);
            while option < end - 4 && half(option) != 0 {
                let value = &bytes[option + 4..][..half(option + 2)];
                match half(option) {
                    1 => comment = Some(String::from_utf8(value.to_vec()).unwrap()),
                    2 => outbound = value[0] & 3 == 2,
                    _ => {}
                }
                option += 4 + value.len().next_multiple_of(4);
            }
            found.push((outbound, comment));
        }
        at = end;
    }
    found
}

#[test]
fn sent_packets_have_comments_on_their_sender() {
    let directory = tempfile::tempdir().unwrap();
    let lossy = "there.loss = \"2%\"";
    let seen = run(&commented(lossy), directory.path());
    let [at_host, at_router] = FILES.map(|file| packets(&directory.path().join(file)));
    let comments: Vec<&String> =
        at_host.iter().filter_map(|(_, comment)| comment.as_ref()).collect();
    // The SYN, which comes first, and its answer take 10.096 ms each. Then ten segments of 1448 bytes may be sent at once.
    for (number, comment) in (1..=10).zip(&comments[1..]) {
        let flight =
            format!("cwnd=14480 ssthresh=none in_flight={} phase=open limited_by=", 1448 * number);
        assert!(comment.starts_with(&flight), "{comment}");
        assert!(comment.ends_with(" srtt=20192us rto=220192us"), "{comment}");
    }
    let again =
        comments.iter().filter(|comment| comment.starts_with("retransmission ")).count() as u64;
    let last = seen.flows[0].samples.last().unwrap();
    assert!(again > 0);
    assert_eq!(Some(again), last.sent.retransmissions);
    // Neither what comes, nor datagrams, nor what a router passes on.
    assert!(at_host.iter().all(|(outbound, comment)| *outbound || comment.is_none()));
    assert_eq!(comments.len() as u64, last.sent.packets.unwrap());
    assert!(at_router.iter().all(|(_, comment)| comment.is_none()));
    // Nothing else is different.
    let plain = tempfile::tempdir().unwrap();
    assert_eq!(run(&scenario(lossy), plain.path()), seen);
    let without = packets(&plain.path().join(FILES[0]));
    assert_eq!(without, at_host.iter().map(|(out, _)| (*out, None)).collect::<Vec<_>>());
    // And tshark finds the same.
    let file = directory.path().join(FILES[0]);
    let Some(shown) = tshark(&file, "frame.comment", &["frame.comment"]) else { return };
    assert_eq!(shown.iter().collect::<Vec<_>>(), comments);
}

#[test]
fn comments_need_a_host_that_makes_them() {
    let refused = |text: &str| Scenario::parse("test.toml", text).unwrap_err().to_string();
    let text = scenario("").to_toml().replace("capture = [\"path\"]", COMMENTS);
    let none = "no link in `capture` leads from or to a host with Transom's TCP";
    assert!(refused(&text.replace("capture = [\"path\"]", "capture = []")).contains(none));
    let kernel = text.replace("[hosts.a]\nkind = \"transom\"", "[hosts.a]\nkind = \"kernel\"");
    assert_ne!(kernel, text);
    let said = refused(&kernel);
    assert!(said.contains(none) && said.contains("capture-comments = true\n"), "{said}");
    // It is a run of its own, and its canonical form says so.
    let (with, without) = (commented(""), scenario(""));
    assert_ne!(with.id(1, "v", false), without.id(1, "v", false));
    assert!(with.to_toml().contains("capture-comments = true"));
    assert!(!without.to_toml().contains("capture-comments"));
}
