//! A connection.

use super::held::{Held, closed, lock};
use super::shown;
use super::waiting::{duration, patiently, wait_for};
use crate::error::{os, outside, value};
use crate::extension::{Errors, PyExtension};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PySlice};
use rustix::event::PollFlags;
use rustix::fd::AsRawFd;
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transom_net::TcpStream;
use transom_tcp::extension::LayerId;

/// The most bytes that one call receives.
const MOST: usize = 16 << 20;

/// A connection.
#[pyclass(frozen, module = "transom")]
pub(crate) struct Stream {
    stream: Mutex<Option<Held<Arc<TcpStream>>>>,
    /// How long a call waits: for ever if nothing is said, not at all if it is zero.
    timeout: Mutex<Option<Duration>>,
}

impl Stream {
    /// The stream does not wait itself.
    pub(super) fn new(stream: TcpStream, timeout: Option<Duration>) -> Stream {
        Stream {
            stream: Mutex::new(Some(Held::new(Arc::new(stream)))),
            timeout: Mutex::new(timeout),
        }
    }

    fn stream(&self) -> PyResult<Held<Arc<TcpStream>>> {
        outside()?;
        lock(&self.stream).clone().ok_or_else(closed)
    }

    pub(super) fn wait_connected(&self, py: Python<'_>, deadline: Option<Instant>) -> PyResult<()> {
        let held = self.stream()?;
        let stream = held.get()?;
        let timeout = deadline.map(|deadline| {
            deadline.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1))
        });
        patiently(
            py,
            timeout,
            || {
                let waker = std::task::Waker::noop();
                match stream.poll_connected(&mut std::task::Context::from_waker(waker)) {
                    std::task::Poll::Ready(outcome) => outcome,
                    std::task::Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                }
            },
            |span| wait_for(stream.try_as_fd()?, PollFlags::OUT, span),
        )
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let taken = lock(&self.stream).take();
        drop(taken);
    }
}

#[pymethods]
impl Stream {
    /// Receives up to ``size`` bytes; none at the end of the stream.
    fn recv<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let held = self.stream()?;
        let stream = held.get()?;
        let mut buffer = vec![0; size.min(MOST)];
        let timeout = *lock(&self.timeout);
        let got = patiently(
            py,
            timeout,
            || (&**stream).read(&mut buffer),
            |span| wait_for(stream.try_as_fd()?, PollFlags::IN, span),
        );
        let got = got?;
        Ok(PyBytes::new(py, buffer.get(..got).unwrap_or_default()))
    }

    /// Receives into a buffer, up to ``nbytes`` bytes or as much as it holds, and returns how many.
    #[pyo3(signature = (buffer, nbytes=0))]
    fn recv_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        nbytes: usize,
    ) -> PyResult<usize> {
        let view = PyMemoryView::from(buffer)?.call_method1("cast", ("B",))?;
        let room = view.len()?;
        let got = self.recv(py, if nbytes == 0 { room } else { nbytes.min(room) })?;
        let count = got.len()?;
        view.set_item(PySlice::new(py, 0, count as isize, 1), got)?;
        Ok(count)
    }

    /// Sends some of the bytes, and returns how many.
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (held, data) = (self.stream()?, bytes(data)?);
        let stream = held.get()?;
        let timeout = *lock(&self.timeout);
        patiently(
            py,
            timeout,
            || (&**stream).write(&data),
            |span| wait_for(stream.try_as_fd()?, PollFlags::OUT, span),
        )
    }

    /// Sends all of the bytes.
    fn sendall(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let (held, data) = (self.stream()?, bytes(data)?);
        let stream = held.get()?;
        let timeout = *lock(&self.timeout);
        let mut left: &[u8] = &data;
        let mut outcome = Ok(());
        while !left.is_empty() {
            let sent = patiently(
                py,
                timeout,
                || (&**stream).write(left),
                |span| wait_for(stream.try_as_fd()?, PollFlags::OUT, span),
            );
            match sent {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        outcome
    }

    /// Ends one way of the stream, or both: how is 0 for reading, 1 for writing and 2 for both, as in the module socket.
    fn shutdown(&self, py: Python<'_>, how: u8) -> PyResult<()> {
        let held = self.stream()?;
        let stream = held.get()?;
        let how = match how {
            0 => Shutdown::Read,
            1 => Shutdown::Write,
            2 => Shutdown::Both,
            _ => return Err(value("how is 0, 1 or 2")),
        };
        py.detach(|| stream.shutdown(how)).map_err(os)
    }

    /// Closes the connection in order; what was sent is still delivered.
    fn close(&self) {
        let taken = lock(&self.stream).take();
        drop(taken);
    }

    /// How long calls wait, in seconds: None for as long as it takes, zero for not at all.
    fn settimeout(&self, seconds: Option<f64>) -> PyResult<()> {
        *lock(&self.timeout) = seconds.map(duration).transpose()?;
        Ok(())
    }

    /// Whether calls wait.
    fn setblocking(&self, blocking: bool) {
        *lock(&self.timeout) = if blocking { None } else { Some(Duration::ZERO) };
    }

    /// A descriptor that shows whether the stream can be read or written. It is only for waiting: select, poll, add_reader.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        let held = self.stream()?;
        let stream = held.get()?;
        py.detach(|| stream.try_as_fd().map(|fd| fd.as_raw_fd())).map_err(os)
    }

    /// Raises the error of a connection that could not be made or was lost, once.
    fn check_connected(&self, py: Python<'_>) -> PyResult<bool> {
        let held = self.stream()?;
        let stream = held.get()?;
        let connected = py.detach(|| {
            let waker = std::task::Waker::noop();
            match stream.poll_connected(&mut std::task::Context::from_waker(waker)) {
                std::task::Poll::Ready(outcome) => outcome.map(|()| true),
                std::task::Poll::Pending => Ok(false),
            }
        });
        connected.map_err(os)
    }

    /// The peer's address and port.
    fn getpeername(&self, py: Python<'_>) -> PyResult<(String, u16)> {
        let held = self.stream()?;
        let stream = held.get()?;
        py.detach(|| stream.peer_addr()).map(shown).map_err(os)
    }

    /// The own address and port.
    fn getsockname(&self, py: Python<'_>) -> PyResult<(String, u16)> {
        let held = self.stream()?;
        let stream = held.get()?;
        py.detach(|| stream.local_addr()).map(shown).map_err(os)
    }

    /// Attaches an extension, and returns its number: an object with on_event(event, view).
    fn attach(&self, py: Python<'_>, extension: &Bound<'_, PyAny>) -> PyResult<u64> {
        let held = self.stream()?;
        let stream = held.get()?;
        let extension = Box::new(PyExtension::new(extension, Errors::default())?);
        py.detach(|| stream.attach(extension)).map(|layer| layer.get().into()).map_err(os)
    }

    /// Detaches an extension by its number. Returns whether it was there.
    fn detach(&self, py: Python<'_>, layer: u64) -> PyResult<bool> {
        let held = self.stream()?;
        let stream = held.get()?;
        let gone = py.detach(|| {
            let found = stream.with_connection(|connection, _| {
                connection.layers().map(|one| one.id).find(|id| u64::from(id.get()) == layer)
            })?;
            found.map_or(Ok(false), |id: LayerId| stream.detach(id))
        });
        gone.map_err(os)
    }

    /// The extensions that were removed for a fault since the last call: each with the reason.
    fn departures(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let held = self.stream()?;
        let stream = held.get()?;
        let gone = py.detach(|| {
            stream.with_connection(|connection, _| {
                std::iter::from_fn(|| connection.poll_departure())
                    .map(|one| one.to_string())
                    .collect()
            })
        });
        gone.map_err(os)
    }

    /// The state of the connection. Sizes are in bytes, times in seconds.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let held = self.stream()?;
        let stream = held.get()?;
        let info = py.detach(|| stream.info()).map_err(os)?;
        let seconds = |time: Option<transom_tcp::time::Duration>| {
            time.map(|time| time.as_nanos() as f64 / 1e9)
        };
        let dict = PyDict::new(py);
        dict.set_item("state", format!("{:?}", info.state))?;
        dict.set_item("congestion", &*info.congestion)?;
        dict.set_item("mss", info.mss)?;
        dict.set_item("cwnd", info.cwnd)?;
        dict.set_item("ssthresh", info.ssthresh)?;
        dict.set_item("in_flight", info.in_flight)?;
        dict.set_item("limited_because", info.limited_because.name())?;
        dict.set_item("snd_wnd", info.snd_wnd)?;
        dict.set_item("rcv_wnd", info.rcv_wnd)?;
        dict.set_item("srtt", seconds(info.srtt))?;
        dict.set_item("min_rtt", seconds(info.min_rtt))?;
        dict.set_item("retransmitted_segments", info.counters.retransmitted_segments)?;
        Ok(dict)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }
}

/// The bytes of anything that has bytes.
fn bytes<'a>(data: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    let memory = data.py().import("builtins")?.getattr("memoryview")?.call1((data,))?;
    Ok(Cow::Owned(memory.call_method0("tobytes")?.extract()?))
}
