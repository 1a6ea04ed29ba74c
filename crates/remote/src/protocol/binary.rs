//! The protocol in frames of little-endian numbers, for peers to whom JSON is too slow.
//!
//! A frame is the length of the rest (32 bits), its kind (32 bits), and a body, whose numbers all have 64 bits. A missing value is 2⁶⁴ − 1.

use super::{Command, LONGEST, ProtocolError, VIEW, effective};
use transom_net::{Notice, Snapshot};
use transom_tcp::Pos;
use transom_tcp::extension::{Ack, Capabilities, Interval, Message, Variable};
use transom_tcp::time::{Duration, Instant};

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Something has happened, or the peer has asked how things are.
    Event = 1,
    /// Nothing more will come: text that says why.
    End = 2,
    /// The peer is detached: text that says why.
    Error = 3,
    /// Of the peer: limits, three numbers for each: the variable's number, the least, the most.
    Limits = 16,
    /// Of the peer: when the clock is to wake it, one number.
    WakeAt = 17,
    /// Of the peer: it requests the present state.
    StateRequest = 18,
    /// Of the peer: it detaches.
    Detach = 19,
}

impl TryFrom<u32> for Kind {
    type Error = ProtocolError;

    fn try_from(number: u32) -> Result<Kind, ProtocolError> {
        use Kind::{Detach, End, Error, Event, Limits, StateRequest, WakeAt};
        let all = [Event, End, Error, Limits, WakeAt, StateRequest, Detach];
        let found = all.into_iter().find(|kind| *kind as u32 == number);
        found.ok_or_else(|| ProtocolError::malformed(format!("there is no frame of kind {number}")))
    }
}

/// A missing value.
const NONE: u64 = u64::MAX;

/// A frame that is being put together.
struct Frame(Vec<u8>);

impl Frame {
    fn new(kind: Kind) -> Self {
        let mut frame = Frame(vec![0; 4]);
        frame.0.extend((kind as u32).to_le_bytes());
        frame
    }

    fn put(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn end(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len() - 4).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

/// A frame of these numbers.
pub fn frame(kind: Kind, numbers: &[u64]) -> Vec<u8> {
    let mut frame = Frame::new(kind);
    numbers.iter().for_each(|number| frame.put(*number));
    frame.end()
}

/// A frame that is nothing but text.
pub(crate) fn text(kind: Kind, text: &str) -> Vec<u8> {
    let mut frame = Frame::new(kind);
    frame.0.extend(text.as_bytes());
    frame.end()
}

/// An event; or, without a notice, the answer to a request for the present state.
pub(crate) fn event(notice: Option<&Notice>, snapshot: &Snapshot, lists: Capabilities) -> Vec<u8> {
    let mut frame = Frame::new(Kind::Event);
    frame.put(snapshot.at.as_nanos());
    frame.put(notice.map_or(0, |notice| notice.happened.bits().into()));
    frame.put(notice.map_or(0, |notice| notice.missed));
    for (_, value) in VIEW {
        frame.put(value(snapshot).unwrap_or(NONE));
    }
    for (_, effective) in effective(snapshot) {
        frame.put(effective);
    }
    if lists.contains(Capabilities::ACK_LIST) {
        frame.put(snapshot.acks.len() as u64);
        snapshot.acks.iter().for_each(|ack| put_ack(&mut frame, ack));
    }
    if lists.contains(Capabilities::MESSAGE_LIST) {
        for messages in [&snapshot.messages, &snapshot.past_messages] {
            frame.put(messages.len() as u64);
            messages.iter().for_each(|message| put_message(&mut frame, message));
        }
    }
    frame.end()
}

fn put_ack(frame: &mut Frame, ack: &Ack) {
    let (start, end) = match &ack.duplicated {
        Some(range) => (range.start, range.end),
        None => (Pos::MAX, Pos::MAX),
    };
    frame.put(ack.at.as_nanos());
    frame.put(ack.ack.get());
    frame.put(ack.window);
    frame.put(ack.kind.bits().into());
    frame.put(ack.acked);
    frame.put(ack.sacked);
    frame.put(start.get());
    frame.put(end.get());
    frame.put(ack.rtt.map_or(NONE, Duration::as_nanos));
}

fn put_message(frame: &mut Frame, message: &Message) {
    frame.put(message.range.start.get());
    frame.put(message.range.end.get());
    frame.put(message.first_sent.as_nanos());
    frame.put(message.last_sent.as_nanos());
    frame.put(message.transmissions.into());
    frame.put(u64::from(message.sacked) | u64::from(message.lost) << 1);
    frame.put(message.acked_at.map_or(NONE, Instant::as_nanos));
}

/// The length of the frame behind these four bytes.
///
/// # Errors
/// If it is longer than a peer's may be, or too short for a kind.
pub fn length(bytes: [u8; 4]) -> Result<usize, ProtocolError> {
    let length = u32::from_le_bytes(bytes) as usize;
    if length > LONGEST {
        return Err(ProtocolError::TooLong);
    }
    if length < 4 {
        return Err(ProtocolError::malformed("a frame begins with its kind"));
    }
    Ok(length)
}

/// A message of an attached peer; `frame` is the part after its length.
///
/// # Errors
/// If it is nothing that a peer can say, or asks nonsense.
pub fn command(frame: &[u8]) -> Result<Command, ProtocolError> {
    let odd = || ProtocolError::malformed("a frame whose length does not fit its kind");
    let (kind, body) = frame.split_first_chunk().ok_or_else(odd)?;
    let (numbers, rest) = body.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(odd());
    }
    let numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let number = u32::from_le_bytes(*kind);
    match (Kind::try_from(number)?, numbers.as_slice()) {
        (Kind::Limits, numbers) => {
            let (limits, rest) = numbers.as_chunks::<3>();
            if !rest.is_empty() {
                return Err(odd());
            }
            let limits: Result<_, _> = limits.iter().map(|&limit| interval(limit)).collect();
            Ok(Command::Limits(limits?, None))
        }
        (Kind::WakeAt, &[at]) => {
            let at = (at != NONE).then(|| Instant::from_nanos(at));
            Ok(Command::Limits(Vec::new(), Some(at)))
        }
        (Kind::StateRequest, []) => Ok(Command::Look),
        (Kind::Detach, []) => Ok(Command::Detach),
        (Kind::WakeAt | Kind::StateRequest | Kind::Detach, _) => Err(odd()),
        _ => Err(ProtocolError::malformed(format!("there is no frame of kind {number}"))),
    }
}

fn interval([variable, low, high]: [u64; 3]) -> Result<(Variable, Interval), ProtocolError> {
    let place = usize::try_from(variable).ok();
    let variable = place.and_then(|place| Variable::ALL.get(place).copied()).ok_or_else(|| {
        ProtocolError::malformed(format!("there is no variable with the number {variable}"))
    })?;
    let interval = Interval::new(low, high).ok_or(ProtocolError::Nonsense(variable))?;
    Ok((variable, interval))
}
