//! The event loop: one thread answers all connections of a shard.
//!
//! If each connection had a thread, each request would wake one, often on another CPU. Here one thread has the [`Driver`]: it takes packets from the
//! device, and answers the requests in them. A host with several shards has a loop for each shard.
//!
//! Files are read in the loop. While one is read from a disk, the other connections of the shard wait.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use transom_device::serving::{AfterAccept, Slot, after_accept};
use transom_net::{Driver, SocketReadiness, TcpListener};

use super::Server;
use super::connection::{LINGER, WRITE_TIMEOUT, timed_out};
use super::heads::Heads;
use super::response::{Body, Response};
use crate::hash::read_some;
use crate::socket::{Host, Listener, Socket};

/// The bytes of a file that leave together with the head.
const FIRST: u64 = 64 * 1024;
/// The bytes of a file that a connection sends before others have their turn.
const PIECE: u64 = 1 << 20;
/// The requests of one connection that are answered before others have their turn.
const TURN: usize = 16;
/// The number of the first listener for the driver; connections have smaller ones.
const LISTENERS: u64 = 1 << 63;
/// The interval between two looks for a free place while all are taken.
const LOOK_FOR_PLACES: Duration = Duration::from_millis(50);

/// The loop.
pub(super) struct Events {
    server: Arc<Server>,
    driver: Driver,
    shard: usize,
    /// Of all shards.
    listeners: Arc<Vec<TcpListener>>,
    connections: HashMap<u64, Connection>,
    serial: u64,
    /// Connections that had no time for all of their requests.
    busy: Vec<u64>,
    /// When to accept, if connections may wait at a listener.
    accept_at: Option<Instant>,
    /// When to look for deadlines that have passed: none is earlier.
    look_at: Instant,
}

struct Connection {
    socket: Arc<Socket>,
    peer: SocketAddr,
    heads: Heads,
    doing: Doing,
    deadline: Instant,
    _place: Slot,
}

enum Doing {
    /// Reading a request.
    Reading,
    /// Sending a response: `sent` of its `bytes` have left, and the file follows. What was read of the file ahead is the last `ahead` of the bytes.
    Sending { bytes: Vec<u8>, sent: usize, ahead: usize, file: Option<Rest>, keep_alive: bool },
    /// Closed on this side; waits for the other.
    Lingering,
}

/// The part of a file that is still to be sent.
struct Rest {
    file: File,
    offset: u64,
    left: u64,
}

/// The state of a connection after its turn.
enum After {
    Waits,
    HasMore,
    Over,
}

impl Events {
    /// Makes a loop for each shard of a host. Gives the listeners back if they are to have threads: those of the kernel, and of a host where another thread
    /// does the work.
    pub(super) fn of_each_shard(
        host: &Host,
        listeners: Vec<Listener>,
        server: &Arc<Server>,
    ) -> anyhow::Result<Result<Vec<Events>, Vec<Listener>>> {
        let Host::Transom(stack) = host else { return Ok(Err(listeners)) };
        let drivers =
            (0..stack.shard_count()).filter_map(|shard| stack.shard(shard)?.driver().ok());
        let drivers: Vec<_> = drivers.collect();
        let all_are_transoms = listeners.iter().all(|l| matches!(l, Listener::Transom(_)));
        if drivers.len() != stack.shard_count() || !all_are_transoms {
            return Ok(Err(listeners));
        }
        let transoms = |listener| match listener {
            Listener::Transom(listener) => Some(listener),
            Listener::Kernel(_) => None,
        };
        let listeners: Vec<_> = listeners.into_iter().filter_map(transoms).collect();
        for listener in &listeners {
            listener.set_nonblocking(true).context("making a listener non-blocking")?;
        }
        let listeners = Arc::new(listeners);
        let now = Instant::now();
        let events = |(shard, driver): (usize, Driver)| {
            for (listener, token) in listeners.iter().zip(LISTENERS..) {
                driver.watch_listener(listener, token);
            }
            Events {
                server: Arc::clone(server),
                driver,
                shard,
                listeners: Arc::clone(&listeners),
                connections: HashMap::new(),
                serial: 0,
                busy: Vec::new(),
                accept_at: Some(now),
                look_at: now,
            }
        };
        Ok(Ok(drivers.into_iter().enumerate().map(events).collect()))
    }

    /// Serves; ends only with an error.
    pub(super) fn run(mut self) -> anyhow::Error {
        let mut changes: Vec<SocketReadiness> = Vec::new();
        loop {
            self.driver.wait(self.rest(), &mut changes);
            for SocketReadiness { token, .. } in changes.drain(..) {
                match token {
                    LISTENERS.. => {
                        self.accept_at = Some(self.accept_at.unwrap_or_else(Instant::now))
                    }
                    token => self.take_turn(token),
                }
            }
            for token in std::mem::take(&mut self.busy) {
                self.take_turn(token);
            }
            if self.accept_at.is_some_and(|at| at <= Instant::now())
                && let Err(error) = self.accept()
            {
                return error;
            }
            self.give_up_late_ones();
        }
    }

    /// For how long there is nothing to do, if no packet comes.
    fn rest(&self) -> Option<Duration> {
        if !self.busy.is_empty() {
            return Some(Duration::ZERO);
        }
        let now = Instant::now();
        let ends = [self.accept_at, (!self.connections.is_empty()).then_some(self.look_at)];
        ends.into_iter().flatten().map(|at| at.saturating_duration_since(now)).min()
    }

    /// Accepts what waits, as long as there are places.
    fn accept(&mut self) -> anyhow::Result<()> {
        self.accept_at = None;
        for index in 0..self.listeners.len() {
            loop {
                let place = self.server.places.try_take();
                if place.is_none() && !self.connections.values().any(Connection::is_idle) {
                    self.accept_at = Some(Instant::now() + LOOK_FOR_PLACES);
                    return Ok(());
                }
                let Some(listener) = self.listeners.get(index) else { break };
                match listener.try_accept_in(self.shard) {
                    Ok((stream, peer)) => {
                        // Another shard may have been quicker: then the client is turned away.
                        if let Some(place) = place.or_else(|| self.make_place()) {
                            self.begin(stream, peer, place);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => match after_accept(&error) {
                        AfterAccept::Next => {}
                        AfterAccept::Wait(pause) => {
                            self.accept_at = Some(Instant::now() + pause);
                            return Ok(());
                        }
                        AfterAccept::End => {
                            return Err(
                                anyhow::Error::new(error).context("cannot accept connections")
                            );
                        }
                    },
                }
            }
        }
        Ok(())
    }

    /// A place for a new connection, if need be that of the connection that has been idle longest: it loses nothing.
    fn make_place(&mut self) -> Option<Slot> {
        loop {
            if let Some(place) = self.server.places.try_take() {
                return Some(place);
            }
            let idle = self.connections.iter().filter(|(_, connection)| connection.is_idle());
            let oldest = idle.min_by_key(|(_, connection)| connection.deadline);
            let oldest = oldest.map(|(&token, _)| token)?;
            drop(self.connections.remove(&oldest));
        }
    }

    fn begin(&mut self, stream: transom_net::TcpStream, peer: SocketAddr, place: Slot) {
        self.server.totals.connections.fetch_add(1, Ordering::Relaxed);
        // Every response leaves in one write; there is nothing to be gathered.
        if stream.set_nodelay(true).is_err() || stream.set_nonblocking(true).is_err() {
            return;
        }
        let token = self.serial;
        self.serial += 1;
        self.driver.watch(&stream, token);
        let socket = self.server.cleanup.watch_socket(Socket::Transom(stream));
        let deadline = Instant::now() + self.server.idle_timeout;
        let connection = Connection {
            socket,
            peer,
            heads: Heads::default(),
            doing: Doing::Reading,
            deadline,
            _place: place,
        };
        self.connections.insert(token, connection);
        // The request may be there already.
        self.take_turn(token);
    }

    fn take_turn(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        // An error means that the client has gone: nobody is there to be told.
        let after = connection.advance(&self.server).unwrap_or(After::Over);
        self.look_at = self.look_at.min(connection.deadline);
        match after {
            After::Waits => {}
            After::HasMore => self.busy.push(token),
            After::Over => drop(self.connections.remove(&token)),
        }
    }

    /// Ends the waits that have lasted too long.
    fn give_up_late_ones(&mut self) {
        let now = Instant::now();
        if now < self.look_at {
            return;
        }
        self.connections
            .retain(|_, connection| connection.deadline > now || connection.give_up(now));
        let deadlines = self.connections.values().map(|connection| connection.deadline);
        self.look_at = deadlines.min().unwrap_or(now + self.server.idle_timeout);
    }
}

impl Connection {
    /// Whether it has nothing to send: it waits for a request, or lingers.
    fn is_idle(&self) -> bool {
        !matches!(self.doing, Doing::Sending { .. })
    }

    /// Goes on until it would have to wait, or has had its turn.
    fn advance(&mut self, server: &Server) -> io::Result<After> {
        let mut piece = [0; 4096];
        let mut answers = 0;
        loop {
            let mut socket = &*self.socket;
            match &mut self.doing {
                Doing::Reading => {
                    if let Some(request) = self.heads.next() {
                        self.begin_sending(server.respond(request, self.peer), server)?;
                        continue;
                    }
                    let room = piece.len().min(self.heads.room());
                    match read_some(&mut socket, &mut piece[..room]) {
                        Ok(0) => self.close()?,
                        Ok(length) => self.heads.add(&piece[..length]),
                        Err(error) if timed_out(&error) => return Ok(After::Waits),
                        Err(error) => return Err(error),
                    }
                }
                Doing::Sending { bytes, sent, ahead, file, keep_alive } => {
                    let left = bytes.get(*sent..).unwrap_or_default();
                    if !left.is_empty() {
                        match socket.write(left) {
                            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                            Ok(length) => *sent += length,
                            Err(error) if timed_out(&error) => {
                                // A client that waits holds nothing that can be read again: nobody counts these bytes.
                                if let Some(rest) = file {
                                    rest.take_back(bytes, *sent, std::mem::take(ahead));
                                }
                                return Ok(After::Waits);
                            }
                            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                            Err(error) => return Err(error),
                        }
                        continue;
                    }
                    *bytes = Vec::new();
                    *sent = 0;
                    if let Some(rest) = file.as_mut().filter(|rest| rest.left > 0) {
                        match rest.send(&self.socket) {
                            Ok(sent) => server.count_bytes(sent),
                            Err(error) if timed_out(&error) => return Ok(After::Waits),
                            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                            Err(error) => return Err(error),
                        }
                        self.deadline = Instant::now() + WRITE_TIMEOUT;
                        if rest.left > 0 {
                            return Ok(After::HasMore);
                        }
                    }
                    if !*keep_alive {
                        self.close()?;
                        continue;
                    }
                    self.doing = Doing::Reading;
                    self.deadline = Instant::now() + server.idle_timeout;
                    answers += 1;
                    if answers == TURN {
                        return Ok(After::HasMore);
                    }
                }
                Doing::Lingering => match read_some(&mut socket, &mut piece) {
                    Ok(0) => return Ok(After::Over),
                    Ok(_) => {}
                    Err(error) if timed_out(&error) => return Ok(After::Waits),
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Head and body leave together, but for the rest of a long file.
    fn begin_sending(&mut self, response: Response, server: &Server) -> io::Result<()> {
        let mut bytes = response.head();
        let head = bytes.len();
        let (mut rest, mut ahead) = (None, 0);
        match response.body {
            Body::None => {}
            Body::Bytes(body) => bytes.extend_from_slice(&body),
            Body::File { mut file, length } => {
                let first = length.min(FIRST);
                bytes.resize(head + usize::try_from(first).unwrap_or(0), 0);
                file.read_exact(bytes.get_mut(head..).unwrap_or_default())?;
                ahead = bytes.len() - head;
                let offset = file.stream_position()?;
                rest = Some(Rest { file, offset, left: length - first });
            }
        }
        server.count_bytes(bytes.len() - head);
        let keep_alive = response.keep_alive;
        self.doing = Doing::Sending { bytes, sent: 0, ahead, file: rest, keep_alive };
        self.deadline = Instant::now() + WRITE_TIMEOUT;
        Ok(())
    }

    /// Ends our direction, and waits for what the client has still to say. To close at once would reset the connection if something unread arrived, and
    /// take the response with it (RFC 9112, section 9.6).
    fn close(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        self.doing = Doing::Lingering;
        self.deadline = Instant::now() + LINGER;
        Ok(())
    }

    /// Its deadline has passed. Returns whether it still lingers for a while.
    fn give_up(&mut self, now: Instant) -> bool {
        matches!(self.doing, Doing::Reading) && self.close().is_ok() && self.deadline > now
    }
}

impl Rest {
    /// Takes what has not been sent of the `ahead` bytes at the end of `bytes` back into the rest.
    fn take_back(&mut self, bytes: &mut Vec<u8>, sent: usize, ahead: usize) {
        let head = bytes.len() - ahead.min(bytes.len());
        let unsent = bytes.len() - head.max(sent).min(bytes.len());
        self.offset -= (unsent as u64).min(self.offset);
        self.left += unsent as u64;
        bytes.truncate(head.max(sent));
        bytes.shrink_to_fit();
    }

    /// Sends a piece, or as much as there is room for. Returns how much.
    fn send(&mut self, socket: &Socket) -> io::Result<usize> {
        let Socket::Transom(stream) = socket else { return Err(io::ErrorKind::Unsupported.into()) };
        let sent = stream.send_file(&self.file, self.offset, self.left.min(PIECE))?;
        if sent == 0 {
            // The file has become shorter.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.offset += sent;
        self.left -= sent;
        Ok(usize::try_from(sent).unwrap_or(usize::MAX))
    }
}
