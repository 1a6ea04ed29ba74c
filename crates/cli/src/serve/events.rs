//! The event loop: one thread answers all connections of a Transom host.
//!
//! With a thread for each connection, each request wakes a thread, and often on another CPU. Here the thread that takes a packet from the device answers
//! the request in it: it has the host's [`Driver`]. A connection that asks for more than [`LONGEST`] gets a thread, where the rest of its requests are
//! answered too: to send a large file takes long, and reading it may wait for a disk.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use transom_device::serving::{AfterAccept, Slot, after_accept};
use transom_net::{Driver, SocketReadiness, TcpListener};

use super::connection::{self, LINGER, WRITE_TIMEOUT};
use super::heads::Heads;
use super::response::{Body, Response};
use super::{Server, connection::timed_out};
use crate::hash::read_some;
use crate::output::note;
use crate::socket::{Host, Listener, Socket};

/// The longest body that the loop sends by itself, in bytes.
const LONGEST: u64 = 64 * 1024;
/// So many requests of one connection are answered before others have their turn.
const TURN: usize = 16;
/// Listeners have the numbers from here on.
const LISTENERS: u64 = 1 << 63;
/// While all places are taken, the loop looks so often for a free one.
const LOOK_FOR_PLACES: Duration = Duration::from_millis(50);

/// The loop.
pub(super) struct Events {
    server: Arc<Server>,
    driver: Driver,
    listeners: Vec<TcpListener>,
    connections: HashMap<u64, Connection>,
    serial: u64,
    /// Connections that had no time for all of their requests.
    busy: Vec<u64>,
    /// Connections may wait at a listener. None of them is accepted before this time.
    accept_at: Option<Instant>,
    /// No deadline is earlier.
    look_at: Instant,
}

struct Connection {
    socket: Arc<Socket>,
    peer: SocketAddr,
    heads: Heads,
    doing: Doing,
    deadline: Instant,
    place: Slot,
}

enum Doing {
    /// Reading a request.
    Reading,
    /// Sending a response, of which this much has left.
    Sending { bytes: Vec<u8>, sent: usize, keep_alive: bool },
    /// Closed on this side; waits for the other.
    Lingering,
}

/// The state of a connection after its turn.
enum After {
    Waits,
    HasMore,
    Over,
    /// A thread is to send this, and to go on.
    Thread(Response),
}

impl Events {
    /// Makes the loop for the listeners of a host. Gives them back if they are to have threads: those of the kernel, of a host with several shards, and of
    /// one where another thread does the work.
    pub(super) fn new(
        host: &Host,
        listeners: Vec<Listener>,
        server: &Arc<Server>,
    ) -> anyhow::Result<Result<Events, Vec<Listener>>> {
        let Host::Transom(stack) = host else { return Ok(Err(listeners)) };
        if stack.shard_count() != 1 || listeners.iter().any(|l| matches!(l, Listener::Kernel(_))) {
            return Ok(Err(listeners));
        }
        let Ok(driver) = stack.driver() else { return Ok(Err(listeners)) };
        let transoms = |listener| match listener {
            Listener::Transom(listener) => Some(listener),
            Listener::Kernel(_) => None,
        };
        let listeners: Vec<_> = listeners.into_iter().filter_map(transoms).collect();
        for (listener, token) in listeners.iter().zip(LISTENERS..) {
            listener.set_nonblocking(true).context("making a listener non-blocking")?;
            driver.watch_listener(listener, token);
        }
        let now = Instant::now();
        Ok(Ok(Events {
            server: Arc::clone(server),
            driver,
            listeners,
            connections: HashMap::new(),
            serial: 0,
            busy: Vec::new(),
            accept_at: Some(now),
            look_at: now,
        }))
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
                let Some(place) = self.server.places.try_take() else {
                    self.accept_at = Some(Instant::now() + LOOK_FOR_PLACES);
                    return Ok(());
                };
                let Some(accepted) = self.listeners.get(index).map(TcpListener::accept) else {
                    break;
                };
                match accepted {
                    Ok((stream, peer)) => self.begin(stream, peer, place),
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
            place,
        };
        self.connections.insert(token, connection);
        // The request may be there already.
        self.take_turn(token);
    }

    fn take_turn(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        // A client that has gone is nobody to tell.
        let after = connection.advance(&self.server).unwrap_or(After::Over);
        self.look_at = self.look_at.min(connection.deadline);
        match after {
            After::Waits => {}
            After::HasMore => self.busy.push(token),
            After::Over => drop(self.connections.remove(&token)),
            After::Thread(response) => {
                if let Some(connection) = self.connections.remove(&token) {
                    self.start_thread(connection, response);
                }
            }
        }
    }

    fn start_thread(&self, connection: Connection, response: Response) {
        let Connection { socket, peer, heads, place, .. } = connection;
        if let Socket::Transom(stream) = &*socket {
            self.driver.unwatch(stream);
            if stream.set_nonblocking(false).is_err() {
                return;
            }
        }
        let server = Arc::clone(&self.server);
        let work = move || {
            let _place = place;
            connection::go_on(&server, &socket, peer, heads, response);
        };
        if let Err(error) = thread::Builder::new().name("connection".into()).spawn(work) {
            note(format_args!("transom: cannot start a thread for {peer}: {error}"));
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
    /// Goes on until it would have to wait, or has had its turn.
    fn advance(&mut self, server: &Server) -> io::Result<After> {
        let mut piece = [0; 4096];
        let mut answers = 0;
        loop {
            let mut socket = &*self.socket;
            match &mut self.doing {
                Doing::Reading => {
                    if let Some(request) = self.heads.next() {
                        let response = server.respond(request, self.peer);
                        if matches!(response.body, Body::File { length, .. } if length > LONGEST) {
                            return Ok(After::Thread(response));
                        }
                        self.begin_sending(response, server)?;
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
                Doing::Sending { bytes, sent, keep_alive } => {
                    let left = bytes.get(*sent..).unwrap_or_default();
                    if !left.is_empty() {
                        match socket.write(left) {
                            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                            Ok(length) => *sent += length,
                            Err(error) if timed_out(&error) => return Ok(After::Waits),
                            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                            Err(error) => return Err(error),
                        }
                        continue;
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

    /// Head and body leave together.
    fn begin_sending(&mut self, response: Response, server: &Server) -> io::Result<()> {
        let mut bytes = response.head();
        let head = bytes.len();
        match response.body {
            Body::None => {}
            Body::Bytes(body) => bytes.extend_from_slice(&body),
            Body::File { mut file, length } => {
                bytes.resize(head + usize::try_from(length).unwrap_or(0), 0);
                file.read_exact(bytes.get_mut(head..).unwrap_or_default())?;
            }
        }
        server.count_bytes(bytes.len() - head);
        self.doing = Doing::Sending { bytes, sent: 0, keep_alive: response.keep_alive };
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
