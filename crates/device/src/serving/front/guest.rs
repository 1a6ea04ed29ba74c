//! A client whose request the server behind a front has to answer.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use super::client_table::Stage;
use super::{MAX_HEAD, Shared, Verdict, examine};

/// A connection with a place in the table of a front. The place is given back when this is dropped.
#[derive(Debug)]
pub struct Guest {
    pub(super) shared: Arc<Shared>,
    id: u64,
    socket: Arc<TcpStream>,
    local: SocketAddr,
    received: Vec<u8>,
    request: String,
}

/// An answer that the front has to write.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) guest: Guest,
    pub(super) bytes: Vec<u8>,
}

impl Guest {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: u64,
        socket: Arc<TcpStream>,
        local: SocketAddr,
    ) -> Guest {
        Guest { shared, id, socket, local, received: Vec::new(), request: String::new() }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Adds received bytes, and examines all of them when another line is complete.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Verdict {
        self.received.extend_from_slice(bytes);
        if !bytes.contains(&b'\n') && self.received.len() < MAX_HEAD {
            return Verdict::Incomplete;
        }
        let (verdict, request) = examine(&self.received, self.local.ip());
        self.request = request.unwrap_or_default();
        verdict
    }

    pub(super) fn reaches(&self, stage: Stage) {
        self.shared.places(|places| places.reaches(self.id, stage, Instant::now()));
    }

    /// The method and the target of the request, with a space between them.
    pub(crate) fn request(&self) -> &str {
        &self.request
    }

    /// The bytes received: the head, and those that came with it.
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// The connection, which does not block. It is shut down when the place is taken away.
    pub fn socket(&self) -> &Arc<TcpStream> {
        &self.socket
    }

    /// Whether the client still has its place. Without it the connection has been shut down.
    pub fn has_place(&self) -> bool {
        self.shared.places(|places| places.has(self.id))
    }

    /// The client has taken something of the answer. Whoever writes to the connection says so.
    pub fn wrote(&self) {
        self.shared.places(|places| places.wrote(self.id, Instant::now()));
    }

    /// The client has to take something before the answer goes on.
    pub fn waits_for_room(&self) {
        self.shared.places(|places| places.waits(self.id, Instant::now()));
    }

    /// Makes this a live stream, which has no end. Returns false if there are too many of them: the same source has as many as anybody.
    #[must_use]
    pub fn becomes_stream(&self) -> bool {
        self.shared.places(|places| places.begin_stream(self.id))
    }

    /// Leaves it to the front to write an answer and to close.
    pub(crate) fn answer(mut self, bytes: Vec<u8>) {
        self.received = Vec::new();
        let shared = Arc::clone(&self.shared);
        // If the front has ended, the connection ends here.
        if shared.answers.send(Answer { guest: self, bytes }).is_ok() {
            // If the pipe is full, the front is awake.
            let _ = (&shared.waker).write(&[0]);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.shared.places(|places| places.leave(self.id));
    }
}

/// An answer of plain text.
pub(super) fn plain(status: &str, text: &str) -> Vec<u8> {
    response(status, "text/plain; charset=utf-8", text)
}

/// A whole answer, after which the connection is closed.
pub(crate) fn response(status: &str, media_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}"
    );
    text.into_bytes()
}
