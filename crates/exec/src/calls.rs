//! The calls.

mod accept;
mod connect;
mod listen;
mod names;

use std::io;
use std::os::fd::AsFd;

use libc::c_int;
use transom_device::intercept::{Answer, Call, Kind};

use crate::address;
use crate::outer::errno_of;
use crate::program;
use crate::socket::{Socket, State};
use crate::supervisor::{Pair, Supervisor};

/// Why a call is not answered with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It fails with this error number.
    Error(c_int),
    /// It is answered later, or was answered already.
    Later,
    /// It is about no socket of ours.
    NotOurs,
}

pub(crate) type Outcome = Result<i64, Refusal>;

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::Error(errno_of(&error))
    }
}

/// A call that fails with this error number.
pub(crate) fn fail<T>(error: c_int) -> Result<T, Refusal> {
    Err(Refusal::Error(error))
}

/// Arguments by their place, of the type they are declared with.
pub(crate) trait Arguments {
    fn int(&self, index: usize) -> c_int;
    fn word(&self, index: usize) -> u64;
}

impl Arguments for Call {
    fn int(&self, index: usize) -> c_int {
        // The lower half, as the kernel has it.
        self.word(index) as c_int
    }

    fn word(&self, index: usize) -> u64 {
        self.arguments.get(index).copied().unwrap_or(0)
    }
}

impl Supervisor {
    /// Takes a call and answers it, now or later.
    pub(crate) fn answer_call(&mut self) -> io::Result<()> {
        let Some(call) = self.calls.receive()? else { return Ok(()) };
        self.counts.calls += 1;
        let answer = match self.handle(&call) {
            Ok(value) => Answer::Value(value),
            Err(Refusal::Error(error)) => Answer::Error(error),
            Err(Refusal::NotOurs) => Answer::Continue,
            Err(Refusal::Later) => return Ok(()),
        };
        let delivered = self.calls.answer(call.id, answer)?;
        if !delivered && call.kind == Kind::Connect && answer == Answer::Value(0) {
            // It will be asked again.
            if let Some(socket) = self.socket_of(&call) {
                socket.connect_unreported = true;
            }
        }
        Ok(())
    }

    fn handle(&mut self, call: &Call) -> Outcome {
        match call.kind {
            Kind::Socket => self.socket(call),
            Kind::Bind => self.bind(call),
            Kind::Connect => self.connect(call),
            Kind::Listen => self.listen(call),
            Kind::Accept => self.accept(call, 0),
            Kind::Accept4 => self.accept(call, call.int(3)),
            Kind::SocketName => self.socket_name(call),
            Kind::PeerName => self.peer_name(call),
            Kind::GetOption => self.get_option(call),
            Kind::SetOption => self.set_option(call),
            // The pair would take the byte, and nobody would ever see it.
            Kind::SendUrgent => self.target_inode(call).and_then(|_| fail(libc::EOPNOTSUPP)),
        }
    }

    /// The socket that a call's first argument means.
    fn socket_of(&mut self, call: &Call) -> Option<&mut Socket> {
        let descriptor = call.int(0);
        let inode = program::inode_of(call.thread, descriptor)?;
        let socket = self.sockets.get_mut(&inode)?;
        socket.last_used_as = (call.thread, descriptor);
        Some(socket)
    }

    /// The same for calls about nothing else; the number was the thread's own if the call is still valid.
    pub(crate) fn target_inode(&mut self, call: &Call) -> Result<u64, Refusal> {
        let inode = self.socket_of(call).map(|socket| socket.inode);
        if self.calls.is_valid(call.id) {
            inode.ok_or(Refusal::NotOurs)
        } else {
            Err(Refusal::Later)
        }
    }

    /// For a call whose descriptor means another socket by now than it did a moment ago, or that is gone.
    fn descriptor_changed(&mut self, call: &Call) -> Outcome {
        if self.calls.is_valid(call.id) { fail(libc::EBADF) } else { Err(Refusal::Later) }
    }

    pub(crate) fn socket_with_inode(&mut self, inode: u64) -> Result<&mut Socket, Refusal> {
        self.sockets.get_mut(&inode).ok_or(Refusal::Error(libc::EBADF))
    }

    /// An address among a call's arguments.
    fn address(&mut self, call: &Call, v6: bool) -> Result<std::net::SocketAddr, Refusal> {
        let len = usize::try_from(call.int(2)).map_err(|_| Refusal::Error(libc::EINVAL))?;
        if len > size_of::<libc::sockaddr_storage>() {
            return fail(libc::EINVAL);
        }
        let len = len.min(address::MAX_LEN);
        let bytes = program::read(call.thread, call.word(1), len);
        if !self.calls.is_valid(call.id) {
            return Err(Refusal::Later);
        }
        let bytes = bytes.ok_or(Refusal::Error(libc::EFAULT))?;
        address::read(&bytes, v6).map_err(Refusal::Error)
    }

    fn socket(&mut self, call: &Call) -> Outcome {
        let (v6, kind) = (call.int(0) == libc::AF_INET6, call.int(1));
        match call.int(2) {
            0 | libc::IPPROTO_TCP => {}
            // Programs that would like it take TCP then.
            libc::IPPROTO_MPTCP => return fail(libc::EPROTONOSUPPORT),
            _ => return Err(Refusal::NotOurs),
        }
        let Pair { ours, theirs, inode } = self.take_pair(kind & libc::SOCK_NONBLOCK != 0)?;
        let close_on_exec = kind & libc::SOCK_CLOEXEC != 0;
        let serial = self.next_serial();
        self.sockets.insert(inode, Socket::new(inode, serial, ours, v6, State::New));
        match self.calls.answer_with_descriptor(call.id, theirs.as_fd(), close_on_exec) {
            // If its thread was interrupted, our end finds the other closed.
            Ok(_) => Err(Refusal::Later),
            Err(error) => {
                self.sockets.remove(&inode);
                Err(error.into())
            }
        }
    }
}
