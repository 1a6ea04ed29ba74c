//! Asynchronous reports of a connection (RFC 9293 section 3.9.1.8), and urgent data (section 3.8.5).

use super::TcpStream;
use crate::engine::Channel;
use crate::error::socket_error;
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use transom_tcp::{Report, State};

impl TcpStream {
    /// The next report about the connection: urgent data, an error from the network, or a segment that was sent repeatedly. Each is returned once,
    /// here or by [`TcpStream::take_soft_error`]. Reports are only made on request [SHLD-20].
    pub fn take_report(&self) -> io::Result<Option<Report>> {
        self.change(|connection, _| connection.take_report())
    }

    /// Waits for the next report, for `timeout` at most [MUST-47] [SHLD-9], also while the stream is connecting [MUST-22]. A thread that only waits
    /// here learns of urgent data when it is announced, before it has arrived [MUST-32].
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] once the connection is over: there will be no more reports. The device's, if it has failed.
    pub fn wait_for_report(&self, timeout: Option<Duration>) -> io::Result<Option<Report>> {
        let id = self.socket.id;
        let runtime = &self.socket.shared.runtime;
        let deadline = timeout.map(|timeout| runtime.now() + timeout.into());
        let outcome = runtime.wait(Channel::Report(id), deadline, |inner, now| {
            let look = inner.host.with_connection(id, now, |connection| {
                (connection.take_report(), connection.state())
            });
            match look {
                Ok((Some(report), _)) => Some(Ok(report)),
                Ok((None, State::Closed | State::TimeWait)) => Some(Err(Errno::NOTCONN.into())),
                Ok((None, _)) => inner.failure().map(Err),
                Err(error) => Some(Err(socket_error(error))),
            }
        });
        outcome.transpose()
    }

    /// Writes, and the last byte is urgent (`MSG_OOB`) [MUST-30] [MUST-31]. Returns how many bytes were taken; where that is less than all, nothing is
    /// urgent yet. New programs should not use urgent data (RFC 6093) [SHLD-13].
    ///
    /// # Errors
    /// As [`io::Write::write`].
    pub fn send_out_of_band(&self, bytes: &[u8]) -> io::Result<usize> {
        self.writing(|connection, now| connection.write_urgent(now, bytes))
    }

    /// How many bytes are left to read up to the end of urgent data, if any was announced [MUST-33]. They are part of the stream, as with
    /// `SO_OOBINLINE`, and a read may go beyond their end.
    pub fn urgent_bytes(&self) -> io::Result<Option<u64>> {
        self.inspect(|connection, _| connection.urgent_bytes())
    }
}
