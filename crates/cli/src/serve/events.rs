//! The event loop: one thread answers all connections of a shard.
//!
//! If each connection had a thread, each request would wake one, often on another CPU. Here one thread has the [`Driver`]: it takes packets from the
//! device, and answers the requests in them. A host with several shards has a loop for each shard.
//!
//! Files are read in the loop. While one is read from a disk, the other connections of the shard wait.

use std::collections::HashMap;
use std::io;
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
use super::sending::{Progress, Sending};
use crate::hash::read_some;
use crate::socket::{Host, Listener, Socket};

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
    Sending(Sending),
    /// Closed on this side; waits for the other.
    Lingering,
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
                if place.is_none() && self.goes_first().is_none() {
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

    /// A place for a new connection, if need be that of another ([`Connection::may_go`]).
    fn make_place(&mut self) -> Option<Slot> {
        loop {
            if let Some(place) = self.server.places.try_take() {
                return Some(place);
            }
            let first = self.goes_first()?;
            drop(self.connections.remove(&first));
        }
    }

    fn goes_first(&self) -> Option<u64> {
        let now = Instant::now();
        let may_go = |(&token, connection): (&u64, &Connection)| {
            connection.may_go(now).map(|rank| (rank, token))
        };
        self.connections.iter().filter_map(may_go).min().map(|(_, token)| token)
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
    /// Whether it may be ended for another, and in which order: first who has been idle for longest, as it loses nothing; then who has stalled for
    /// longest.
    fn may_go(&self, now: Instant) -> Option<(bool, Instant)> {
        match &self.doing {
            Doing::Sending(sending) => sending.pace().stalled_since(now).map(|since| (true, since)),
            Doing::Reading | Doing::Lingering => Some((false, self.deadline)),
        }
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
                        let now = Instant::now();
                        let response = server.respond(request, self.peer);
                        self.doing = Doing::Sending(Sending::begin(response, now)?);
                        self.deadline = now + WRITE_TIMEOUT;
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
                Doing::Sending(sending) => {
                    let mut count = 0;
                    let progress = sending.go_on(socket, |bytes| count += bytes);
                    server.count_bytes(count);
                    if count > 0 {
                        self.deadline = Instant::now() + WRITE_TIMEOUT;
                    }
                    match progress? {
                        Progress::Waits => return Ok(After::Waits),
                        Progress::HasMore => return Ok(After::HasMore),
                        Progress::Sent if !sending.keep_alive => {
                            self.close()?;
                            continue;
                        }
                        Progress::Sent => {}
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
