//! The web front: what stands between the network and every page and measure that this program serves.
//!
//! One thread accepts, reads the heads of requests, and writes the answers that are ready. A client that is slow costs a place in a table, and no
//! thread. So a server behind the front sees complete requests only, and only those that it may answer:
//!
//! - A head has to be complete within `HEAD_PATIENCE`, and is no longer than `MAX_HEAD`.
//! - Nobody is turned away because all places are taken: whoever has been idle longest has to go (`client_table.rs`). The source with the most
//!   places loses one, so that others always get in. A source is a user where the kernel knows the user (`source.rs`).
//! - A foreign page whose name resolves to this machine reads nothing (`may_ask`).
//! - An answer that is not taken within `ANSWER_PATIENCE` ends its connection. Live streams have places of their own.
//!
//! Each connection carries one request.

mod client_table;
mod guest;
mod head;
mod host;
mod source;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use guest::Guest;
pub(super) use guest::response;
pub(crate) use head::MAX_HEAD;
pub(crate) use host::may_ask;

use super::{AfterAccept, after_accept};
use client_table::{Places, Stage};
use guest::Answer;
use head::{Verdict, examine};
use source::Sources;

/// The connections that a front has at a time, without live streams.
pub const MOST_GUESTS: usize = 256;
/// The live streams of a front.
pub const MOST_STREAMS: usize = 32;
/// How long a head may take.
const HEAD_PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer, or an event of a live stream, may wait for its reader.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// How long a whole answer may take that is no live stream.
const ANSWER_LONGEST: Duration = Duration::from_secs(60);
/// How long a connection that has been answered waits for the other side to close.
const LINGER: Duration = Duration::from_secs(1);
/// The interval between two looks for those who are late.
const LOOK: Duration = Duration::from_millis(500);
/// So many are accepted before others have their turn.
const TURN: usize = 64;

/// What the front and its guests share.
#[derive(Debug)]
struct Shared {
    places: Mutex<Places>,
    /// A byte here wakes the front.
    waker: UnixStream,
    answers: Sender<Answer>,
}

impl Shared {
    fn places<T>(&self, call: impl FnOnce(&mut Places) -> T) -> T {
        call(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A front that serves until this is dropped.
#[derive(Debug)]
#[non_exhaustive]
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    /// The front sees the end of this.
    _stop: UnixStream,
}

/// Serves at an address from now on, on a thread of this name. `attend` gets each request that may be answered; it must not wait.
///
/// # Errors
/// The system's refusal of the address, of a thread or of a descriptor.
pub fn serve(
    at: SocketAddr,
    name: &str,
    attend: impl FnMut(Guest) + Send + 'static,
) -> io::Result<Serving> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let (stop, stopped) = UnixStream::pair()?;
    let (waker, woken) = UnixStream::pair()?;
    for socket in [&waker, &woken] {
        socket.set_nonblocking(true)?;
    }
    let (answers, answered) = channel();
    let places = Mutex::new(Places::new(MOST_GUESTS, MOST_STREAMS));
    let shared = Arc::new(Shared { places, waker, answers });
    let work = Work {
        listener,
        stopped,
        woken,
        answered,
        shared,
        attend,
        sources: Sources::default(),
        visits: HashMap::new(),
        accept_at: None,
        looked: Instant::now(),
    };
    thread::Builder::new().name(name.into()).spawn(move || work.run())?;
    Ok(Serving { address, _stop: stop })
}

/// A connection that the front has to do with; the others are with the server behind it.
struct Visit {
    guest: Guest,
    doing: Doing,
}

enum Doing {
    ReadingHead,
    Writing {
        bytes: Vec<u8>,
        sent: usize,
    },
    /// Our direction has ended. To close at once would reset the connection if something unread arrived, and take the answer with it (RFC
    /// 9112, section 9.6).
    Lingering {
        until: Instant,
    },
}

/// What becomes of a visit.
enum After {
    Stays,
    Ends,
    IsAttended,
}

struct Work<A> {
    listener: TcpListener,
    stopped: UnixStream,
    woken: UnixStream,
    answered: Receiver<Answer>,
    shared: Arc<Shared>,
    attend: A,
    sources: Sources,
    visits: HashMap<u64, Visit>,
    /// While the system has no descriptors: when to accept again.
    accept_at: Option<Instant>,
    looked: Instant,
}

impl<A: FnMut(Guest)> Work<A> {
    fn run(mut self) {
        loop {
            let Ok((ready, accepts)) = self.wait() else { return };
            if accepts && !self.accept() {
                return;
            }
            for id in ready {
                self.advance(id);
            }
            self.take_answers();
            self.look();
        }
    }

    /// Waits for something to do: the visits that are ready, and whether somebody waits to be accepted. An error is the end.
    fn wait(&mut self) -> io::Result<(Vec<u64>, bool)> {
        let now = Instant::now();
        let pause = self.accept_at.map(|at| at.saturating_duration_since(now));
        let listens = pause.is_none_or(|pause| pause.is_zero());
        let nobody = self.shared.places(|places| places.is_empty());
        let timeout = (!nobody || !listens)
            .then_some(LOOK)
            .map(|look| pause.map_or(look, |pause| look.min(pause)));
        let timeout =
            timeout.map(|timeout| Timespec { tv_sec: 0, tv_nsec: timeout.subsec_nanos().into() });
        let mut fds = vec![
            PollFd::new(&self.stopped, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
            PollFd::new(&self.listener, if listens { PollFlags::IN } else { PollFlags::empty() }),
        ];
        let mut ids = Vec::with_capacity(self.visits.len());
        for (&id, visit) in &self.visits {
            let wanted = match visit.doing {
                Doing::Writing { .. } => PollFlags::OUT,
                Doing::ReadingHead | Doing::Lingering { .. } => PollFlags::IN,
            };
            fds.push(PollFd::new(visit.guest.socket(), wanted));
            ids.push(id);
        }
        rustix::io::retry_on_intr(|| poll(&mut fds, timeout.as_ref()))?;
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let [stopped, woken, listener, guests @ ..] = fds.as_slice() else {
            return Err(io::ErrorKind::Other.into());
        };
        if is_ready(stopped) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let ready = ids.into_iter().zip(guests).filter(|(_, fd)| is_ready(fd));
        let ready = ready.map(|(id, _)| id).collect();
        let (woken, accepts) = (is_ready(woken), listens && is_ready(listener));
        if woken {
            // How many there were does not matter.
            while matches!((&self.woken).read(&mut [0; 256]), Ok(256)) {}
        }
        Ok((ready, accepts))
    }

    /// Accepts those who wait. Returns whether the listener is still of use.
    fn accept(&mut self) -> bool {
        self.accept_at = None;
        for _ in 0..TURN {
            match self.listener.accept() {
                Ok((socket, peer)) => self.begin(socket, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => match after_accept(&error) {
                    AfterAccept::Next => {}
                    AfterAccept::Wait(pause) => {
                        // Whoever has been idle longest gives a descriptor back.
                        self.shared.places(Places::make_room);
                        self.forget_the_evicted();
                        self.accept_at = Some(Instant::now() + pause);
                        break;
                    }
                    AfterAccept::End => return false,
                },
            }
        }
        true
    }

    fn begin(&mut self, socket: TcpStream, peer: SocketAddr) {
        let Ok(local) = socket.local_addr() else { return };
        if socket.set_nonblocking(true).is_err() || socket.set_nodelay(true).is_err() {
            return;
        }
        let socket = Arc::new(socket);
        let source = self.sources.of(peer, local);
        let now = Instant::now();
        let id = self.shared.places(|places| places.enter(Arc::clone(&socket), source, now));
        let guest = Guest::new(Arc::clone(&self.shared), id, socket, local);
        self.visits.insert(id, Visit { guest, doing: Doing::ReadingHead });
        self.forget_the_evicted();
        // The request may be there already.
        self.advance(id);
    }

    /// Goes on with a visit until it would have to wait.
    fn advance(&mut self, id: u64) {
        let Some(visit) = self.visits.get_mut(&id) else { return };
        // An error means that the client has gone: nobody is there to be told.
        match visit.advance().unwrap_or(After::Ends) {
            After::Stays => {}
            After::Ends => drop(self.visits.remove(&id)),
            After::IsAttended => {
                if let Some(visit) = self.visits.remove(&id) {
                    (self.attend)(visit.guest);
                }
            }
        }
    }

    /// Begins to write the answers that the server behind the front has given.
    fn take_answers(&mut self) {
        while let Ok(Answer { guest, bytes }) = self.answered.try_recv() {
            let id = guest.id();
            // Without a place it has been evicted meanwhile.
            if self.shared.places(|places| places.has(id)) {
                self.visits.insert(id, Visit { guest, doing: Doing::Writing { bytes, sent: 0 } });
                self.advance(id);
            }
        }
    }

    /// Ends those who are late.
    fn look(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        self.shared.places(|places| places.evict_late_ones(now));
        self.forget_the_evicted();
        self.visits
            .retain(|_, visit| !matches!(visit.doing, Doing::Lingering { until } if until <= now));
    }

    fn forget_the_evicted(&mut self) {
        // Guests give their places back when they are dropped, for which the lock must be free.
        let present = self.shared.places(|places| places.present());
        if self.visits.keys().any(|id| !present.contains(id)) {
            self.visits.retain(|id, _| present.contains(id));
        }
    }
}

impl Visit {
    fn advance(&mut self) -> io::Result<After> {
        let mut piece = [0; 4096];
        loop {
            let mut socket: &TcpStream = self.guest.socket();
            match &mut self.doing {
                Doing::ReadingHead => {
                    let Some(length) = ready(socket.read(&mut piece))? else {
                        return Ok(After::Stays);
                    };
                    if length == 0 {
                        return Ok(After::Ends);
                    }
                    let bytes = piece.get(..length).unwrap_or_default();
                    match self.guest.add(bytes) {
                        Verdict::Incomplete => {}
                        Verdict::MayAsk => {
                            self.guest.reaches(Stage::Answer);
                            return Ok(After::IsAttended);
                        }
                        Verdict::Refused(status, why) => {
                            self.guest.reaches(Stage::Answer);
                            let bytes = guest::plain(status, why);
                            self.doing = Doing::Writing { bytes, sent: 0 };
                        }
                    }
                }
                Doing::Writing { bytes, sent } => {
                    let left = bytes.get(*sent..).unwrap_or_default();
                    if left.is_empty() {
                        socket.shutdown(Shutdown::Write)?;
                        self.doing = Doing::Lingering { until: Instant::now() + LINGER };
                        continue;
                    }
                    let Some(length) = ready(socket.write(left))? else {
                        self.guest.waits_for_room();
                        return Ok(After::Stays);
                    };
                    *sent += length;
                    self.guest.wrote();
                }
                Doing::Lingering { .. } => match ready(socket.read(&mut piece))? {
                    None => return Ok(After::Stays),
                    Some(0) => return Ok(After::Ends),
                    Some(_) => {}
                },
            }
        }
    }
}

/// The outcome of a read or write that does not wait; nothing if it would have to.
fn ready(outcome: io::Result<usize>) -> io::Result<Option<usize>> {
    match outcome {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}
