//! The settings of a stream.

use super::{Socket, TcpStream};
use crate::error::socket_error;
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use transom_stack::SocketOption;
use transom_tcp::compose::Composer;
use transom_tcp::{Setting, Settings, UnitChoice};

impl TcpStream {
    /// How long [`io::Read::read`] waits at most; `None` for as long as it takes.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a timeout of zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        store_timeout(&self.socket.read_timeout, timeout)
    }

    /// How long [`io::Write::write`] waits at most; `None` for as long as it takes.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a timeout of zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        store_timeout(&self.socket.write_timeout, timeout)
    }

    /// The read timeout.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(load_timeout(&self.socket.read_timeout))
    }

    /// The write timeout.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(load_timeout(&self.socket.write_timeout))
    }

    /// The handling of unsent data when the last handle is dropped. `None` leaves it to the stack, a zero duration resets the connection, and any
    /// other waits this long for its acknowledgement.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        *self.socket.linger.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = linger;
        Ok(())
    }

    /// The linger setting.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(*self.socket.linger.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Sets an option of the connection [MUST-21] [MUST-48] [SHLD-21]. [`TcpStream::settings`] and [`TcpStream::info`] show what is set.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a value that is not possible, [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn set_option(&self, option: impl Into<SocketOption>) -> io::Result<()> {
        let option = option.into();
        let id = self.socket.id;
        self.socket.shared.runtime.with(|inner, now| {
            let result = inner.host.set_option(id, now, &option);
            inner.update_readiness(id);
            result.map_err(socket_error)
        })?;
        self.socket.take_notice(&option);
        Ok(())
    }

    /// The settings that [`TcpStream::set_option`] changes.
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

    /// Switches Nagle's algorithm off (`true`) or on.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set_option(Setting::NoDelay(nodelay))
    }

    /// Whether Nagle's algorithm is off.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.inspect(|connection, _| connection.settings().nodelay)
    }

    /// Exchanges units of the live connection by name, such as `vegas + pacing`; [`UnitChoice`] lists which can be exchanged.
    /// The other units stay.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] with the reason, for words there are not and units that cannot be exchanged: nothing has been exchanged
    /// then. [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn recompose(&self, text: &str) -> io::Result<()> {
        self.change(|connection, now| Composer::default().exchange(connection, now, text))?
            .map_err(invalid)
    }

    /// Exchanges a unit; [`UnitChoice`] says what stays.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it does not work with the others, [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn exchange(&self, choice: UnitChoice) -> io::Result<()> {
        self.change(|connection, now| connection.exchange(now, choice))?.map_err(invalid)
    }

    /// The time to live (hop limit) of the packets sent from now on, 1 to 255.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for another value, [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.set_option(SocketOption::TimeToLive(ttl))
    }

    /// The time to live.
    pub fn ttl(&self) -> io::Result<u32> {
        let inner = self.socket.shared.runtime.lock();
        Ok(inner.host.hop_limit(self.socket.id).map(u32::from).ok_or(Errno::NOTCONN)?)
    }

    /// The type of service, without the lower two bits.
    pub fn tos(&self) -> io::Result<u32> {
        let inner = self.socket.shared.runtime.lock();
        Ok(inner
            .host
            .dscp(self.socket.id)
            .map(|dscp| u32::from(dscp) << 2)
            .ok_or(Errno::NOTCONN)?)
    }

    /// Whether calls return [`io::ErrorKind::WouldBlock`] instead of waiting.
    pub fn set_nonblocking(&self, non_blocking: bool) -> io::Result<()> {
        self.socket.non_blocking.store(non_blocking, Ordering::Relaxed);
        Ok(())
    }
}

impl Socket {
    /// Keeps what a handle has to know of an option that was set.
    pub(super) fn take_notice(&self, option: &SocketOption) {
        if let SocketOption::Setting(Setting::ReceiveLowWater(bytes)) = option {
            self.receive_low_water.store((*bytes).max(1), Ordering::Relaxed);
        }
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

pub(super) fn zero_timeout() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a timeout of zero is not possible")
}

fn store_timeout(slot: &AtomicU64, timeout: Option<Duration>) -> io::Result<()> {
    let nanos = match timeout {
        None => 0,
        Some(Duration::ZERO) => return Err(zero_timeout()),
        Some(timeout) => u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
    };
    slot.store(nanos, Ordering::Relaxed);
    Ok(())
}

pub(super) fn load_timeout(slot: &AtomicU64) -> Option<Duration> {
    Some(slot.load(Ordering::Relaxed)).filter(|&nanos| nanos > 0).map(Duration::from_nanos)
}
