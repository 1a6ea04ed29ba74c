//! Request heads, cut out of the bytes of a connection.

use super::request::{self, Request, Status};

/// The longest request head that is read, in bytes.
const MAX_HEAD: usize = 16 * 1024;

/// The bytes received after the last request.
#[derive(Debug, Default)]
pub(super) struct Heads {
    received: Vec<u8>,
}

impl Heads {
    /// The next request, or the error to answer. `None` until its head is complete.
    pub(super) fn next(&mut self) -> Option<Result<Request, Status>> {
        match request::parse(&self.received) {
            Ok(Some((request, length))) => {
                self.received.drain(..length);
                Some(Ok(request))
            }
            Ok(None) if self.received.len() >= MAX_HEAD => Some(Err(Status::HeadTooLarge)),
            Ok(None) => None,
            Err(status) => Some(Err(status)),
        }
    }

    /// How many more bytes may be added.
    pub(super) fn room(&self) -> usize {
        MAX_HEAD.saturating_sub(self.received.len())
    }

    /// Adds received bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }
}
