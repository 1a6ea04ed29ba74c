//! One connection: requests in, responses out, one after the other.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use transom_device::serving::Deadline;

use super::request::{self, Request, Status};
use super::response::{self, Body, Response};
use super::{Log, Server};
use crate::hash::read_some;
use crate::output;
use crate::socket::Socket;

/// The longest request head that is read, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// Read and written at a time.
const PIECE: usize = 256 * 1024;
/// A client that does not take a head, or a piece of a body, in this time is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection that we close lingers for what the client still sends.
const LINGER: Duration = Duration::from_secs(1);

/// Answers the requests of one connection. Its errors are the client's business: they end the connection.
pub(super) fn serve(server: &Server, socket: &Socket, peer: SocketAddr) {
    let mut connection =
        Connection { server, socket, peer, received: Vec::new(), piece: Vec::new() };
    // Every response leaves in as few writes as it has pieces; there is nothing to be gathered.
    if socket.set_nodelay(true).is_ok() {
        // The client has gone, or is too slow: either way there is nobody to tell.
        let _ = connection.run();
    }
}

struct Connection<'a> {
    server: &'a Server,
    socket: &'a Socket,
    peer: SocketAddr,
    /// Bytes received after the last request.
    received: Vec<u8>,
    piece: Vec<u8>,
}

impl Connection<'_> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let response = match self.read_head()? {
                None => return self.close(),
                Some(Ok(request)) => response::respond(&self.server.root, request),
                Some(Err(status)) => Response::error(status, true),
            };
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
        loop {
            match request::parse(&self.received) {
                Ok(Some((request, length))) => {
                    self.received.drain(..length);
                    return Ok(Some(Ok(request)));
                }
                Ok(None) if self.received.len() >= MAX_HEAD => {
                    return Ok(Some(Err(Status::HeadTooLarge)));
                }
                Ok(None) => {}
                Err(status) => return Ok(Some(Err(status))),
            }
            // One deadline for the whole head, or a byte now and then would keep the thread for ever.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            let mut piece = [0; 4096];
            let room = piece.len().min(MAX_HEAD - self.received.len());
            let mut socket = self.socket;
            match read_some(&mut socket, &mut piece[..room]) {
                Ok(0) => return Ok(None),
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                Err(error) if timed_out(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&mut self, response: Response) -> io::Result<()> {
        let totals = &self.server.totals;
        totals.requests.fetch_add(1, Ordering::Relaxed);
        if response.status.is_error() {
            totals.errors.fetch_add(1, Ordering::Relaxed);
        }
        self.log(&response);
        // One deadline for each piece, however few bytes a client takes at a time.
        let write = |piece: &[u8]| Deadline::new(self.socket, WRITE_TIMEOUT).write_all(piece);
        let mut head = response.head();
        match response.body {
            Body::None => write(&head),
            Body::Bytes(bytes) => {
                totals.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                head.extend_from_slice(&bytes);
                head.chunks(PIECE).try_for_each(write)
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
                    totals.bytes.fetch_add(wanted as u64, Ordering::Relaxed);
                    left -= wanted as u64;
                    start = 0;
                    if left == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn log(&self, response: &Response) {
        let (method, target) = (&response.method, &response.target);
        let (status, length) = (response.status.code(), response.length);
        let line = match self.server.log {
            Log::Nothing => return,
            Log::Text => format!("{} \"{method} {target}\" {status} {length}", self.peer),
            Log::Json => serde_json::json!({
                "peer": self.peer.to_string(),
                "method": method,
                "target": target,
                "status": status,
                "length": length,
            })
            .to_string(),
        };
        // A log that nobody reads is no reason to stop serving.
        let _ = output::line(line);
    }

    /// Ends our direction and takes what the client has still to say. To close at once would reset the connection if
    /// something unread arrived, and take the response with it (RFC 9112, section 9.6).
    fn close(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        let deadline = Instant::now() + LINGER;
        let mut sink = [0; 4096];
        let mut socket = self.socket;
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

fn timed_out(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
