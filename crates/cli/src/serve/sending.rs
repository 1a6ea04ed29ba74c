//! A response on its way to a client that may be slow.
//!
//! The head and the beginning of a file leave together. A client that does not take them at once holds no memory for what can be read again: the
//! beginning goes back to the rest of the file, which is read when there is room. What is counted is what has been written, once.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::time::Instant;

use super::connection::timed_out;
use super::pace::Pace;
use super::response::{Body, Response};
use crate::socket::Socket;

/// The bytes of a file that leave together with the head.
const FIRST: u64 = 64 * 1024;
/// The bytes of a file that a connection sends before others have their turn.
const PIECE: u64 = 1 << 20;

/// Takes a response, as much at a time as there is room for.
pub(super) trait Sink {
    /// Takes some of the bytes.
    fn take(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Takes some of `length` bytes of a file from `offset` on.
    fn take_file(&self, file: &File, offset: u64, length: u64) -> io::Result<u64>;
}

impl Sink for Socket {
    fn take(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = self;
        socket.write(bytes)
    }

    fn take_file(&self, file: &File, offset: u64, length: u64) -> io::Result<u64> {
        let Socket::Transom(stream) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        stream.send_file(file, offset, length)
    }
}

/// The response.
pub(super) struct Sending {
    /// The head, and what was read of the body.
    bytes: Vec<u8>,
    head: usize,
    /// So many of `bytes` have left.
    sent: usize,
    file: Option<Rest>,
    pace: Pace,
    pub(super) keep_alive: bool,
}

/// The part of a file that is still to be read.
struct Rest {
    file: File,
    offset: u64,
    left: u64,
}

/// How far a response is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All has left.
    Sent,
    /// It has had its turn.
    HasMore,
    /// There is no room.
    Waits,
}

impl Sending {
    /// Begins with a response.
    pub(super) fn begin(response: Response, now: Instant) -> io::Result<Sending> {
        let mut bytes = response.head();
        let head = bytes.len();
        let mut rest = None;
        match response.body {
            Body::None => {}
            Body::Bytes(body) => bytes.extend_from_slice(&body),
            Body::File { mut file, length } => {
                let first = length.min(FIRST);
                bytes.resize(head + usize::try_from(first).unwrap_or(0), 0);
                file.read_exact(bytes.get_mut(head..).unwrap_or_default())?;
                let offset = file.stream_position()?;
                rest = Some(Rest { file, offset, left: length - first });
            }
        }
        let pace = Pace::new(now);
        Ok(Sending { bytes, head, sent: 0, file: rest, pace, keep_alive: response.keep_alive })
    }

    /// How fast the client takes it.
    pub(super) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Sends what there is room for, or a piece of a file. `count` is told of each part of the body that has been written.
    pub(super) fn go_on(
        &mut self,
        sink: &impl Sink,
        mut count: impl FnMut(usize),
    ) -> io::Result<Progress> {
        loop {
            let left = self.bytes.get(self.sent..).unwrap_or_default();
            if left.is_empty() {
                (self.bytes, self.sent, self.head) = (Vec::new(), 0, 0);
                let Some(rest) = self.file.as_mut().filter(|rest| rest.left > 0) else {
                    return Ok(Progress::Sent);
                };
                match rest.send(sink) {
                    Ok(length) => {
                        count(length);
                        self.pace.took(length, Instant::now());
                    }
                    Err(error) if timed_out(&error) => return Ok(Progress::Waits),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
                return Ok(if rest.left > 0 { Progress::HasMore } else { Progress::Sent });
            }
            match sink.take(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => {
                    let of_head = self.head.saturating_sub(self.sent).min(length);
                    self.sent += length;
                    count(length - of_head);
                    self.pace.took(length, Instant::now());
                }
                Err(error) if timed_out(&error) => {
                    self.take_back();
                    return Ok(Progress::Waits);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What has been read of a file and has not left is read again later.
    fn take_back(&mut self) {
        let Some(rest) = &mut self.file else { return };
        let kept = self.head.max(self.sent);
        let unsent = self.bytes.len().saturating_sub(kept) as u64;
        rest.offset -= unsent;
        rest.left += unsent;
        self.bytes.truncate(kept);
        self.bytes.shrink_to_fit();
    }

    /// The bytes that are held for the client.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Rest {
    /// Sends a piece, or as much as there is room for. Returns how much.
    fn send(&mut self, sink: &impl Sink) -> io::Result<usize> {
        let sent = sink.take_file(&self.file, self.offset, self.left.min(PIECE))?;
        if sent == 0 {
            // The file has become shorter.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.offset += sent;
        self.left -= sent;
        Ok(usize::try_from(sent).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::serve::request::{Status, parse};
    use crate::serve::{files::Root, response};

    /// A client that takes as much as it is told to.
    #[derive(Default)]
    struct Client {
        room: Cell<usize>,
        got: RefCell<Vec<u8>>,
    }

    impl Client {
        fn accept(&self, bytes: &[u8]) -> io::Result<usize> {
            let length = bytes.len().min(self.room.get());
            if length == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room.set(self.room.get() - length);
            self.got.borrow_mut().extend_from_slice(bytes.get(..length).unwrap());
            Ok(length)
        }
    }

    impl Sink for Client {
        fn take(&self, bytes: &[u8]) -> io::Result<usize> {
            self.accept(bytes)
        }

        fn take_file(&self, file: &File, offset: u64, length: u64) -> io::Result<u64> {
            let mut piece = vec![0; usize::try_from(length).unwrap()];
            file.read_exact_at(&mut piece, offset)?;
            self.accept(&piece).map(|length| length as u64)
        }
    }

    /// A directory with a file of so many bytes, each of them another than its neighbours.
    fn site(length: usize) -> (tempfile::TempDir, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..length).map(|n| (n % 251) as u8 ^ (n >> 9) as u8).collect();
        std::fs::write(dir.path().join("file"), &content).unwrap();
        (dir, content)
    }

    fn ask(dir: &tempfile::TempDir, fields: &str) -> Sending {
        let text = format!("GET /file HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        let (request, _) = parse(text.as_bytes()).unwrap().unwrap();
        let root = Root::open(dir.path()).unwrap();
        Sending::begin(response::respond(&root, request), Instant::now()).unwrap()
    }

    /// The body that a client gets which takes these bytes at a time, and the number that was counted.
    fn sent_in(mut sending: Sending, steps: &[usize]) -> (Vec<u8>, usize) {
        let (client, mut counted) = (Client::default(), 0);
        let mut steps = steps.iter().cycle();
        loop {
            match sending.go_on(&client, |bytes| counted += bytes).unwrap() {
                Progress::Sent => break,
                Progress::HasMore => {}
                Progress::Waits => {
                    // Nothing but what is left of the head.
                    assert!(sending.held() <= 1024, "{} bytes are held", sending.held());
                    client.room.set(*steps.next().unwrap());
                }
            }
        }
        let got = client.got.take();
        let end = got.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        (got[end..].to_vec(), counted)
    }

    #[test]
    fn a_slow_client_gets_each_byte_once_and_each_is_counted_once() {
        for length in [1, 5000, FIRST as usize, FIRST as usize + 1, 3 * PIECE as usize + 17] {
            let (dir, content) = site(length);
            for steps in [
                &[usize::MAX][..],
                &[1, 0, 63, 0, 7000],
                &[300, 0, 0, 65_536, 5],
                &[70_000, 1, 0, 9999],
            ] {
                let (body, counted) = sent_in(ask(&dir, ""), steps);
                assert!(body == content, "{length} bytes in steps of {steps:?}");
                assert_eq!(counted, length, "in steps of {steps:?}");
            }
        }
    }

    #[test]
    fn a_slow_client_of_a_range_gets_that_range() {
        let (dir, content) = site(400_000);
        let sending = ask(&dir, "Range: bytes=1000-299999\r\n");
        let (body, counted) = sent_in(sending, &[10, 400, 0, 20_000]);
        assert!(body == content[1000..300_000]);
        assert_eq!(counted, 299_000);
    }

    #[test]
    fn data_from_no_file_is_kept_until_it_has_left() {
        let page = Response::error(Status::NotFound, false);
        let length = page.length as usize;
        let sending = Sending::begin(page, Instant::now()).unwrap();
        let (body, counted) = sent_in(sending, &[1, 0, 100]);
        assert_eq!((body.len(), counted), (length, length));
    }
}
