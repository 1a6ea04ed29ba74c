//! The calls that are stopped: a new socket, a listener, and options that are about the connection outside. Everything else is the kernel's own.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libc::c_int;
use rustix::event::epoll;
use rustix::net::{Shutdown, sockopt};
use transom_device::cookie_of;
use transom_device::intercept::{Answer, Call, Kind, Notifier};
use transom_device::private::{Caller, Family, may_bind_low_ports};
use transom_net::Profile;
use transom_sockets::Errno;
use transom_stack::mapped::canonical;

use crate::ledger::Ledger;
use crate::program;
use crate::reserve::{Outside, Place, Source};
use crate::supervisor::{Supervisor, watch};

/// The bits of a socket's type that are no flags (linux/net.h).
const SOCK_TYPE_MASK: c_int = 0xf;
/// A listener without an address is given ports until one is free outside too.
const MAX_PORTS_TRIED: usize = 16;

/// Why a call is not answered with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It fails with this error number.
    Error(c_int),
    /// It was answered already, or its thread is gone.
    Answered,
    /// The kernel does what it would have done: it is about no socket of ours, or about nothing outside.
    Continue,
}

pub(crate) type Outcome = Result<i64, Refusal>;

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::Error(match (error.raw_os_error(), error.kind()) {
            // A port that this user may not have: bind(2).
            (None, io::ErrorKind::PermissionDenied) => libc::EACCES,
            (None, io::ErrorKind::NotFound) => libc::EIO,
            // ENETDOWN, the table's number for all others, says that the supervisor is gone.
            _ => match Errno::from(error).0 {
                libc::ENETDOWN => libc::EIO,
                number => number,
            },
        })
    }
}

/// An argument that is declared as an `int`: the lower half, as the kernel has it.
pub(crate) fn int(call: &Call, index: usize) -> c_int {
    call.arguments.get(index).map_or(0, |&word| word as c_int)
}

/// A notifier whose call in hand is noted.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) notifier: Notifier,
    ledger: Ledger,
}

impl Calls {
    pub(crate) fn new(notifier: Notifier, ledger: Ledger) -> Self {
        Calls { notifier, ledger }
    }

    fn receive(&self) -> io::Result<Option<Call>> {
        let call = self.notifier.receive()?;
        if let Some(call) = &call {
            self.ledger.note(call.id)?;
        }
        Ok(call)
    }

    /// Fails if the call does not wait any more. What was read with its thread's number is worth nothing then.
    pub(crate) fn still_waits(&self, call: &Call) -> Result<(), Refusal> {
        if self.notifier.is_valid(call.id) { Ok(()) } else { Err(Refusal::Answered) }
    }
}

/// A program's socket that a call is about.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) socket: OwnedFd,
    /// The number that no other socket has.
    pub(crate) cookie: u64,
}

impl AsFd for Target {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Target {
    fn local(&self) -> io::Result<SocketAddr> {
        let address = rustix::net::getsockname(&self.socket)?;
        Ok(SocketAddr::try_from(address)?)
    }

    /// Both addresses, if it is connected.
    pub(crate) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        let peer = rustix::net::getpeername(&self.socket).ok()?;
        let peer = SocketAddr::try_from(peer?).ok()?;
        Some((canonical(self.local().ok()?), canonical(peer)))
    }
}

/// The first port that everybody may have (ip(7), `ip_unprivileged_port_start`).
fn first_unprivileged_port() -> u16 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024)
}

impl Supervisor {
    /// Takes a call and answers it.
    pub(crate) fn answer_call(&mut self) -> io::Result<()> {
        let Some(call) = self.calls.receive()? else { return Ok(()) };
        self.counts.calls += 1;
        let outcome = match call.kind {
            Kind::Socket => self.socket(&call),
            Kind::Listen => self.listen(&call),
            Kind::SetOption => self.set_option(&call),
            Kind::GetOption => self.get_option(&call),
        };
        let answer = match outcome {
            Ok(value) => Answer::Value(value),
            Err(Refusal::Error(error)) => Answer::Error(error),
            Err(Refusal::Continue) => Answer::Continue,
            Err(Refusal::Answered) => return Ok(()),
        };
        self.calls.notifier.answer(call.id, answer)?;
        Ok(())
    }

    /// The socket that a call's first argument means, if it is one of the private network's.
    pub(crate) fn target(&self, call: &Call) -> Result<Target, Refusal> {
        let socket = program::socket_of(call.thread, int(call, 0));
        self.calls.still_waits(call)?;
        // A descriptor that is not open, or that we may not see, is the kernel's matter.
        let socket = socket.ok().flatten().ok_or(Refusal::Continue)?;
        let cookie = self.inner.cookie_of(&socket).ok_or(Refusal::Continue)?;
        Ok(Target { socket, cookie })
    }

    fn socket(&mut self, call: &Call) -> Outcome {
        let caller = Caller::of(call.thread, &self.inner.home);
        self.calls.still_waits(call)?;
        // Who may not be looked at is given nothing that could be somebody else's.
        let caller = caller.map_err(|_| Refusal::Error(libc::EACCES))?;
        if !caller.shares_network {
            return Err(Refusal::Continue);
        }
        let (family, kind) = (Family::of(int(call, 0)).ok_or(Refusal::Continue)?, int(call, 1));
        if kind & !(SOCK_TYPE_MASK | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
            // The kernel refuses it.
            return Err(Refusal::Continue);
        }
        let socket = self.inner.maker.take(family, &caller);
        // The kernel's number; without one, a lack of means.
        let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::ENOBUFS);
        let socket = socket.map_err(|error| Refusal::Error(number(error)))?;
        if kind & libc::SOCK_NONBLOCK != 0 {
            rustix::io::ioctl_fionbio(&socket, true).map_err(io::Error::from)?;
        }
        if !self.inner.is_as_we(&caller) {
            self.owners.note(cookie_of(&socket)?, caller)?;
        }
        let close_on_exec = kind & libc::SOCK_CLOEXEC != 0;
        let notifier = &self.calls.notifier;
        match notifier.answer_with_descriptor(call.id, socket.as_fd(), close_on_exec) {
            Ok(_) => Err(Refusal::Answered),
            Err(error) => Err(error.into()),
        }
    }

    /// The port has to be free outside before the program listens at it.
    fn listen(&mut self, call: &Call) -> Outcome {
        let target = self.target(call)?;
        self.ask_for_low_port(call, target.local()?.port())?;
        let v6_only = sockopt::ipv6_v6only(&target.socket).unwrap_or(false);
        let local = target.local()?;
        let place = Place { address: local, v6_only };
        let profile = self.profile_of_listener(&target)?;
        if self.reserve.is_taken_by(place, target.cookie) {
            // It changes its backlog, or it was shut down: then it may get another port, though it still shows the old one.
            rustix::net::listen(&target.socket, int(call, 1)).map_err(io::Error::from)?;
            let address = target.local()?;
            if address != local {
                self.reserve.give_up(target.cookie);
                self.reserve(Place { address, v6_only }, target.cookie, profile)?;
            }
            return Ok(0);
        }
        if local.port() != 0 {
            self.reserve(place, target.cookie, profile)?;
            return Err(Refusal::Continue);
        }
        // The kernel chooses a port when the socket begins to listen.
        for _ in 0..MAX_PORTS_TRIED {
            rustix::net::listen(&target.socket, int(call, 1)).map_err(io::Error::from)?;
            let place = Place { address: target.local()?, v6_only };
            match self.reserve(place, target.cookie, profile.clone()) {
                Ok(()) => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    // It is as before then, without a port.
                    let _ = rustix::net::shutdown(&target.socket, Shutdown::Both);
                }
                Err(error) => {
                    let _ = rustix::net::shutdown(&target.socket, Shutdown::Both);
                    return Err(error.into());
                }
            }
        }
        Err(Refusal::Error(libc::EADDRINUSE))
    }

    /// In a network that an ordinary user's process has made, `bind` gives that user every port. So the right is asked for here, before the port is taken
    /// outside.
    fn ask_for_low_port(&self, call: &Call, port: u16) -> Result<(), Refusal> {
        if !self.inner.gives_low_ports() || port == 0 || port >= first_unprivileged_port() {
            return Ok(());
        }
        let may = may_bind_low_ports(call.thread, &self.inner.home);
        self.calls.still_waits(call)?;
        if may.unwrap_or(false) { Ok(()) } else { Err(Refusal::Error(libc::EACCES)) }
    }

    fn reserve(&mut self, place: Place, cookie: u64, profile: Arc<Profile>) -> io::Result<()> {
        let token = self.next_serial();
        let owner = self.owners.of(cookie);
        let outside = Outside { setup: &self.setup, profile, owner };
        match self.reserve.take(place, cookie, &outside, token) {
            // A listener that was closed a moment ago may hold the port: the kernel tells of its end later. So all are looked at.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let sockets = self.inner.diag.tcp()?;
                let there: HashSet<u64> = sockets.iter().map(|socket| socket.cookie).collect();
                self.reserve.retain_at(place.address.port(), |owner| there.contains(&owner));
                self.reserve.take(place, cookie, &outside, token)?;
            }
            taken => taken?,
        }
        let Some((sources, _)) = self.reserve.sources(token) else { return Ok(()) };
        for source in sources {
            match source {
                Source::Transom(listener) => self.driver.watch_listener(listener, token),
                Source::Kernel(listener, _) => {
                    listener.set_nonblocking(true)?;
                    watch(&self.epoll, listener, token, epoll::EventFlags::IN)?;
                }
            }
        }
        Ok(())
    }
}
