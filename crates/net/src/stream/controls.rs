//! Settings that shape segments and wake-ups. If Linux has the same option, it is named here, and the behaviour is that of Linux.

use super::TcpStream;
use super::transfer::write_each;
use std::io::{self, IoSlice};
use std::time::Duration;
use transom_tcp::{Setting, Settings, WriteOptions};

impl TcpStream {
    /// Writes with a word on how the bytes are cut into segments: whether more follows (`MSG_MORE`), and whether a record ends
    /// behind them (`MSG_EOR`). Returns how many were taken, as [`io::Write::write`] does; where that is less than all, no
    /// record has ended.
    ///
    /// # Errors
    /// As [`io::Write::write`].
    pub fn write_with(&self, bytes: &[u8], options: WriteOptions) -> io::Result<usize> {
        let buffers = [IoSlice::new(bytes)];
        self.writing(|connection, now| write_each(connection, now, &buffers, options))
    }

    /// The settings that [`TcpStream::set_option`] changes. Some are read by a function of their own, such as [`TcpStream::fin_wait_2`].
    pub fn settings(&self) -> io::Result<Settings> {
        self.inspect(|connection, _| connection.settings())
    }

    /// Acknowledges the next arrivals, and pending data, at once; or delays acknowledgements to piggyback them on data (`TCP_QUICKACK`).
    /// The effect is temporary: the acknowledgement policy continues from there.
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        self.set_option(Setting::QuickAck(quickack))
    }

    /// Whether the next arrivals are acknowledged at once, as far as is known.
    pub fn quickack(&self) -> io::Result<bool> {
        Ok(self.settings()?.quick_ack)
    }

    /// How long the connection waits for the peer's FIN after the last handle is dropped (`TCP_LINGER2`): see [`Setting::FinWait2`].
    pub fn fin_wait_2(&self) -> io::Result<Duration> {
        let span = self.inspect(|connection, _| connection.profile().fin_wait_2)?;
        Ok(Duration::from_nanos(span.as_nanos()))
    }

    /// The path MTU in bytes, as far as is known (`IP_MTU`, `IPV6_MTU`).
    pub fn path_mtu(&self) -> io::Result<u32> {
        self.inspect(|connection, _| connection.path_state().mtu)
    }
}
