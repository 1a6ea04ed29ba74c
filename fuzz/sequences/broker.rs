//! Messages for the broker and from it, and rules of its policy: the script's bytes as they are, valid messages put together from the script, and
//! valid ones that the script has damaged.
//!
//! Whatever the bytes are, three things must hold. Nothing panics. A refusal has a message. A message that was read is written and read
//! again as the same.

use crate::bytes::Script;
use transom_broker::protocol::{
    ErrorKind, Refused, Reply, Request, Token, write_reply, write_request,
};
use transom_broker::{Policy, Rule};

/// Pieces of which rules and messages consist, and a few that they do not know.
const PIECES: [&str; 24] = [
    "user:",
    "root",
    "0",
    "group:",
    "everybody",
    ",",
    "ports:",
    "8000-8999",
    "443",
    "+",
    "65536",
    "9-1",
    "ephemeral:yes",
    "address:",
    "192.0.2.0/24",
    "::/129",
    "peer:",
    "devices:",
    "-1",
    "rate:",
    "18446744073709551616",
    "\0",
    "\u{fdfd}",
    ":",
];
/// A reply with everything nested that a reply may have.
const REPLY: &str = concat!(
    r#"{"version":1,"reply":{"opened":{"token":"t","device":"tap0","index":3,"queues":1,"min_segment":536,"#,
    r#""packets_per_second":null,"host":{"addresses":[{"address":"192.0.2.1","prefix":24,"interface":"eth0","#,
    r#""index":2,"mtu":1500}],"mtu":1500}}}}"#
);

/// A request that a client may send.
fn request(script: &mut Script<'_>) -> Request {
    let text = |script: &mut Script<'_>| {
        (0..script.below(4)).map(|_| script.pick(&PIECES)).collect::<String>()
    };
    match script.below(5) {
        0 => Request::Open { name: text(script), queues: script.word() },
        1 => Request::Resume { token: Token(text(script)) },
        2 => Request::AddPort,
        3 => Request::RemovePort { id: u64::from(script.long()) << 32 | u64::from(script.long()) },
        _ => Request::Host,
    }
}

/// Changes, removes or doubles some bytes.
fn damage(script: &mut Script<'_>, message: &mut Vec<u8>) {
    for _ in 0..1 + script.below(3) {
        if message.is_empty() {
            return;
        }
        let at = usize::from(script.word()) % message.len();
        match script.below(5) {
            0 => message[at] = script.byte(),
            1 => message.truncate(at),
            2 => drop(message.remove(at)),
            3 => message.insert(at, script.byte()),
            _ => {
                let tail = message[at..].to_vec();
                message.extend(tail);
            }
        }
    }
}

/// Reads the bytes as the broker and as a client. Returns how many of the two understood them.
fn read(bytes: &[u8]) -> u64 {
    let refused = |error: &Refused| assert!(!error.message.is_empty());
    let mut understood = 0;
    match Request::try_from(bytes) {
        Ok(request) => {
            assert_eq!(Request::try_from(&write_request(&request)[..]).as_ref(), Ok(&request));
            understood += 1;
        }
        Err(error) => {
            assert!(matches!(error.kind, ErrorKind::Version | ErrorKind::Malformed));
            refused(&error);
            // The broker answers with this error, and the client has to read it.
            assert_eq!(Reply::try_from(&write_reply(&Err(error.clone()))[..]), Err(error));
        }
    }
    match Reply::try_from(bytes) {
        Ok(reply) => {
            assert_eq!(Reply::try_from(&write_reply(&Ok(reply.clone()))[..]), Ok(reply));
            understood += 1;
        }
        // The message may be the broker's own, which the bytes may leave empty.
        Err(error) if error.kind == ErrorKind::Malformed => {}
        Err(error) => {
            assert_eq!(Reply::try_from(&write_reply(&Err(error.clone()))[..]), Err(error))
        }
    }
    understood
}

/// Reads text as a rule of the command line and as a policy file.
fn policy(text: &str) -> u64 {
    let rule = text.parse::<Rule>().map_err(|error| error.to_string());
    let file = text.parse::<Policy>().map_err(|error| error.to_string());
    for error in [rule.as_ref().err(), file.as_ref().err()].into_iter().flatten() {
        assert!(!error.is_empty());
    }
    u64::from(rule.is_ok()) + u64::from(file.is_ok_and(|file| !file.rules.is_empty()))
}

/// Plays a script. Returns how many messages and rules were understood.
pub(crate) fn play(bytes: &[u8]) -> u64 {
    let mut script = Script::new(bytes);
    let mut understood = read(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        understood += policy(text);
    }
    while !script.is_empty() {
        if script.below(4) == 0 {
            let text: String = (0..script.below(12)).map(|_| script.pick(&PIECES)).collect();
            understood += policy(&text);
            understood += policy(&format!("[[allow]]\nuser = 0\nports = {text:?}\n"));
            continue;
        }
        let mut message = match script.flag() {
            true => write_request(&request(&mut script)),
            false => REPLY.as_bytes().to_vec(),
        };
        if script.flag() {
            damage(&mut script, &mut message);
        }
        understood += read(&message);
    }
    understood
}
