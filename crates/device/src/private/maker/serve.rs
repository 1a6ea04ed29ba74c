//! The maker's life.

use std::error::Error;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::super::device::{Carrier, Parts};
use super::super::here::{Change, Here};
use super::super::settings::CLIENTS_QUEUE_LEN;
use super::super::sockets::{self, Family};
use super::messages::{LONGEST, Made, Reply, Request};
use crate::diag::{DestroyEvents, Diag};
use crate::interface::Interfaces;
use crate::namespace::{enter_as_ourselves, may_make_networks};
use crate::passing;

/// So many addresses and routes a network has at most that were added later. The host's may come and go for ever.
const MOST_ADDED: usize = 4096;

/// The process for which a maker of more rights works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its user, who is to have the sockets.
    pub user: u32,
    /// Its group.
    pub group: u32,
}

/// Makes the network that is asked for over this socket, and what belongs to it, until the other end is closed. Then it ends the network's connections.
///
/// Call it while the process has one thread, and in a process that does nothing else: it enters a user namespace if it has to, and then the network.
/// Refusals are sent to the other side.
///
/// # Errors
/// The socket's.
pub fn serve(socket: impl AsFd) -> io::Result<()> {
    let (socket, rights) = (socket.as_fd(), gain_rights);
    let Some(mut service) = Service::begin(socket, rights, None)? else { return Ok(()) };
    // The program may be of the same user, and is not to look in here.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    service.go_on(socket)
}

/// The same for a client of fewer rights, by a thread of a process that has `CAP_NET_ADMIN`, `CAP_SYS_ADMIN` and `CAP_CHOWN`. The thread ends with the service, and
/// does nothing else: it enters the network. The sockets are the client's user's, and of the control group of this process. A request for another group is
/// refused: the client's word is not enough for that.
///
/// # Errors
/// The socket's.
pub fn serve_client(socket: impl AsFd, client: Client) -> io::Result<()> {
    let socket = socket.as_fd();
    let rights = || {
        let number = libc::EPERM;
        let message = || "it has not the rights to make a network".into();
        (!may_make_networks()).then(|| Reply::Failed { number, message: message() })
    };
    match Service::begin(socket, rights, Some(client))? {
        Some(mut service) => service.go_on(socket),
        None => Ok(()),
    }
}

/// A network that is served.
struct Service {
    here: Here,
    client: Option<Client>,
    /// Addresses and routes that were added, and not removed since.
    added: usize,
}

impl Service {
    /// Makes the network, and hands it out. Nothing if it was refused.
    fn begin(
        socket: BorrowedFd<'_>,
        gain_rights: impl FnOnce() -> Option<Reply>,
        client: Option<Client>,
    ) -> io::Result<Option<Self>> {
        let Some(request) = receive(socket)? else { return Ok(None) };
        let refusal = match request {
            Ok(Request::Open(mut settings)) => {
                if client.is_some() {
                    settings.queue_len = CLIENTS_QUEUE_LEN;
                }
                let gained = gain_rights().map_or(Ok(()), Err);
                let opened = gained
                    .and_then(|()| settings.check().and_then(|()| settings.make()).map_err(failed));
                match opened.and_then(|(here, parts)| hand_out(socket, here, parts)) {
                    Ok(here) => {
                        // From here on, sockets of this thread are those of the network.
                        here.namespace.enter()?;
                        return Ok(Some(Service { here, client, added: 0 }));
                    }
                    Err(refusal) => refusal,
                }
            }
            Ok(_) | Err(()) => nonsense(),
        };
        answer(socket, &refusal, &[])?;
        Ok(None)
    }

    fn go_on(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let outcome = self.serve(socket);
        self.here.destroy_all()?;
        outcome
    }

    fn serve(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        while let Some(request) = receive(socket)? {
            let done = match request {
                Ok(request) => self.carry_out(request),
                Err(()) => Err(nonsense()),
            };
            let (reply, descriptors) = done.unwrap_or_else(|refusal| (refusal, Vec::new()));
            let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
            answer(socket, &reply, &descriptors)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, request: Request) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let done = |descriptors| Ok((Reply::Done, descriptors));
        match request {
            // Once only.
            Request::Open(_) => Err(nonsense()),
            Request::Sockets { family, count, group } => {
                done(self.make_sockets(family, count, group)?)
            }
            Request::Diag => done(vec![Diag::open().and_then(own).map_err(failed)?]),
            Request::Events => done(vec![DestroyEvents::open().and_then(own).map_err(failed)?]),
            Request::DestroyAll => {
                Ok((Reply::Destroyed(self.here.destroy_all().map_err(failed)?), Vec::new()))
            }
            Request::Change(change) => {
                self.change(change)?;
                done(Vec::new())
            }
        }
    }

    fn change(&mut self, change: Change) -> Result<(), Reply> {
        let adds = match change {
            Change::AddAddress(_) | Change::AddBindable(_) | Change::AddRoute(..) => true,
            Change::RemoveAddress(_) | Change::RemoveBindable(_) => false,
        };
        if adds && self.added >= MOST_ADDED {
            let message = "there are too many addresses and routes".into();
            return Err(Reply::Failed { number: libc::ENOBUFS, message });
        }
        self.here.change(change).map_err(failed)?;
        self.added = if adds { self.added + 1 } else { self.added.saturating_sub(1) };
        Ok(())
    }

    /// As many as there can be; at least one.
    fn make_sockets(
        &self,
        family: Family,
        count: usize,
        group: Option<String>,
    ) -> Result<Vec<OwnedFd>, Reply> {
        let Some(group) = group else {
            return sockets::several(count, || self.make_socket(family)).map_err(failed);
        };
        if self.client.is_some() {
            let message = "sockets of other control groups are not handed out".into();
            return Err(Reply::Failed { number: libc::EACCES, message });
        }
        let namespace = self.here.namespace.as_fd();
        sockets::make_in_group(&group, namespace, family, count).map_err(failed)
    }

    fn make_socket(&self, family: Family) -> io::Result<OwnedFd> {
        let socket = sockets::make(family)?;
        if let Some(Client { user, group }) = self.client {
            sockets::give(&socket, user, group)?;
        }
        Ok(socket)
    }
}

/// The next request, or nothing when the other side has gone.
fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Result<Request, ()>>> {
    // No request has descriptors. What comes all the same is closed.
    let received = passing::receive(socket, LONGEST, 0, &mut Vec::new());
    match received {
        Ok(Some(bytes)) => Ok(Some(Request::parse(&bytes).map_err(drop))),
        Ok(None) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(Err(()))),
        // It was closed with an answer in it that nobody has read.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        Err(error) => Err(error),
    }
}

fn answer(socket: BorrowedFd<'_>, reply: &Reply, with: &[BorrowedFd<'_>]) -> io::Result<()> {
    match passing::send(socket, reply.to_string().as_bytes(), with) {
        // Nobody waits for it any more; the next look finds that out.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Enters a user namespace, if that is necessary. Says why not.
fn gain_rights() -> Option<Reply> {
    if may_make_networks() {
        return None;
    }
    let error = enter_as_ourselves().err()?;
    let (number, message) = explained(&error);
    Some(Reply::NoUsers { number, message })
}

/// Sends the device's descriptors, and keeps none of them.
fn hand_out(socket: BorrowedFd<'_>, here: Here, parts: Parts) -> Result<Here, Reply> {
    let netlink = here.namespace.run(Interfaces::open).map_err(failed)?.map_err(failed)?;
    let index = here.index();
    let loopback = parts.loopback.map(|wire| wire.into_socket().0);
    let (station, device) = match parts.carrier {
        Carrier::Veth(wire) => {
            let (socket, station) = wire.into_socket();
            (Some(station), vec![socket])
        }
        Carrier::Tun(tun) => {
            let queues = tun.into_descriptors();
            let without = || io::Error::from(io::ErrorKind::Unsupported);
            (None, queues.ok_or_else(without).map_err(failed)?)
        }
    };
    let made = Made { index, station, loopback: loopback.is_some() };
    let mut all = vec![here.namespace.as_fd(), netlink.as_fd()];
    all.extend(loopback.as_ref().map(AsFd::as_fd));
    all.extend(device.iter().map(AsFd::as_fd));
    answer(socket, &Reply::Made(made), &all).map_err(failed)?;
    Ok(here)
}

fn own(socket: impl AsFd) -> io::Result<OwnedFd> {
    socket.as_fd().try_clone_to_owned()
}

fn nonsense() -> Reply {
    Reply::Failed { number: libc::EBADMSG, message: "the request makes no sense".into() }
}

fn failed(error: impl Error + 'static) -> Reply {
    let (number, message) = explained(&error);
    Reply::Failed { number, message }
}

/// The kernel's number, if that is the reason, and all words.
fn explained(error: &(dyn Error + 'static)) -> (i32, String) {
    let mut number = 0;
    let mut words = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            number = found;
        }
        words.push(error.to_string());
        next = error.source();
    }
    (number, words.join(": "))
}
