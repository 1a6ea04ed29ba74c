//! Many messages of a socket by one system call: sendmmsg(2) and recvmmsg(2).

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// So many messages leave at once at most: all that are kept.
pub(crate) const MOST: usize = crate::unflushed::MOST;
/// So many arrive at once at most.
pub(crate) const MOST_RECEIVED: usize = 16;

/// A message without an address, and not yet with contents.
fn empty() -> libc::mmsghdr {
    // SAFETY: it has numbers and pointers alone, for which zeros are values.
    unsafe { std::mem::zeroed() }
}

fn errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Sends messages of one part each, [`MOST`] of them at most, in order. Says how many were sent; an error is that of the first.
pub(crate) fn send(socket: impl AsFd, messages: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let mut headers = [empty(); MOST];
    for (header, message) in headers.iter_mut().zip(messages) {
        // `IoSlice` has the layout of `struct iovec`. The kernel only reads it.
        header.msg_hdr.msg_iov = std::ptr::from_ref(message).cast_mut().cast();
        header.msg_hdr.msg_iovlen = 1;
    }
    let count = messages.len().min(MOST) as libc::c_uint;
    let flags = libc::MSG_DONTWAIT as _;
    // SAFETY: `count` headers are there, and each points to one part, which is borrowed until this returns.
    let sent =
        unsafe { libc::sendmmsg(socket.as_fd().as_raw_fd(), headers.as_mut_ptr(), count, flags) };
    usize::try_from(sent).map_err(|_| errno())
}

/// Receives a message into each of `buffers`, of which [`MOST_RECEIVED`] at most are used, and its length into the same place of `lengths`. It does not wait.
/// Says how many there were; an error is that of the first.
pub(crate) fn receive(
    socket: impl AsFd,
    buffers: &mut [IoSliceMut<'_>],
    lengths: &mut [usize; MOST_RECEIVED],
) -> Result<usize, Errno> {
    let mut headers = [empty(); MOST_RECEIVED];
    for (header, buffer) in headers.iter_mut().zip(buffers.iter_mut()) {
        // `IoSliceMut` has the layout of `struct iovec`.
        header.msg_hdr.msg_iov = std::ptr::from_mut(buffer).cast();
        header.msg_hdr.msg_iovlen = 1;
    }
    let count = buffers.len().min(MOST_RECEIVED) as libc::c_uint;
    let flags = libc::MSG_DONTWAIT as _;
    // SAFETY: `count` headers are there, and each points to one part, which is borrowed for writing until this returns. There is no time limit.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            flags,
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| errno())?;
    for (length, header) in lengths.iter_mut().zip(&headers).take(received) {
        *length = header.msg_len as usize;
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn messages_cross_in_order_and_keep_their_lengths() {
        let (from, to) = UnixDatagram::pair().unwrap();
        let messages = [IoSlice::new(b"first"), IoSlice::new(b"the second"), IoSlice::new(b"3")];
        assert_eq!(send(&from, &messages), Ok(3));
        let mut room = [[0; 64]; 4];
        let mut buffers: Vec<_> = room.iter_mut().map(|room| IoSliceMut::new(room)).collect();
        let mut lengths = [0; MOST_RECEIVED];
        assert_eq!(receive(&to, &mut buffers, &mut lengths), Ok(3));
        assert_eq!(lengths[..3], [5, 10, 1]);
        assert_eq!(&room[1][..10], b"the second");
        let mut buffers = [IoSliceMut::new(&mut room[0])];
        assert_eq!(receive(&to, &mut buffers, &mut lengths), Err(Errno::AGAIN));
    }

    /// A full socket takes the first ones alone, and says so.
    #[test]
    fn a_full_socket_says_how_many_it_took() {
        let (from, to) = UnixDatagram::pair().unwrap();
        let message = [7; 64];
        let messages = [IoSlice::new(&message); MOST];
        let mut sent = 0;
        let refusal = loop {
            match send(&from, &messages) {
                Ok(count) => sent += count,
                Err(errno) => break errno,
            }
        };
        assert_eq!(refusal, Errno::AGAIN);
        assert!(sent > 0);
        let mut room = [[0; 64]; MOST_RECEIVED];
        let mut received = 0;
        loop {
            let mut buffers: Vec<_> = room.iter_mut().map(|room| IoSliceMut::new(room)).collect();
            match receive(&to, &mut buffers, &mut [0; MOST_RECEIVED]) {
                Ok(count) => received += count,
                Err(errno) => break assert_eq!(errno, Errno::AGAIN),
            }
        }
        assert_eq!(received, sent);
    }
}
