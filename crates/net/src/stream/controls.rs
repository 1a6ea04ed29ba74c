//! Settings that shape segments and wake-ups. If Linux has the same option, it is named here, and the behaviour is that of Linux.

use super::TcpStream;
use super::transfer::write_each;
use std::io::{self, IoSlice};
use std::time::Duration;
use transom_tcp::{PathMtuDiscovery, Setting, WriteOptions};

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

    /// Sends only full segments; a partial one waits for more data, for 200 ms at most (`TCP_CORK`). Uncorking sends it.
    pub fn set_cork(&self, cork: bool) -> io::Result<()> {
        self.set_option(Setting::Cork(cork))
    }

    /// Whether the stream is corked.
    pub fn cork(&self) -> io::Result<bool> {
        self.inspect(|connection, _| connection.settings().cork)
    }

    /// Accepts no more data from a writer while this many bytes are unsent. Below half of that the stream is writable again
    /// (`TCP_NOTSENT_LOWAT`). With 0 only the send buffer decides.
    pub fn set_notsent_lowat(&self, bytes: u32) -> io::Result<()> {
        self.set_option(Setting::NotsentLowWater(bytes))
    }

    /// The mark that [`TcpStream::set_notsent_lowat`] sets.
    pub fn notsent_lowat(&self) -> io::Result<u32> {
        self.inspect(|connection, _| connection.settings().notsent_low_water)
    }

    /// A blocking read waits for this many bytes, or for as many as its buffer can hold, and the stream's descriptor is not readable
    /// before (`SO_RCVLOWAT`). The end of the stream and errors do not wait; half of the receive buffer is always enough. A read whose
    /// timeout passes returns the available data. 0 means 1.
    pub fn set_rcvlowat(&self, bytes: usize) -> io::Result<()> {
        self.set_option(Setting::ReceiveLowWater(bytes))
    }

    /// The mark that [`TcpStream::set_rcvlowat`] sets.
    pub fn rcvlowat(&self) -> io::Result<usize> {
        self.inspect(|connection, _| connection.settings().receive_low_water)
    }

    /// Acknowledges the next arrivals, and pending data, at once; or delays acknowledgements to piggyback them on data (`TCP_QUICKACK`).
    /// The effect is temporary: the acknowledgement policy continues from there.
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        self.set_option(Setting::QuickAck(quickack))
    }

    /// Whether the next arrivals are acknowledged at once, as far as is known.
    pub fn quickack(&self) -> io::Result<bool> {
        self.inspect(|connection, _| connection.settings().quick_ack)
    }

    /// How long the connection waits for the peer's FIN after the last handle is dropped (`TCP_LINGER2`; 60 s at first). With
    /// a span of zero it is gone as soon as our FIN is acknowledged.
    pub fn set_fin_wait_2(&self, span: Duration) -> io::Result<()> {
        self.set_option(Setting::FinWait2(span.into()))
    }

    /// How long that is.
    pub fn fin_wait_2(&self) -> io::Result<Duration> {
        let span = self.inspect(|connection, _| connection.profile().fin_wait_2)?;
        Ok(Duration::from_nanos(span.as_nanos()))
    }

    /// Whether packets may be fragmented, and whether what routers say of their size counts (`IP_MTU_DISCOVER`,
    /// `IPV6_MTU_DISCOVER`). For the SYN too where a profile has it ([`Profile::path_mtu_discovery`](crate::Profile::path_mtu_discovery)).
    pub fn set_mtu_discovery(&self, choice: PathMtuDiscovery) -> io::Result<()> {
        self.set_option(Setting::PathMtuDiscovery(choice))
    }

    /// The path MTU in bytes, as far as is known (`IP_MTU`, `IPV6_MTU`).
    pub fn path_mtu(&self) -> io::Result<u32> {
        self.inspect(|connection, _| connection.path_state().mtu)
    }
}
