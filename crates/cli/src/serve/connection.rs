//! One connection with a thread of its own: requests in, responses out, one after the other.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use transom_device::serving::Deadline;

use super::Server;
use super::heads::Heads;
use super::request::{Request, Status};
use super::response::{Body, Response};
use crate::hash::{PIECE, read_some};
use crate::socket::Socket;

/// A client that does not take a head, or a piece of a body, in this time is given up.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection that we close lingers for what the client still sends.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// Answers the requests of one connection. Its errors are the client's business: they end the connection.
pub(super) fn serve(server: &Server, socket: &Arc<Socket>, peer: SocketAddr) {
    let mut connection =
        Connection { server, socket, peer, heads: Heads::default(), piece: Vec::new() };
    // Every response leaves in as few writes as it has pieces; there is nothing to be gathered.
    if socket.set_nodelay(true).is_ok() {
        // The client has gone, or is too slow: either way there is nobody to tell.
        let _ = connection.run();
    }
}

struct Connection<'a> {
    server: &'a Server,
    socket: &'a Arc<Socket>,
    peer: SocketAddr,
    heads: Heads,
    piece: Vec<u8>,
}

impl Connection<'_> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let Some(request) = self.read_head()? else { return self.close() };
            let response = self.server.respond(request, self.peer);
            let keep_alive = response.keep_alive;
            self.send(response)?;
            if !keep_alive {
                return self.close();
            }
        }
    }

    /// The next request; `None` when the client has no more, or takes too long.
    fn read_head(&mut self) -> io::Result<Option<Result<Request, Status>>> {
        let deadline = Instant::now() + self.server.idle_timeout;
        let _waiting = self.server.idle.begin_to_read(self.socket);
        loop {
            if let Some(request) = self.heads.next() {
                return Ok(Some(request));
            }
            // One deadline for the whole head, or a byte now and then would keep the thread for ever.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            let mut piece = [0; 4096];
            let room = piece.len().min(self.heads.room());
            let mut socket = &**self.socket;
            match read_some(&mut socket, &mut piece[..room]) {
                Ok(0) => return Ok(None),
                Ok(length) => self.heads.add(&piece[..length]),
                Err(error) if timed_out(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&mut self, response: Response) -> io::Result<()> {
        // One deadline for each piece, however few bytes a client takes at a time.
        let write = |piece: &[u8]| {
            let _waiting = self.server.idle.begin_to_write(self.socket, Instant::now());
            Deadline::new(&**self.socket, WRITE_TIMEOUT).write_all(piece)
        };
        let mut head = response.head();
        match response.body {
            Body::None => write(&head),
            Body::Bytes(bytes) => {
                head.extend_from_slice(&bytes);
                head.chunks(PIECE).try_for_each(write)?;
                self.server.count_bytes(bytes.len());
                Ok(())
            }
            Body::File { mut file, length } => {
                // The head travels with the file's first piece.
                self.piece.clear();
                self.piece.append(&mut head);
                let mut start = self.piece.len();
                let mut left = length;
                loop {
                    let wanted = left.min((PIECE - start) as u64) as usize;
                    self.piece.resize(start + wanted, 0);
                    let place = self.piece.get_mut(start..).unwrap_or_default();
                    file.read_exact(place)?;
                    write(&self.piece)?;
                    self.server.count_bytes(wanted);
                    left -= wanted as u64;
                    start = 0;
                    if left == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Ends our direction and takes what the client has still to say. To close at once would reset the connection if
    /// something unread arrived, and take the response with it (RFC 9112, section 9.6).
    fn close(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        let deadline = Instant::now() + LINGER;
        let mut sink = [0; 4096];
        let mut socket = &**self.socket;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            socket.set_read_timeout(Some(left))?;
            match read_some(&mut socket, &mut sink) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if timed_out(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

pub(super) fn timed_out(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
