//! Stacks, streams and listeners.
//!
//! A call that waits looks for signals, such as Ctrl-C, ten times a second. Every call gives up Python's lock before it takes the stack's.

use crate::error::{os, outside, value};
use crate::extension::{Errors, PyExtension};
use crate::units::Units;
use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsRawFd;
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use transom_device::memory::{self, MemoryConfig};
use transom_net::{Profile, TcpListener, TcpStream};
use transom_tcp::compose;
use transom_tcp::extension::LayerId;

/// The interval between two looks for signals.
const SLICE: Duration = Duration::from_millis(100);
/// The most bytes that one call receives.
const MOST: usize = 16 << 20;

/// One end of a network in memory.
#[pyclass(frozen, module = "transom")]
pub(crate) struct MemoryDevice(Mutex<Option<memory::MemoryDevice>>);

/// Two ends of a network in memory: a stack on each of them reaches the other.
#[pyfunction]
pub(crate) fn memory_devices() -> PyResult<(MemoryDevice, MemoryDevice)> {
    let (one, other) = memory::pair(&MemoryConfig::default()).map_err(os)?;
    let device = |device| MemoryDevice(Mutex::new(Some(device)));
    Ok((device(one), device(other)))
}

/// A host with its own TCP in this process.
#[pyclass(frozen, module = "transom")]
pub(crate) struct Stack(Mutex<Option<Held<transom_net::Stack>>>);

/// Something whose end takes a stack's lock: it ends without Python's.
struct Held<T: Send>(Option<T>);

impl<T: Send + Clone> Clone for Held<T> {
    fn clone(&self) -> Self {
        Held(self.0.clone())
    }
}

impl<T: Send> Held<T> {
    fn new(held: T) -> Held<T> {
        Held(Some(held))
    }

    /// Nothing only while it ends.
    fn get(&self) -> PyResult<&T> {
        self.0.as_ref().ok_or_else(closed)
    }
}

impl<T: Send> Drop for Held<T> {
    fn drop(&mut self) {
        let mut held = self.0.take();
        let dropped = Python::try_attach(|py| py.detach(|| drop(held.take())));
        if dropped.is_none() {
            drop(held);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> PyErr {
    PyOSError::new_err((9, "it is closed"))
}

#[pymethods]
impl Stack {
    /// Starts a host on a device: one of memory_devices(), or a word such as "tun:transom0" or "udp:192.0.2.1:4000".
    ///
    /// ``address`` is an address with its prefix length, such as "10.0.0.1/24", or a list of them. ``tcp`` names units, such as "cubic + pacing".
    /// ``congestion`` is a class that makes a congestion controller for each connection, and ``extensions`` a list of classes of extensions, or of
    /// words such as "nice".
    #[new]
    #[pyo3(signature = (device, address=None, *, tcp=None, congestion=None, extensions=None))]
    fn new(
        py: Python<'_>,
        device: &Bound<'_, PyAny>,
        address: Option<&Bound<'_, PyAny>>,
        tcp: Option<&str>,
        congestion: Option<&Bound<'_, PyAny>>,
        extensions: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Stack> {
        outside()?;
        let mut profile = match tcp {
            Some(text) => compose::compose(text).map_err(value)?,
            None => Profile::default(),
        };
        Units::read(congestion, extensions, &Errors::default())?.put(&mut profile);
        let mut builder = transom_net::Stack::builder().profile(profile);
        for text in addresses(address)? {
            let (address, prefix) = prefix(&text)?;
            builder = builder.address(address, prefix);
        }
        let started = if let Ok(memory) = device.cast::<MemoryDevice>() {
            let taken = lock(&memory.get().0).take();
            let taken = taken.ok_or_else(|| value("the device has a stack already"))?;
            py.detach(|| builder.start(taken))
        } else {
            let word: String = device.extract()?;
            py.detach(|| builder.device(&word))
        };
        Ok(Stack(Mutex::new(Some(Held::new(started.map_err(os)?)))))
    }

    /// Connects to a host and a port. With a timeout in seconds it waits no longer.
    #[pyo3(signature = (host, port, timeout=None))]
    fn connect(
        &self,
        py: Python<'_>,
        host: &str,
        port: u16,
        timeout: Option<f64>,
    ) -> PyResult<Stream> {
        outside()?;
        let (held, remote) = (self.stack()?, resolve(host, port)?);
        let stack = held.get()?;
        let deadline = deadline(timeout)?;
        let stream = py.detach(|| TcpStream::connect_nonblocking(stack, remote)).map_err(os)?;
        let stream = Stream::new(stream, None);
        stream.wait_connected(py, deadline)?;
        Ok(stream)
    }

    /// Begins to connect, and does not wait. The stream can be written when it is connected.
    fn connect_nonblocking(&self, py: Python<'_>, host: &str, port: u16) -> PyResult<Stream> {
        outside()?;
        let (held, remote) = (self.stack()?, resolve(host, port)?);
        let stack = held.get()?;
        let stream = py.detach(|| TcpStream::connect_nonblocking(stack, remote)).map_err(os)?;
        Ok(Stream::new(stream, Some(Duration::ZERO)))
    }

    /// Listens on an address and a port; on port 0 a free one is chosen.
    fn listen(&self, py: Python<'_>, host: &str, port: u16) -> PyResult<Listener> {
        outside()?;
        let (held, local) = (self.stack()?, resolve(host, port)?);
        let stack = held.get()?;
        let listener = py.detach(|| -> io::Result<_> {
            let listener = stack.listen(local)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = Mutex::new(Some(Held::new(Arc::new(listener.map_err(os)?))));
        Ok(Listener { listener, timeout: Mutex::new(None) })
    }

    /// The number of connections.
    #[getter]
    fn connection_count(&self, py: Python<'_>) -> PyResult<usize> {
        outside()?;
        let held = self.stack()?;
        let stack = held.get()?;
        Ok(py.detach(|| stack.connection_count()))
    }

    /// Gives the host up. Its streams fail from then on, when they are closed too.
    fn close(&self) {
        let taken = lock(&self.0).take();
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

impl Stack {
    fn stack(&self) -> PyResult<Held<transom_net::Stack>> {
        lock(&self.0).clone().ok_or_else(closed)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.close();
    }
}

fn addresses(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    match given.extract::<String>() {
        Ok(one) => Ok(vec![one]),
        Err(_) => given.extract(),
    }
}

fn prefix(text: &str) -> PyResult<(IpAddr, u8)> {
    let read = || {
        let (address, length) = text.split_once('/')?;
        let (address, length) = (address.parse::<IpAddr>().ok()?, length.parse::<u8>().ok()?);
        let most = if address.is_ipv4() { 32 } else { 128 };
        (length <= most).then_some((address, length))
    };
    read().ok_or_else(|| {
        value(format!("{text:?} is no address with a prefix length, such as 10.0.0.1/24"))
    })
}

fn resolve(host: &str, port: u16) -> PyResult<SocketAddr> {
    let mut found = (host, port).to_socket_addrs().map_err(os)?;
    found.next().ok_or_else(|| value(format!("{host:?} has no address")))
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err("a timeout is a number of seconds, zero or more"))
}

fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    timeout
        .map(duration)
        .transpose()
        .map(|span| span.and_then(|span| Instant::now().checked_add(span)))
}

/// Tries until there is a result. Between the tries, `rest` waits for at most the time that it is given.
fn patiently<T: Send>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut attempt: impl FnMut() -> io::Result<T> + Send,
    mut rest: impl FnMut(Duration) -> io::Result<()> + Send,
) -> PyResult<T> {
    let deadline = timeout.and_then(|span| Instant::now().checked_add(span));
    loop {
        let tried = py.detach(&mut attempt);
        match tried {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => {}
            outcome => return outcome.map_err(os),
        }
        if timeout == Some(Duration::ZERO) {
            return Err(PyBlockingIOError::new_err((11, "it would have to wait")));
        }
        let left =
            deadline.map_or(SLICE, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(PyTimeoutError::new_err("timed out"));
        }
        py.detach(|| rest(left.min(SLICE))).map_err(os)?;
        py.check_signals()?;
    }
}

/// Waits for a descriptor.
fn wait_for(fd: rustix::fd::BorrowedFd<'_>, flags: PollFlags, span: Duration) -> io::Result<()> {
    let mut fds = [PollFd::new(&fd, flags)];
    let span = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) };
    match poll(&mut fds, Some(&span)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A connection.
#[pyclass(frozen, module = "transom")]
pub(crate) struct Stream {
    stream: Mutex<Option<Held<Arc<TcpStream>>>>,
    /// How long a call waits: for ever if nothing is said, not at all if it is zero.
    timeout: Mutex<Option<Duration>>,
}

impl Stream {
    /// The stream does not wait itself.
    fn new(stream: TcpStream, timeout: Option<Duration>) -> Stream {
        Stream {
            stream: Mutex::new(Some(Held::new(Arc::new(stream)))),
            timeout: Mutex::new(timeout),
        }
    }

    fn stream(&self) -> PyResult<Held<Arc<TcpStream>>> {
        outside()?;
        lock(&self.stream).clone().ok_or_else(closed)
    }

    fn wait_connected(&self, py: Python<'_>, deadline: Option<Instant>) -> PyResult<()> {
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
        dict.set_item("congestion", info.congestion)?;
        dict.set_item("mss", info.mss)?;
        dict.set_item("cwnd", info.cwnd)?;
        dict.set_item("ssthresh", info.ssthresh)?;
        dict.set_item("in_flight", info.in_flight)?;
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

fn shown(address: SocketAddr) -> (String, u16) {
    (address.ip().to_string(), address.port())
}

/// A listening socket.
#[pyclass(frozen, module = "transom")]
pub(crate) struct Listener {
    listener: Mutex<Option<Held<Arc<TcpListener>>>>,
    timeout: Mutex<Option<Duration>>,
}

impl Listener {
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
