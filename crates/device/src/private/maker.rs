//! A process that makes a private network for another one, which has not the rights to.
//!
//! An ordinary user has them in a user namespace only. A process enters one with all that it starts, and while it has one thread (user_namespaces(7)). A program
//! in there would see no users but one, and no process with threads can go there. So the supervisor stays outside, and starts a *maker*:
//!
//! ```text
//! supervisor ──── SOCK_SEQPACKET ──── maker
//!   device, sockets  ◄── descriptors ──   in its user namespace: the private network
//! ```
//!
//! - The supervisor names the program ([`PrivateSettings::maker`]), which calls [`serve`] at once. The socket is its standard input.
//! - The maker enters a user namespace, if it has not the rights already, makes the network, and hands out the device's descriptors.
//! - Later it is asked for sockets, changes, and looks, one at a time.
//! - When the supervisor drops the network and its [`SocketMaker`](super::sockets::SocketMaker), it kills the maker; the sockets live on.
//! - When the supervisor dies, the maker sees its end of the socket close. It ends all connections, and itself.
//!
//! Whoever serves the socket may have been started by somebody else, and be of another user ([`serve_client`], as a broker does):
//! [`PrivateSettings::open_by`].
//! So neither side trusts the other. A message is a text of bounded length, and descriptors are looked at before they are used.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, Shutdown};

use super::device::{Carrier, Parts};
use super::here::Change;
use super::settings::PrivateSettings;
use super::sockets::Family;
use super::wire::Wire;
use super::{PrivateDevice, PrivateError, PrivateNetwork};
use crate::diag::Destroyed;
use crate::interface::Interfaces;
use crate::namespace::Namespace;
use crate::open::kind_of;
use crate::passing;
use crate::port_socket::{PortSocket, namespace_of};
use crate::tun::Tun;

mod messages;
mod serve;

use messages::{LONGEST, Reply, Request};
pub use serve::{Client, serve, serve_client};

/// So many sockets are asked for at once at most.
pub(super) const MOST_SOCKETS: usize = 64;
/// So many queues a device has at most.
const MOST_QUEUES: usize = 64;
/// As many descriptors come with a message at most.
const MOST_DESCRIPTORS: usize =
    if MOST_SOCKETS > MOST_QUEUES { MOST_SOCKETS } else { MOST_QUEUES } + 3;
/// A maker that takes longer for an answer is not waited for any more. It is milliseconds as a rule.
const PATIENCE: Duration = Duration::from_secs(30);

const UNEXPECTED: MakerError = MakerError::Nonsense("it answers another question");

/// Why a maker has not done what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MakerError {
    /// The process could not be started.
    #[error("cannot start the process that makes the program's network ({program})")]
    Start {
        /// Its name.
        program: String,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no user namespace for it. A [network that somebody else makes](PrivateSettings::open_by) is the other way.
    #[error("there is no user namespace ({reason})")]
    NoUserNamespace {
        /// The maker's words.
        reason: String,
        /// The kernel's answer, if that was the reason.
        source: io::Error,
    },
    /// It has tried, and failed.
    #[error("the process that makes the program's network says: {message}")]
    Failed {
        /// Its words.
        message: String,
        /// The kernel's answer, if that was the reason.
        source: io::Error,
    },
    /// It does not answer any more, or never did.
    #[error("the process that makes the program's network has gone, or does not answer")]
    Gone(#[source] io::Error),
    /// Its answer makes no sense.
    #[error("the answer of the process that makes the program's network makes no sense: {0}")]
    Nonsense(&'static str),
}

impl MakerError {
    /// The meaning of the kernel's error number.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        kind_of(self, io::ErrorKind::InvalidData)
    }

    /// The kernel's error number, or the one of a process that is gone: callers of `socket(2)` need one.
    pub(super) fn into_numbered(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            MakerError::Failed { source, .. } | MakerError::NoUserNamespace { source, .. } => {
                source.raw_os_error().unwrap_or(libc::EIO)
            }
            _ => libc::EPIPE,
        })
    }
}

impl From<MakerError> for io::Error {
    fn from(error: MakerError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// The supervisor's end.
#[derive(Debug)]
pub(super) struct Maker {
    socket: Mutex<OwnedFd>,
    /// If this process has started it.
    child: Option<Child>,
    /// The number of the private network, when there is one.
    network: u64,
}

impl Maker {
    /// Starts one. It is born in the network namespace of the calling thread.
    pub(super) fn start(program: &OsStr, arguments: &[OsString]) -> Result<Self, MakerError> {
        let failed = |source| {
            let program = program.to_string_lossy().into_owned();
            MakerError::Start { program, source }
        };
        let (near, far) = passing::pair().map_err(failed)?;
        let mut maker = Maker::on(near)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(far)
            .stdout(Stdio::null())
            // A signal of the terminal's is not for it.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        maker.child = Some(child);
        Ok(maker)
    }

    /// One that serves the other end of this socket.
    pub(super) fn on(socket: OwnedFd) -> Result<Self, MakerError> {
        sockopt::set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))
            .and_then(|()| sockopt::set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE)))
            .map_err(|errno| MakerError::Gone(errno.into()))?;
        Ok(Maker { socket: Mutex::new(socket), child: None, network: 0 })
    }

    /// Has the network made, and takes over its device.
    pub(super) fn open(
        mut self,
        settings: &PrivateSettings,
    ) -> Result<(PrivateNetwork, PrivateDevice), PrivateError> {
        if settings.queues > MOST_QUEUES {
            return Err(PrivateError::Config("a maker's device has 64 queues at most"));
        }
        let (reply, descriptors) = self.ask(&Request::Open(settings.clone()))?;
        let Reply::Made(made) = reply else { return Err(UNEXPECTED.into()) };
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or(MakerError::Nonsense("a descriptor is missing"));
        let namespace = next()?;
        let netlink = next()?;
        let strange = |_| MakerError::Nonsense("a descriptor is not what it should be");
        self.network = namespace_of(&netlink).map_err(strange)?;
        let interfaces = Interfaces::from_descriptor(netlink).map_err(strange)?;
        let mtu = usize::from(settings.mtu);
        let wire = |socket: OwnedFd, station, name: &str| {
            let is_packet =
                sockopt::socket_domain(&socket).map_err(|errno| strange(errno.into()))?;
            if is_packet != AddressFamily::PACKET {
                return Err(MakerError::Nonsense("a descriptor is no packet socket"));
            }
            Ok(Wire::on(socket, name, station, mtu))
        };
        let loopback = if made.loopback { Some(wire(next()?, [0; 6], "lo")?) } else { None };
        let carrier = match made.station {
            Some(station) => Carrier::Veth(wire(next()?, station, &settings.name)?),
            None => {
                let tun = |queue| Tun::from_descriptor(queue, made.index, settings.mtu.into());
                let first = tun(next()?).map_err(PrivateError::Tun)?;
                let mut others = Vec::new();
                for _ in 1..settings.queues {
                    others.push(tun(next()?).map_err(PrivateError::Tun)?);
                }
                Carrier::Tun(Box::new(first.with_queues(others)))
            }
        };
        if descriptors.next().is_some() {
            return Err(MakerError::Nonsense("there are more descriptors than it says").into());
        }
        let device = Parts { carrier, loopback }.assemble()?;
        let namespace = Namespace::from_parts(namespace, interfaces);
        Ok((PrivateNetwork::elsewhere(namespace, Arc::new(self)), device))
    }

    /// Sockets of the private network, at least one, in this control group if one is named.
    pub(super) fn sockets(
        &self,
        family: Family,
        count: usize,
        group: Option<&str>,
    ) -> Result<Vec<OwnedFd>, MakerError> {
        let count = count.clamp(1, MOST_SOCKETS);
        let request = Request::Sockets { family, count, group: group.map(str::to_owned) };
        let (reply, sockets) = self.ask(&request)?;
        let Reply::Done = reply else { return Err(UNEXPECTED) };
        let is_ours = |socket: &OwnedFd| {
            PortSocket::examine(socket).is_ok_and(|found| {
                found.local.is_ipv4() == (family == Family::V4)
                    && found.namespace == self.network
                    && !(found.listening || found.connected || found.local.port() != 0)
            })
        };
        match (sockets.len(), sockets.iter().all(is_ours)) {
            (1.., true) if sockets.len() <= count => Ok(sockets),
            _ => Err(MakerError::Nonsense("the sockets are not what was asked for")),
        }
    }

    pub(super) fn change(&self, change: Change) -> Result<(), MakerError> {
        match self.ask(&Request::Change(change))? {
            (Reply::Done, none) if none.is_empty() => Ok(()),
            _ => Err(UNEXPECTED),
        }
    }

    pub(super) fn destroy_all(&self) -> Result<Destroyed, MakerError> {
        match self.ask(&Request::DestroyAll)? {
            (Reply::Destroyed(destroyed), none) if none.is_empty() => Ok(destroyed),
            _ => Err(UNEXPECTED),
        }
    }

    /// A copy of our end of the socket. The maker goes on while there is one.
    pub(super) fn hold(&self) -> io::Result<OwnedFd> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner).try_clone()
    }

    /// A netlink socket to ask for sockets.
    pub(super) fn diag(&self) -> Result<OwnedFd, MakerError> {
        self.netlink(&Request::Diag)
    }

    /// A netlink socket that hears of the end of sockets.
    pub(super) fn events(&self) -> Result<OwnedFd, MakerError> {
        self.netlink(&Request::Events)
    }

    fn netlink(&self, request: &Request) -> Result<OwnedFd, MakerError> {
        let (reply, descriptors) = self.ask(request)?;
        let Reply::Done = reply else { return Err(UNEXPECTED) };
        let [socket] = <[OwnedFd; 1]>::try_from(descriptors)
            .map_err(|_| MakerError::Nonsense("it is not one descriptor"))?;
        if namespace_of(&socket).is_ok_and(|network| network == self.network) {
            Ok(socket)
        } else {
            Err(MakerError::Nonsense("a socket is of another network"))
        }
    }

    fn ask(&self, request: &Request) -> Result<(Reply, Vec<OwnedFd>), MakerError> {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let mut descriptors = Vec::new();
        let received = passing::send(&*socket, request.to_string().as_bytes(), &[])
            .and_then(|()| passing::receive(&*socket, LONGEST, MOST_DESCRIPTORS, &mut descriptors));
        let reply = match received {
            Ok(Some(bytes)) => Reply::parse(&bytes),
            Ok(None) => Err(MakerError::Gone(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(MakerError::Gone(error)),
        };
        if reply.is_err() {
            // A late answer would be taken for that of the next request.
            let _ = rustix::net::shutdown(&*socket, Shutdown::Both);
        }
        match reply? {
            Reply::Failed { number, message } => {
                Err(MakerError::Failed { message, source: number_of(number) })
            }
            Reply::NoUsers { number, message } => {
                Err(MakerError::NoUserNamespace { reason: message, source: number_of(number) })
            }
            reply => Ok((reply, descriptors)),
        }
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It has nothing to bring in order. If it saw the socket close first, it would end connections that are to live on.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn number_of(number: i32) -> io::Error {
    match number {
        0 => io::ErrorKind::Other.into(),
        number => io::Error::from_raw_os_error(number),
    }
}

#[cfg(test)]
mod tests;
