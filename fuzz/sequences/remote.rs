//! What peers of the remote protocol may say, as a script will have it: its bytes as they are, lines of JSON put together of what the protocol has and
//! what it has not, and frames with the right kinds and lengths, or nearly.
//!
//! What must hold, whatever is said: no panic; an error says something; what is understood asks for intervals that do not end before they begin, in a form
//! in which the same would be understood again; names are bounded.

use crate::bytes::Script;
use transom_remote::protocol::binary::{self, Kind};
use transom_remote::protocol::{Command, LONGEST, LONGEST_NAME, ProtocolError, json};
use transom_tcp::extension::{Interval, Variable};

fn refused(error: &ProtocolError) -> u64 {
    assert!(!error.to_string().is_empty());
    0
}

/// The command as a frame, without its length.
fn frame(command: &Command) -> Vec<Vec<u8>> {
    let frame = |kind, numbers: &[u64]| binary::frame(kind, numbers).split_off(4);
    match command {
        Command::Limits(limits, wake_at) => {
            let numbers = limits.iter().flat_map(|&(variable, interval): &(_, Interval)| {
                let place = Variable::ALL.iter().position(|&other| other == variable).unwrap();
                [place as u64, interval.low(), interval.high()]
            });
            let limits = frame(Kind::Limits, &numbers.collect::<Vec<_>>());
            let wake =
                wake_at.map(|at| frame(Kind::WakeAt, &[at.map_or(u64::MAX, |at| at.as_nanos())]));
            std::iter::once(limits).chain(wake).collect()
        }
        Command::Look => vec![frame(Kind::StateRequest, &[])],
        Command::Detach => vec![frame(Kind::Detach, &[])],
    }
}

/// What was understood is understood again. Returns how much it was.
fn understood(commands: &[Command]) -> u64 {
    for command in commands {
        if let Command::Limits(limits, _) = command {
            assert!(limits.iter().all(|(_, interval)| interval.low() <= interval.high()));
        }
        let again = frame(command).into_iter().map(|frame| binary::command(&frame).unwrap());
        let whole = again.fold(None, |sum, next| match (sum, next) {
            (Some(Command::Limits(limits, _)), Command::Limits(_, at)) => {
                Some(Command::Limits(limits, at))
            }
            (_, next) => Some(next),
        });
        let mut expected = command.clone();
        if let Command::Limits(_, Some(at)) = &mut expected {
            // The last time there is stands for none in a frame.
            *at = at.filter(|at| at.as_nanos() < u64::MAX);
        }
        assert_eq!(whole, Some(expected));
    }
    commands.len() as u64
}

fn line(bytes: &[u8]) -> u64 {
    if let Ok(attach) = json::attach(bytes) {
        assert!(!attach.name.is_empty() && attach.name.len() <= LONGEST_NAME);
    }
    match json::commands(bytes) {
        Ok(commands) => understood(&commands),
        Err(error) => refused(&error),
    }
}

fn framed(bytes: &[u8]) -> u64 {
    if let Some((head, rest)) = bytes.split_first_chunk::<4>() {
        match binary::length(*head) {
            Ok(length) => {
                assert!((4..=LONGEST).contains(&length));
                let _ = binary::command(rest.get(..length).unwrap_or(rest));
            }
            Err(error) => {
                refused(&error);
            }
        }
    }
    match binary::command(bytes) {
        Ok(command) => understood(&[command]),
        Err(error) => refused(&error),
    }
}

fn number(script: &mut Script<'_>) -> u64 {
    match script.below(6) {
        0 => u64::MAX,
        1 => 0,
        2 => u64::MAX - u64::from(script.byte()),
        _ => script.long().into(),
    }
}

/// A value that a limit or a time can have, or not.
fn value(script: &mut Script<'_>) -> String {
    match script.below(12) {
        0 | 1 => "null".into(),
        2 | 3 => format!("[null,{}]", number(script)),
        4 | 5 => format!("[{},null]", number(script)),
        6 | 7 => {
            let low = number(script);
            format!("[{low},{}]", low.saturating_add(script.word().into()))
        }
        8 => format!("[{},{}]", number(script), number(script)),
        9 => "-1.5e99".into(),
        10 => "[[],{}]".into(),
        _ => number(script).to_string(),
    }
}

/// A line that is nearly one of the protocol's.
fn text(script: &mut Script<'_>) -> Vec<u8> {
    let mut parts = Vec::new();
    for _ in 0..=script.below(3) {
        parts.push(match script.below(8) {
            0 => r#""look":true"#.into(),
            1 => r#""detach":true"#.into(),
            2 => format!(r#""wake_at":{}"#, value(script)),
            3 => r#""attach":{"name":"a","wake":["ack","round"],"form":"binary"}"#.into(),
            4 => format!(r#""{}":{}"#, script.byte(), value(script)),
            _ => {
                let limits = (0..=script.below(4)).map(|_| {
                    let name = Variable::ALL[script.below(Variable::ALL.len())].name();
                    format!(r#""{name}":{}"#, value(script))
                });
                format!(r#""limits":{{{}}}"#, limits.collect::<Vec<_>>().join(","))
            }
        });
    }
    let mut line = format!("{{{}}}", parts.join(",")).into_bytes();
    if script.below(4) == 0 {
        let at = usize::from(script.word()) % line.len();
        line[at] = script.byte();
    }
    line
}

/// A frame that is nearly one of the protocol's, without its length.
fn numbers(script: &mut Script<'_>) -> Vec<u8> {
    let (kind, count) = match script.below(8) {
        0 => (Kind::StateRequest as u32, 0),
        1 => (Kind::Detach as u32, 0),
        2 => (Kind::WakeAt as u32, 1),
        3 => (script.long(), script.below(8)),
        4 => (Kind::Limits as u32, script.below(16)),
        _ => (Kind::Limits as u32, 3 * script.below(6)),
    };
    let mut frame = kind.to_le_bytes().to_vec();
    for place in 0..count {
        let number = if place % 3 == 0 && kind == Kind::Limits as u32 {
            script.below(Variable::ALL.len() + 1) as u64
        } else {
            number(script)
        };
        frame.extend(number.to_le_bytes());
    }
    if script.below(8) == 0 {
        frame.truncate(script.below(1 + frame.len()));
    }
    frame
}

/// Plays a script. Returns how many commands were understood.
pub(crate) fn play(bytes: &[u8]) -> u64 {
    let mut sum = line(bytes) + framed(bytes);
    let mut script = Script::new(bytes);
    while !script.is_empty() {
        sum += if script.flag() { line(&text(&mut script)) } else { framed(&numbers(&mut script)) };
    }
    sum
}
