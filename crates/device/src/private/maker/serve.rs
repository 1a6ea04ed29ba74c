//! The maker's life.

use std::error::Error;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::super::device::{Carrier, Parts};
use super::super::here::Here;
use super::super::sockets::{self, Family};
use super::messages::{LONGEST, Made, Reply, Request};
use crate::diag::{DestroyEvents, Diag};
use crate::interface::Interfaces;
use crate::namespace::{enter_as_ourselves, may_make_networks};
use crate::passing;

/// Makes the network that is asked for over this socket, and what belongs to it, until the other end is closed. Then it ends the network's connections.
///
/// Call it while the process has one thread, and in a process that does nothing else: it enters a user namespace if it has to, and then the network.
/// Refusals are sent to the other side.
///
/// # Errors
/// The socket's.
pub fn serve(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    let Some(request) = receive(socket)? else { return Ok(()) };
    let mut here = match request {
        Ok(Request::Open(settings)) => {
            if let Some(refusal) = gain_rights() {
                return answer(socket, &refusal, &[]);
            }
            let opened = settings.check().and_then(|()| settings.open());
            match opened.map_err(failed).and_then(|(here, parts)| hand_out(socket, here, parts)) {
                Ok(here) => here,
                Err(refusal) => return answer(socket, &refusal, &[]),
            }
        }
        Ok(_) | Err(_) => return answer(socket, &nonsense(), &[]),
    };
    // From here on, sockets of this process are those of the network.
    here.namespace.enter()?;
    // The program may be of the same user, and is not to look in here.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let outcome = serve_network(socket, &mut here);
    here.destroy_all()?;
    outcome
}

fn serve_network(socket: BorrowedFd<'_>, here: &mut Here) -> io::Result<()> {
    while let Some(request) = receive(socket)? {
        let done = match request {
            Ok(request) => carry_out(here, request),
            Err(()) => Err(nonsense()),
        };
        let (reply, descriptors) = done.unwrap_or_else(|refusal| (refusal, Vec::new()));
        let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        answer(socket, &reply, &descriptors)?;
    }
    Ok(())
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

fn carry_out(here: &mut Here, request: Request) -> Result<(Reply, Vec<OwnedFd>), Reply> {
    let done = |descriptors| Ok((Reply::Done, descriptors));
    match request {
        // Once only.
        Request::Open(_) => Err(nonsense()),
        Request::Sockets { family, count, group: None } => done(make(family, count)?),
        Request::Sockets { family, count, group: Some(group) } => {
            let namespace = here.namespace.as_fd();
            done(sockets::make_in_group(&group, namespace, family, count).map_err(failed)?)
        }
        Request::Diag => done(vec![Diag::open().and_then(own).map_err(failed)?]),
        Request::Events => done(vec![DestroyEvents::open().and_then(own).map_err(failed)?]),
        Request::DestroyAll => {
            Ok((Reply::Destroyed(here.destroy_all().map_err(failed)?), Vec::new()))
        }
        Request::Change(change) => {
            here.change(change).map_err(failed)?;
            done(Vec::new())
        }
    }
}

fn own(socket: impl AsFd) -> io::Result<OwnedFd> {
    socket.as_fd().try_clone_to_owned()
}

/// As many as there can be; at least one.
fn make(family: Family, count: usize) -> Result<Vec<OwnedFd>, Reply> {
    let mut made = vec![sockets::make(family).map_err(failed)?];
    made.extend((1..count).map_while(|_| sockets::make(family).ok()));
    Ok(made)
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
