//! A listening socket.

use super::held::{Held, closed, lock};
use super::shown;
use super::stream::Stream;
use super::waiting::{duration, patiently, wait_for};
use crate::error::{os, outside};
use pyo3::prelude::*;
use rustix::event::PollFlags;
use rustix::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transom_net::TcpListener;

/// A listening socket.
#[pyclass(frozen, module = "transom")]
pub(crate) struct Listener {
    listener: Mutex<Option<Held<Arc<TcpListener>>>>,
    timeout: Mutex<Option<Duration>>,
}

impl Listener {
    /// The listener does not wait itself.
    pub(super) fn new(listener: TcpListener) -> Listener {
        let listener = Mutex::new(Some(Held::new(Arc::new(listener))));
        Listener { listener, timeout: Mutex::new(None) }
    }

    fn listener(&self) -> PyResult<Held<Arc<TcpListener>>> {
        outside()?;
        lock(&self.listener).clone().ok_or_else(closed)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

#[pymethods]
impl Listener {
    /// Waits for a connection. Returns it with the peer's address and port.
    fn accept(&self, py: Python<'_>) -> PyResult<(Stream, (String, u16))> {
        let held = self.listener()?;
        let listener = held.get()?;
        let timeout = *lock(&self.timeout);
        let accepted = patiently(
            py,
            timeout,
            || {
                let (stream, peer) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok((stream, peer))
            },
            |span| wait_for(listener.try_as_fd()?, PollFlags::IN, span),
        );
        let (stream, peer) = accepted?;
        Ok((Stream::new(stream, None), shown(peer)))
    }

    /// How long accept waits, in seconds: None for as long as it takes, zero for not at all.
    fn settimeout(&self, seconds: Option<f64>) -> PyResult<()> {
        *lock(&self.timeout) = seconds.map(duration).transpose()?;
        Ok(())
    }

    /// Whether accept waits.
    fn setblocking(&self, blocking: bool) {
        *lock(&self.timeout) = if blocking { None } else { Some(Duration::ZERO) };
    }

    /// A descriptor that can be read when there is a connection. It is only for waiting.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        let held = self.listener()?;
        let listener = held.get()?;
        py.detach(|| listener.try_as_fd().map(|fd| fd.as_raw_fd())).map_err(os)
    }

    /// The address and the port.
    fn getsockname(&self, py: Python<'_>) -> PyResult<(String, u16)> {
        let held = self.listener()?;
        let listener = held.get()?;
        py.detach(|| listener.local_addr()).map(shown).map_err(os)
    }

    /// Stops listening.
    fn close(&self) {
        let taken = lock(&self.listener).take();
        drop(taken);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }
}
