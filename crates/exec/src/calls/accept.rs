//! `accept` and `accept4`.

use std::os::fd::AsFd;

use transom_device::intercept::{Answer, Call};

use super::names::{AddressBuffer, copy_address_out};
use super::{Arguments, Outcome, Refusal, fail};
use crate::ledger::is_time_to_purge;
use crate::listening::PendingAccept;
use crate::outer::{OuterConnection, errno_of};
use crate::pair;
use crate::program;
use crate::pump::Pump;
use crate::socket::{Socket, State};
use crate::supervisor::{Pair, Supervisor};

impl Supervisor {
    pub(super) fn accept(&mut self, call: &Call, flags: i32) -> Outcome {
        let inode = self.target_inode(call)?;
        if flags & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) != 0 {
            return fail(libc::EINVAL);
        }
        if !matches!(self.socket_with_inode(inode)?.state, State::Listening(_)) {
            return fail(libc::EINVAL);
        }
        let theirs = program::socket_of(call.thread, call.int(0), inode)?;
        let Some(theirs) = theirs.filter(|_| self.calls.is_valid(call.id)) else {
            return self.descriptor_changed(call);
        };
        let waiting = PendingAccept {
            id: call.id,
            thread: call.thread,
            address: (call.word(1), call.word(2)),
            flags,
        };
        // An event may not have been seen yet.
        self.take_connections(inode);
        let Some(socket) = self.sockets.get_mut(&inode) else { return fail(libc::EBADF) };
        let State::Listening(listening) = &mut socket.state else { return fail(libc::EINVAL) };
        let Some(outer) = listening.queue.pop_front() else {
            if pair::is_non_blocking(&theirs) {
                return fail(libc::EAGAIN);
            }
            if is_time_to_purge(listening.waiting.len()) {
                listening.waiting.retain(|waiting| self.calls.is_valid(waiting.id));
            }
            self.calls.record_pending(waiting.id)?;
            listening.waiting.push_back(waiting);
            return Err(Refusal::Later);
        };
        pair::take_token(&theirs);
        drop(theirs);
        if let Some(outer) = self.answer_accept(inode, waiting, outer) {
            let socket = self.socket_with_inode(inode)?;
            if let State::Listening(listening) = &mut socket.state {
                listening.queue.push_front(outer);
                pair::put_token(&socket.ours);
            }
        } else {
            self.take_connections(inode);
        }
        Err(Refusal::Later)
    }

    /// Answers a call with a new connection. Gives the connection back if the call is gone.
    pub(crate) fn answer_accept(
        &mut self,
        listener: u64,
        waiting: PendingAccept,
        outer: OuterConnection,
    ) -> Option<OuterConnection> {
        let PendingAccept { id, thread, address, flags } = waiting;
        if !self.calls.is_valid(id) {
            return Some(outer);
        }
        let v6 = self.sockets.get(&listener).map(|socket| socket.v6)?;
        let Ok(peer) = outer.peer_addr() else {
            // It has ended already: natively it would be accepted, and found reset.
            let _ = self.calls.answer(id, Answer::Error(libc::ECONNABORTED));
            return None;
        };
        let prepared = AddressBuffer::read(thread, address).and_then(|place| {
            copy_address_out(thread, place, peer, v6)?;
            self.accepted(listener, outer, flags)
        });
        let (inode, theirs) = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => {
                let error = match refusal {
                    Refusal::Error(error) => error,
                    Refusal::Later | Refusal::NotOurs => libc::ECONNABORTED,
                };
                let _ = self.calls.answer(id, Answer::Error(error));
                return None;
            }
        };
        let close_on_exec = flags & libc::SOCK_CLOEXEC != 0;
        let delivered = self.calls.answer_with_descriptor(id, theirs.as_fd(), close_on_exec);
        match delivered {
            Ok(true) => {
                drop(theirs);
                self.run_later(inode);
                None
            }
            Ok(false) => match self.sockets.remove(&inode)?.state {
                State::Connected(pump) => Some(pump.outer),
                _ => None,
            },
            Err(error) => {
                let _ = self.calls.answer(id, Answer::Error(errno_of(&error)));
                match self.sockets.remove(&inode)?.state {
                    State::Connected(pump) => Some(pump.outer),
                    _ => None,
                }
            }
        }
    }

    /// A socket for a new connection, with the settings of its listener.
    fn accepted(
        &mut self,
        listener: u64,
        outer: OuterConnection,
        flags: i32,
    ) -> Result<(u64, std::os::fd::OwnedFd), Refusal> {
        let Pair { ours, theirs, inode } = self.take_pair(flags & libc::SOCK_NONBLOCK != 0)?;
        self.watch_outer(inode, &outer)?;
        match outer {
            OuterConnection::Transom(_) => self.counts.by_transom += 1,
            OuterConnection::Kernel(_) => self.counts.by_kernel += 1,
        }
        self.show_connection(&outer);
        let parent = self.socket_with_inode(listener)?;
        let (v6, settings, last_used_as) =
            (parent.v6, parent.settings.clone(), parent.last_used_as);
        settings.apply(&outer);
        let state = State::Connected(Pump::new(outer));
        // The number that the new descriptor gets is not known yet.
        let last_used_as = (last_used_as.0, -1);
        let serial = self.next_serial();
        let socket = Socket::new(inode, serial, ours, v6, state);
        self.sockets.insert(inode, Socket { settings, last_used_as, ..socket });
        Ok((inode, theirs))
    }
}
