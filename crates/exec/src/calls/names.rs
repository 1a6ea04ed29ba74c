//! `getsockname` and `getpeername`.

use std::net::SocketAddr;

use transom_device::intercept::Call;

use super::{Arguments, Outcome, Refusal, fail};
use crate::address;
use crate::program;
use crate::socket::State;
use crate::supervisor::Supervisor;

/// Where a program wants an address: the place, that of its length, and how much room there is. Nowhere, if it does not want any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressBuffer(Option<(u64, u64, usize)>);

impl AddressBuffer {
    /// Reads how much room there is.
    pub(crate) fn read(thread: u32, (address, len_address): (u64, u64)) -> Result<Self, Refusal> {
        if address == 0 {
            return Ok(AddressBuffer(None));
        }
        let room =
            program::read_exact::<4>(thread, len_address).ok_or(Refusal::Error(libc::EFAULT))?;
        let room = usize::try_from(i32::from_ne_bytes(room));
        let room = room.map_err(|_| Refusal::Error(libc::EINVAL))?;
        Ok(AddressBuffer(Some((address, len_address, room))))
    }
}

/// Writes an address there: what there is room for, and its whole length.
pub(crate) fn copy_address_out(
    thread: u32,
    place: AddressBuffer,
    address: SocketAddr,
    v6: bool,
) -> Result<(), Refusal> {
    let Some((place, length, room)) = place.0 else { return Ok(()) };
    let bytes = address::write(address, v6);
    let len = i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_ne_bytes();
    let fits = bytes.get(..room.min(bytes.len())).unwrap_or_default();
    if program::write(thread, place, fits) && program::write(thread, length, &len) {
        Ok(())
    } else {
        fail(libc::EFAULT)
    }
}

impl Supervisor {
    pub(super) fn socket_name(&mut self, call: &Call) -> Outcome {
        let inode = self.target_inode(call)?;
        let socket = self.socket_with_inode(inode)?;
        let v6 = socket.v6;
        let address = match &socket.state {
            State::New => address::unspecified(v6),
            State::Bound(bound) => bound.local,
            State::Listening(listening) => listening.local,
            State::Connecting(_) | State::Connected(_) => {
                let local = socket.outer().and_then(|outer| outer.local_addr().ok());
                local.unwrap_or(address::unspecified(v6))
            }
        };
        self.write_address(call, address, v6)
    }

    pub(super) fn peer_name(&mut self, call: &Call) -> Outcome {
        let inode = self.target_inode(call)?;
        let socket = self.socket_with_inode(inode)?;
        let v6 = socket.v6;
        let State::Connected(pump) = &socket.state else { return fail(libc::ENOTCONN) };
        let Ok(peer) = pump.outer.peer_addr() else { return fail(libc::ENOTCONN) };
        self.write_address(call, peer, v6)
    }

    fn write_address(&mut self, call: &Call, address: SocketAddr, v6: bool) -> Outcome {
        let buffer = AddressBuffer::read(call.thread, (call.word(1), call.word(2)))?;
        if !self.calls.is_valid(call.id) {
            return Err(Refusal::Later);
        }
        copy_address_out(call.thread, buffer, address, v6)?;
        Ok(0)
    }
}
