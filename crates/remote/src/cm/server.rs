//! The server: one thread that waits for all sockets.

use super::attachment::{Attachment, LONGEST, Offered};
use super::companion::{Companion, Wanted};
use super::protocol::{Flow, Macroflow, Reply};
use super::sockets::Sockets;
use super::wire::{Credentials, Wire};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};
use transom_device::EventFd;
use transom_device::serving::{AfterAccept, UnixName, after_accept};
use transom_extensions::cm::Manager;
use transom_tcp::time::Instant;

/// The most TCP connections, and the most programs with other flows.
const MOST_CONNECTIONS: usize = 1024;
const MOST_COMPANIONS: usize = 256;
/// How often it looks for new sockets.
const LOOK: Duration = Duration::from_millis(200);
/// How often it looks whether a flow that waits has room: reports and grants that expire tell nobody.
const TICK: Duration = Duration::from_millis(20);
/// The origin of time lies before the start, so that "long ago" can be expressed.
const ORIGIN: Duration = Duration::from_secs(1000);

/// A Congestion Manager for several processes. Dropping it sets all connections free.
pub struct CmServer {
    manager: Manager,
    started: Clock,
    sockets: Sockets,
    looked: Option<Clock>,
    companions_at: Option<UnixName>,
    attachments: BTreeMap<u64, Attachment>,
    companions: BTreeMap<u64, Companion>,
    next: u64,
    stop: Arc<EventFd>,
    tell: Box<dyn FnMut(fmt::Arguments<'_>) + Send>,
}

impl fmt::Debug for CmServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CmServer").field("sockets", &self.sockets).finish_non_exhaustive()
    }
}

/// The socket that is ready.
enum Ready {
    Stop,
    Listener,
    Watcher(PathBuf),
    Attachment(u64),
    Companion(u64),
}

impl CmServer {
    /// A server for the extension sockets at `places`: sockets, which may come later, and directories of sockets. At `companions`, if it is
    /// given, it listens for programs with flows that are not TCP's. It says to `tell` which flows come and go, and what it cannot use.
    ///
    /// # Errors
    /// The operating system's; [`io::ErrorKind::AddrInUse`] if another process listens at `companions`.
    pub fn new(
        places: Vec<PathBuf>,
        companions: Option<&Path>,
        tell: impl FnMut(fmt::Arguments<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let companions_at = companions.map(UnixName::listen).transpose()?;
        if let Some(name) = &companions_at {
            name.listener().set_nonblocking(true)?;
        }
        let own = companions.and_then(|path| path.canonicalize().ok());
        Ok(CmServer {
            manager: Manager::default(),
            started: Clock::now(),
            sockets: Sockets::new(places, own),
            looked: None,
            companions_at,
            attachments: BTreeMap::new(),
            companions: BTreeMap::new(),
            next: 0,
            stop: Arc::new(EventFd::new()?),
            tell: Box::new(tell),
        })
    }

    /// Ends it from elsewhere: [`run`](Self::run) returns after a [signal](EventFd::signal).
    pub fn stopper(&self) -> Arc<EventFd> {
        Arc::clone(&self.stop)
    }

    /// Serves until it is [stopped](Self::stopper).
    ///
    /// # Errors
    /// The operating system's, if it cannot wait any more.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            self.look_for_sockets();
            for ready in self.wait()? {
                match ready {
                    Ready::Stop => return Ok(()),
                    Ready::Listener => self.accept()?,
                    Ready::Watcher(path) => self.heed(&path),
                    Ready::Attachment(id) => self.attend(id),
                    Ready::Companion(id) => self.listen_to(id),
                }
            }
            self.clean_up();
            self.grant();
        }
    }

    fn now(&self) -> Instant {
        let elapsed = self.started.elapsed() + ORIGIN;
        Instant::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    fn look_for_sockets(&mut self) {
        if !self.sockets.are_expected() || self.looked.is_some_and(|last| last.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Clock::now());
        for (path, error) in self.sockets.look() {
            self.tell_unusable(&path, &error);
        }
    }

    /// How long it may sleep.
    fn patience(&self) -> Option<Duration> {
        let mut all = self.companions.values();
        if all.clone().any(Companion::has_more) {
            return Some(Duration::ZERO);
        }
        if all.any(Companion::waits) {
            return Some(TICK);
        }
        let busy = self.sockets.are_expected() || !self.companions.is_empty();
        busy.then_some(LOOK)
    }

    fn wait(&self) -> io::Result<Vec<Ready>> {
        let mut who = vec![Ready::Stop];
        let mut what = vec![PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
        if let Some(name) = &self.companions_at {
            who.push(Ready::Listener);
            what.push(PollFd::from_borrowed_fd(name.listener().as_fd(), PollFlags::IN));
        }
        for (path, watcher) in &self.sockets.watched {
            who.push(Ready::Watcher(path.clone()));
            what.push(watched(&watcher.wire, true));
        }
        for (id, attachment) in &self.attachments {
            who.push(Ready::Attachment(*id));
            what.push(watched(&attachment.wire, true));
        }
        for (id, companion) in &self.companions {
            who.push(Ready::Companion(*id));
            what.push(watched(&companion.wire, !companion.is_full()));
        }
        let timeout = self.patience().map(Timespec::try_from).transpose();
        let timeout = timeout.map_err(io::Error::other)?;
        match poll(&mut what, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ready = who.into_iter().zip(&what).filter(|(who, what)| {
            let more = match who {
                Ready::Companion(id) => self.companions.get(id).is_some_and(Companion::has_more),
                _ => false,
            };
            more || !what.revents().is_empty()
        });
        Ok(ready.map(|(who, _)| who).collect())
    }

    /// Takes programs.
    fn accept(&mut self) -> io::Result<()> {
        let Some(name) = &self.companions_at else { return Ok(()) };
        let stream = match name.listener().accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => match after_accept(&error) {
                AfterAccept::Next => return Ok(()),
                AfterAccept::Wait(pause) => {
                    std::thread::sleep(pause);
                    return Ok(());
                }
                AfterAccept::End => return Err(error),
            },
        };
        let Ok(credentials) = Credentials::of(&stream) else { return Ok(()) };
        let Ok(mut companion) = Companion::new(stream, credentials.process) else { return Ok(()) };
        let refusal = if !credentials.is_trusted() {
            "this server takes programs of its own user and of root"
        } else if self.companions.len() >= MOST_COMPANIONS {
            self.tell_full();
            "there are too many programs already"
        } else {
            let id = self.number();
            self.companions.insert(id, companion);
            return Ok(());
        };
        // A program that does not wait for an answer gets none.
        let _ = companion.say(&Reply::Error(refusal.into()));
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Attaches to the connections that a process offers.
    fn heed(&mut self, path: &Path) {
        let Some(watcher) = self.sockets.watched.get_mut(path) else { return };
        let process = watcher.process;
        match watcher.wire.flush().and_then(|()| watcher.listen()) {
            Ok(offered) => {
                for offered in offered {
                    self.attach(path, offered, process);
                }
            }
            Err(error) => {
                if let Some(error) = self.sockets.drop_watcher(path, error) {
                    self.tell_unusable(path, &error);
                }
            }
        }
    }

    fn attach(&mut self, path: &Path, offered: Offered, process: i32) {
        if self.attachments.len() >= MOST_CONNECTIONS {
            self.tell_full();
            return;
        }
        match Wire::connect(path, LONGEST) {
            Ok(wire) => {
                let id = self.number();
                self.attachments.insert(id, Attachment::new(wire, offered, process));
            }
            Err(error) => self.tell_left(process, offered.remote, &error.to_string()),
        }
    }

    fn attend(&mut self, id: u64) {
        let now = self.now();
        let Some(attachment) = self.attachments.get_mut(&id) else { return };
        let before = attachment.macroflow().is_some();
        let outcome = attachment.wire.flush().and_then(|()| attachment.listen(&self.manager, now));
        let (process, remote) = (attachment.process, attachment.remote());
        if let Some(macroflow) = attachment.macroflow().filter(|_| !before) {
            (self.tell)(format_args!(
                "process {process}: the connection to {remote} is in {macroflow}"
            ));
        }
        if let Err(error) = outcome {
            self.attachments.remove(&id);
            self.tell_left(process, remote, &reason(&error));
        }
    }

    fn listen_to(&mut self, id: u64) {
        let now = self.now();
        let Some(companion) = self.companions.get_mut(&id) else { return };
        let before = companion.stream.is_some();
        let outcome = companion.wire.flush().and_then(|()| companion.listen(&self.manager, now));
        if let Some(stream) = companion.stream.as_ref().filter(|_| !before) {
            let (process, macroflow) = (companion.process, stream.macroflow());
            (self.tell)(format_args!("process {process}: a flow without TCP is in {macroflow}"));
        }
        match outcome {
            Ok(Wanted::Nothing) => {}
            Ok(Wanted::List) => {
                let list = Reply::Macroflows(self.list(now));
                let said = self.companions.get_mut(&id).map(|companion| companion.say(&list));
                if let Some(Err(error)) = said {
                    self.dismiss(id, &error);
                }
            }
            Err(error) => self.dismiss(id, &error),
        }
    }

    fn dismiss(&mut self, id: u64, error: &io::Error) {
        let Some(mut companion) = self.companions.remove(&id) else { return };
        if error.kind() == io::ErrorKind::InvalidData {
            // A program that does not wait for an answer gets none.
            let _ = companion.say(&Reply::Error(error.to_string()));
        }
        if companion.stream.is_some() {
            let (process, reason) = (companion.process, reason(error));
            (self.tell)(format_args!("process {process}: its flow without TCP has left: {reason}"));
        }
    }

    /// Drops those that say nothing.
    fn clean_up(&mut self) {
        self.companions.retain(|_, companion| !companion.is_silent());
        let silent = self.attachments.extract_if(.., |_, one| one.is_silent());
        for (_, silent) in silent.collect::<Vec<_>>() {
            self.tell_left(silent.process, silent.remote(), "the process does not answer");
        }
    }

    /// A connection is in no macroflow any more.
    fn tell_left(&mut self, process: i32, remote: SocketAddr, reason: &str) {
        (self.tell)(format_args!(
            "process {process}: the connection to {remote} has left: {reason}"
        ));
    }

    /// An extension socket is no use.
    fn tell_unusable(&mut self, path: &Path, reason: &io::Error) {
        (self.tell)(format_args!("{} cannot be used: {reason}", path.display()));
    }

    /// A connection or a program was not taken.
    fn tell_full(&mut self) {
        (self.tell)(format_args!("there are too many flows; further ones go their own way"));
    }

    /// Gives the programs what they have room for.
    fn grant(&mut self) {
        let now = self.now();
        let mut gone = Vec::new();
        for (id, companion) in &mut self.companions {
            if let Err(error) = companion.wire.flush().and_then(|()| companion.grant(now)) {
                gone.push((*id, error));
            }
        }
        for (id, error) in gone {
            self.dismiss(id, &error);
        }
    }

    fn list(&self, now: Instant) -> Vec<Macroflow> {
        let described =
            self.manager.macroflows(now).into_iter().map(|(name, known)| {
                let tcp = self.attachments.values();
                let tcp = tcp
                    .filter(|one| one.macroflow() == Some(name.as_str()))
                    .map(|one| Flow { process: one.process, kind: "tcp".into(), share: one.share });
                let udp = self.companions.values().filter_map(|one| {
                    let stream = one.stream.as_ref().filter(|stream| stream.macroflow() == name)?;
                    let share = Some(stream.allowed(now));
                    Some(Flow { process: one.process, kind: "udp".into(), share })
                });
                let flows = tcp.chain(udp).collect();
                let rtt = known.rtt.map(|rtt| rtt.srtt.as_nanos());
                let (window, outstanding) = (known.window, known.outstanding);
                Macroflow { name, window, outstanding, rtt, flows }
            });
        described.collect()
    }
}

/// The events of a socket to wait for.
fn watched(wire: &Wire, read: bool) -> PollFd<'_> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, read);
    flags.set(PollFlags::OUT, wire.waiting() > 0);
    PollFd::from_borrowed_fd(wire.as_fd(), flags)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset => "the process has gone".into(),
        io::ErrorKind::TimedOut => "the process takes nothing".into(),
        _ => error.to_string(),
    }
}
