//! Peers of every kind: those that keep to the protocol, those that do not, those that sleep and those that vanish. The flow goes on in every case.

use crate::support::{Peer, SOON, Scene, requested};
use serde_json::json;
use std::io::{Read, Write};
use transom_remote::ExtensionSocket;
use transom_remote::protocol::binary::Kind;
use transom_remote::protocol::{LONGEST, VIEW};
use transom_tcp::extension::{Fault, Interval, Variable};

const EVERY_ACK: &str = r#""name":"tester","wake":["ack"]"#;

#[test]
fn a_peer_sees_what_happens_and_narrows_it() {
    let mut scene = Scene::new();
    let mut peer = Peer::connect(&scene);
    let hello = peer.hear();
    assert_eq!(hello["version"], 2);
    assert_eq!(hello["connections"][0]["remote"], "10.0.0.2:80");
    peer.say(
        r#"{"attach":{"connection":0,"name":"tester","wake":["ack"],"lists":["acks","messages"]}}"#,
    );
    assert_eq!(peer.hear()["attached"]["connection"], 0);
    assert_eq!(scene.layers(), ["tester"]);

    peer.say(r#"{"limits":{"cwnd":[null,3000]}}"#);
    scene.until("the limit", |stream| {
        (requested(stream, Variable::Cwnd) == Some(Interval::at_most(3000))).then_some(())
    });
    scene.transfer(1000);
    let event = peer.hear();
    assert_eq!((&event["event"], &event["missed"]), (&json!(["ack"]), &json!(0)));
    assert_eq!(event["counts"], json!({ "ack": 1 }));
    assert_eq!(event["effective"]["cwnd"], 3000);
    assert_eq!(event["view"]["state"], "established");
    assert!(event["view"]["cwnd"].as_u64().unwrap() > 3000);
    // 2³² + 1, and a thousand bytes.
    let una = (1u64 << 32) + 1 + 1000;
    assert_eq!(event["view"]["snd_una"], una);
    assert_eq!(event["acks"][0]["ack"], una);
    assert_eq!(event["acks"][0]["acked"], 1000);
    assert_eq!(event["past_messages"][0]["transmissions"], 1);

    peer.say(r#"{"look":true}"#);
    let look = peer.hear();
    assert_eq!((&look["event"], &look["view"]["snd_una"]), (&json!([]), &json!(una)));
    let cwnd = &look["rulings"]["cwnd"];
    let own = &look["view"]["cwnd"];
    let ruling = json!({
        "own": own, "requested": [null, 3000], "safe": [null, own], "effective": 3000,
        "decided_by": 0, "conflict": false,
    });
    assert_eq!(cwnd, &ruling);
    let rto = &look["rulings"]["rto"];
    assert_eq!((&rto["requested"], &rto["decided_by"]), (&json!(null), &json!("tcp")));
    assert!(
        rto["safe"][0].as_u64().is_some_and(|least| least <= rto["effective"].as_u64().unwrap())
    );
    assert!(event["rulings"].is_null(), "only who looks is told");

    peer.say(r#"{"detach":true}"#);
    peer.last_words("over");
    assert!(scene.layers().is_empty());
    assert_eq!(scene.requested(Variable::Cwnd), None);
}

#[test]
fn the_binary_form_says_the_same() {
    let mut scene = Scene::new();
    let mut peer =
        Peer::attach(&scene, &format!("{EVERY_ACK},\"form\":\"binary\",\"lists\":[\"acks\"]"));
    let frame = |kind: Kind, numbers: &[u64]| {
        let mut bytes = (4 + 8 * numbers.len() as u32).to_le_bytes().to_vec();
        bytes.extend((kind as u32).to_le_bytes());
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    };
    peer.stream.write_all(&frame(Kind::Limits, &[0, 0, 3000])).unwrap();
    scene.until("the limit", |stream| requested(stream, Variable::Cwnd));
    scene.transfer(1000);
    let mut hear = || {
        let mut number = [0; 4];
        peer.lines.read_exact(&mut number).unwrap();
        let mut body = vec![0; u32::from_le_bytes(number) as usize];
        peer.lines.read_exact(&mut body).unwrap();
        let (kind, body) = body.split_first_chunk::<4>().unwrap();
        (Kind::try_from(u32::from_le_bytes(*kind)), body.to_vec())
    };
    let (kind, body) = hear();
    assert_eq!(kind, Ok(Kind::Event));
    let numbers: Vec<u64> =
        body.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
    let value = |name| numbers[3 + VIEW.iter().position(|(other, _)| *other == name).unwrap()];
    assert_eq!(numbers[1..3], [1, 0], "an acknowledgement, and none missed");
    assert_eq!(value("snd_una"), (1 << 32) + 1 + 1000);
    assert_eq!(value("ssthresh"), u64::MAX);
    assert_eq!(numbers[3 + VIEW.len()], 3000, "what is used of cwnd");
    // One acknowledgement, of nine numbers.
    assert_eq!(numbers[3 + VIEW.len() + 11], 1);
    assert_eq!(numbers.len(), 3 + VIEW.len() + 11 + 1 + 9);

    peer.stream.write_all(&frame(Kind::Detach, &[])).unwrap();
    assert_eq!(hear().0, Ok(Kind::End));
    assert!(scene.layers().is_empty());
}

#[test]
fn the_clock_wakes_a_peer() {
    let scene = Scene::new();
    let mut peer = Peer::attach(&scene, r#""name":"clock""#);
    peer.say(r#"{"look":true}"#);
    let now = peer.hear()["now"].as_u64().unwrap();
    peer.say(&json!({ "wake_at": now + 1_000_000 }).to_string());
    let event = peer.hear();
    assert_eq!(event["event"], json!(["timer"]));
    assert!(event["now"].as_u64().unwrap() >= now + 1_000_000);
}

#[test]
fn a_peer_that_vanishes_takes_its_limits_along() {
    let mut scene = Scene::new();
    let mut peer = Peer::attach(&scene, EVERY_ACK);
    peer.say(r#"{"limits":{"cwnd":0}}"#);
    scene.until("the limit", |stream| requested(stream, Variable::Cwnd));
    drop(peer);
    assert_eq!(scene.departure(), Fault::Gone.into());
    assert!(scene.layers().is_empty());
    // With a window of nothing it could not.
    scene.transfer(100_000);
}

#[test]
fn a_peer_that_breaks_the_protocol_hears_why_and_goes() {
    let long = "x".repeat(LONGEST + 1);
    for (said, reason, fault) in [
        ("what?", "expected value", Fault::Protocol),
        (r#"{"limits":{"mss":9}}"#, "there is no variable \"mss\"", Fault::Protocol),
        (
            r#"{"limits":{"rto":[9,8]}}"#,
            "the lower limit of rto is above",
            Fault::Nonsense(Variable::Rto),
        ),
        (&long, "at most 65536 bytes", Fault::Protocol),
        ("\u{0}\u{1}\u{2}", "expected value", Fault::Protocol),
    ] {
        let mut scene = Scene::new();
        let mut peer = Peer::attach(&scene, EVERY_ACK);
        peer.say(r#"{"limits":{"cwnd":0}}"#);
        // It may be sent away in the middle of a long line.
        let _ = peer.stream.write_all(format!("{said}\n").as_bytes());
        let error = peer.last_words("error");
        assert!(error.contains(reason), "{said}: {error}");
        peer.hears_no_more();
        assert_eq!(scene.departure(), fault.into());
        scene.transfer(50_000);
    }
}

#[test]
fn a_peer_that_begins_wrongly_is_not_attached() {
    let scene = Scene::new();
    for (said, reason) in [
        (r#"{"attach":{"wake":["noise"]}}"#, "there is no event \"noise\""),
        (r#"{"attach":{"connection":9}}"#, "there is no connection 9"),
        (r#"{"limits":{"cwnd":0}}"#, "unknown field"),
        ("GET / HTTP/1.1", "expected value"),
    ] {
        let mut peer = Peer::connect(&scene);
        peer.hear();
        peer.say(said);
        let error = peer.last_words("error");
        assert!(error.contains(reason), "{said}: {error}");
        peer.hears_no_more();
        assert!(scene.layers().is_empty());
    }
}

/// It reads nothing, and so much is told that its socket is full: a transfer with lists in every event. Nobody waits for it.
#[test]
fn a_peer_that_sleeps_stalls_nothing_and_misses_what_happens() {
    let mut scene = Scene::new();
    let sleeps = format!("{EVERY_ACK},\"lists\":[\"acks\",\"messages\"]");
    let mut sleeper = Peer::attach(&scene, &sleeps);
    scene.transfer(5_000_000);
    // Awake, it hears that it has missed much, and the next event of all.
    let (mut heard, mut missed) = (0, 0);
    let end = (1u64 << 32) + 1 + 5_000_000;
    loop {
        let event = sleeper.hear();
        heard += event["counts"]["ack"].as_u64().unwrap();
        missed += event["missed"].as_u64().unwrap();
        if event["view"]["snd_una"] == end {
            break;
        }
    }
    assert!(missed > 0, "{heard} acknowledgements were told one by one");
    assert_eq!(scene.layers(), ["tester"], "it was slow, and no more");
}

#[test]
fn the_end_of_the_connection_is_told() {
    let scene = Scene::new();
    let mut peer = Peer::attach(&scene, EVERY_ACK);
    scene.theirs.with_connection(|connection, now| connection.abort(now)).unwrap();
    assert!(peer.last_words("over").contains("closed"));
    peer.hears_no_more();
    // A closed connection is not offered any more: the next peer waits for another one.
    let mut peer = Peer::connect(&scene);
    peer.hear();
    peer.say(r#"{"attach":{"connection":0}}"#);
    assert!(peer.last_words("error").contains("there is no connection 0"));
}

#[test]
fn a_peer_waits_for_a_connection_and_is_sent_away_without() {
    let mut scene = Scene::new();
    scene.offer = None;
    let mut early = Peer::connect(&scene);
    assert_eq!(early.hear()["connections"], json!([]));
    early.say(r#"{"attach":{"name":"early"}}"#);
    let _offer = scene.socket.offer(&scene.ours).unwrap();
    assert_eq!(early.hear()["attached"]["connection"], 1);

    let path = scene.path();
    let Scene { socket, ours, .. } = &mut scene;
    assert!(ExtensionSocket::listen(&path).is_err(), "the place is taken");
    let other = tempfile::tempdir().unwrap();
    let other = ExtensionSocket::listen(other.path().join("other")).unwrap();
    drop(std::mem::replace(socket, other));
    assert!(!path.exists());
    early.hears_no_more();
    let begun = std::time::Instant::now();
    while ours.with_connection(|connection, _| connection.layers().count()).unwrap() > 0 {
        assert!(begun.elapsed() < SOON, "its layer stays");
        std::thread::yield_now();
    }
}

#[test]
fn silent_peers_are_sent_away_and_attached_ones_may_be_silent() {
    let scene = Scene::new();
    let mut silent = Peer::connect(&scene);
    let mut slow = Peer::connect(&scene);
    let mut attached = Peer::attach(&scene, r#""name":"quiet""#);
    // One says a letter now and then.
    let mut stream = slow.stream.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
    });
    for peer in [&mut silent, &mut slow] {
        peer.hear();
        let error = peer.last_words("error");
        assert!(error.contains("nothing was asked for in 5 s"), "{error}");
    }
    trickle.join().unwrap();
    // It has been silent for longer.
    attached.say(r#"{"look":true}"#);
    assert_eq!(attached.hear()["event"], json!([]));
    assert_eq!(scene.layers(), ["quiet"]);
}

/// Looks so often, as fast as it is answered. How long that takes.
fn look_often(peer: &mut Peer, times: usize) -> std::time::Duration {
    let begun = std::time::Instant::now();
    let mut stream = peer.stream.try_clone().unwrap();
    let asking = std::thread::spawn(move || {
        for _ in 0..times {
            stream.write_all(b"{\"look\":true}\n").unwrap();
        }
    });
    for _ in 0..times {
        assert_eq!(peer.hear()["event"], json!([]));
    }
    asking.join().unwrap();
    begun.elapsed()
}

#[test]
fn a_peer_that_floods_is_slowed_down() {
    let scene = Scene::new();
    let mut peer = Peer::attach(&scene, r#""name":"flood""#);
    // 100 at once, and 1000 in a second.
    let took = look_often(&mut peer, 1100);
    assert!(took.as_millis() >= 990, "{took:?}");
}

#[test]
fn peers_that_flood_are_slowed_down_together() {
    let scene = Scene::new();
    let peers: Vec<Peer> = (0..8).map(|_| Peer::attach(&scene, r#""name":"flood""#)).collect();
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        for mut peer in peers {
            scope.spawn(move || look_often(&mut peer, 300));
        }
    });
    // Each alone would take a fifth of a second. 200 at once, and 2000 in a second.
    let took = begun.elapsed();
    assert!(took.as_millis() >= 1090, "{took:?}");
}

/// Requests that come faster than they are passed on are merged, and none is lost.
#[test]
fn of_many_limits_the_last_counts() {
    let scene = Scene::new();
    let mut peer = Peer::attach(&scene, r#""name":"busy""#);
    let mut lines = String::new();
    for number in 1..=20_000 {
        let variable = ["cwnd", "ssthresh"][number % 2];
        lines.push_str(&format!("{{\"limits\":{{\"{variable}\":[null,{number}]}}}}\n"));
    }
    peer.say(lines.trim_end());
    peer.say(r#"{"look":true}"#);
    let rulings = peer.hear()["rulings"].clone();
    assert_eq!(rulings["cwnd"]["requested"], json!([null, 20_000]));
    assert_eq!(rulings["ssthresh"]["requested"], json!([null, 19_999]));
}

#[test]
fn a_socket_that_a_crash_has_left_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ext");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "its name stays");
    let socket = ExtensionSocket::listen(&path).unwrap();
    let error = ExtensionSocket::listen(&path).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    drop(socket);
    assert!(!path.exists());
    std::fs::write(&path, "somebody's file").unwrap();
    assert!(ExtensionSocket::listen(&path).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's file");
}
