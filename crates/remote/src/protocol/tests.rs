//! What peers may say and what not, and that no bytes do harm.

use super::binary::{self, Kind};
use super::json;
use super::{Attach, Command, Form, LONGEST, ProtocolError};
use proptest::prelude::*;
use transom_tcp::extension::{Capabilities, Interval, Variable, Wake};
use transom_tcp::time::Instant;

#[test]
fn a_peer_says_what_it_wants() {
    let line = br#"{"attach":{"connection":3,"name":"vegas","wake":["ack","round"],"lists":["acks"],"form":"binary"}}"#;
    let expected = Attach {
        connection: Some(3),
        name: "vegas".into(),
        wake: Wake::ACK | Wake::ROUND,
        lists: Capabilities::ACK_LIST,
        form: Form::Binary,
    };
    assert_eq!(json::attach(line), Ok(expected));
    let least = json::attach(br#"{"attach":{}}"#).unwrap();
    assert_eq!((least.connection, &*least.name, least.form), (None, "remote", Form::Json));
}

#[test]
fn limits_in_all_their_forms() {
    let limits = |line: &str| match json::commands(line.as_bytes()).as_deref() {
        Ok([Command::Limits(limits, wake_at)]) => Ok((limits.clone(), *wake_at)),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.clone()),
    };
    let cwnd = |interval| Ok((vec![(Variable::Cwnd, interval)], None));
    assert_eq!(limits(r#"{"limits":{"cwnd":[null,9000]}}"#), cwnd(Interval::at_most(9000)));
    assert_eq!(limits(r#"{"limits":{"cwnd":[1,null]}}"#), cwnd(Interval::at_least(1)));
    assert_eq!(limits(r#"{"limits":{"cwnd":7}}"#), cwnd(Interval::exactly(7)));
    assert_eq!(limits(r#"{"limits":{"cwnd":null}}"#), cwnd(Interval::ANY));
    assert_eq!(limits(r#"{"wake_at":5}"#), Ok((vec![], Some(Some(Instant::from_nanos(5))))));
    assert_eq!(limits(r#"{"wake_at":null}"#), Ok((vec![], Some(None))));
    let nonsense = limits(r#"{"limits":{"rto":[2,1]}}"#);
    assert_eq!(nonsense, Err(ProtocolError::Nonsense(Variable::Rto)));
    let several = json::commands(br#"{"limits":{"cwnd":1},"look":true,"detach":true}"#).unwrap();
    assert_eq!(several[1..], [Command::Look, Command::Detach]);
}

#[test]
fn senseless_messages_are_refused_with_the_reason() {
    for (line, reason) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[]", "expected"),
        ("{}", "this says nothing"),
        (r#"{"limits":[]}"#, "expected a map"),
        (r#"{"limits":{"mss":1}}"#, "no variable \"mss\""),
        (r#"{"limits":{"cwnd":-1}}"#, "whole number"),
        (r#"{"limits":{"cwnd":1.5}}"#, "whole number"),
        (r#"{"limits":{"cwnd":"9"}}"#, "whole number"),
        (r#"{"limits":{"cwnd":[1]}}"#, "[least, most]"),
        (r#"{"limits":{"cwnd":[1,2,3]}}"#, "[least, most]"),
        (r#"{"limits":{"cwnd":18446744073709551616}}"#, "whole number"),
        (r#"{"wake_at":"soon"}"#, "invalid type"),
        (r#"{"explode":true}"#, "unknown field"),
    ] {
        let error = json::commands(line.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(reason), "{line} was refused with: {error}");
    }
    let refused = |line: &str| json::attach(line.as_bytes()).unwrap_err().to_string();
    assert!(refused(r#"{"attach":{"wake":["noise"]}}"#).contains("there are ack, duplicate-ack"));
    assert!(refused(r#"{"attach":{"lists":["past"]}}"#).contains("acks, messages"));
    assert!(refused(r#"{"attach":{"name":"a\nb"}}"#).contains("control character"));
    assert!(refused(&format!(r#"{{"attach":{{"name":"{}"}}}}"#, "x".repeat(65))).contains("64"));
    assert!(refused(r#"{"limits":{}}"#).contains("unknown field"));
}

fn frame(kind: Kind, numbers: &[u64]) -> Vec<u8> {
    let mut frame = (kind as u32).to_le_bytes().to_vec();
    numbers.iter().for_each(|number| frame.extend(number.to_le_bytes()));
    assert_eq!(binary::frame(kind, numbers)[4..], frame);
    frame
}

#[test]
fn frames_say_the_same() {
    let says = |kind, numbers: &[u64]| binary::command(&frame(kind, numbers));
    assert_eq!(
        says(Kind::Limits, &[0, 0, 9000, 8, 5, u64::MAX]),
        Ok(Command::Limits(
            vec![(Variable::Cwnd, Interval::at_most(9000)), (Variable::Rto, Interval::at_least(5))],
            None
        ))
    );
    let wake_at = |at| Ok(Command::Limits(vec![], Some(at)));
    assert_eq!(says(Kind::WakeAt, &[5]), wake_at(Some(Instant::from_nanos(5))));
    assert_eq!(says(Kind::WakeAt, &[u64::MAX]), wake_at(None));
    assert_eq!(says(Kind::StateRequest, &[]), Ok(Command::Look));
    assert_eq!(says(Kind::Detach, &[]), Ok(Command::Detach));
    assert_eq!(says(Kind::Limits, &[8, 2, 1]), Err(ProtocolError::Nonsense(Variable::Rto)));
    for (kind, numbers) in [
        (Kind::Limits, &[0, 0][..]),
        (Kind::Limits, &[11, 0, 1]),
        (Kind::WakeAt, &[]),
        (Kind::StateRequest, &[1]),
        (Kind::Event, &[]),
    ] {
        assert!(matches!(says(kind, numbers), Err(ProtocolError::Malformed(_))), "{kind:?}");
    }
    assert!(matches!(binary::command(&[99, 0, 0, 0]), Err(ProtocolError::Malformed(_))));
    assert!(binary::command(&[16, 0, 0, 0, 1]).is_err() && binary::command(&[1]).is_err());
    assert_eq!(binary::length((LONGEST as u32 + 1).to_le_bytes()), Err(ProtocolError::TooLong));
    assert!(binary::length([3, 0, 0, 0]).is_err());
    assert_eq!(binary::length([4, 0, 0, 0]), Ok(4));
}

proptest! {
    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}:,\"a-z0-9]{0,60}") {
        let _ = (json::attach(&bytes), json::commands(&bytes), binary::command(&bytes));
        let _ = (json::attach(text.as_bytes()), json::commands(text.as_bytes()));
    }

    /// A frame's request is an interval, or it is refused.
    #[test]
    fn limits_are_intervals(variable in 0u64..13, low: u64, high: u64) {
        match binary::command(&frame(Kind::Limits, &[variable, low, high])) {
            Ok(Command::Limits(limits, None)) => {
                let [(_, interval)] = limits[..] else { panic!("one was asked") };
                prop_assert!(interval.low() == low && interval.high() == high && low <= high);
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => prop_assert!(variable > 10 || low > high),
        }
    }
}
