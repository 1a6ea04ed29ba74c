//! A host with its own TCP, on a device.

use super::held::{Held, closed, lock};
use super::listener::Listener;
use super::stream::Stream;
use super::waiting::deadline;
use crate::error::{os, outside, value};
use crate::extension::Errors;
use crate::units::Units;
use pyo3::prelude::*;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Mutex;
use std::time::Duration;
use transom_device::memory::{self, MemoryConfig};
use transom_net::{Profile, TcpStream};
use transom_tcp::compose;

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

#[pymethods]
impl Stack {
    /// Starts a host on a device: one of memory_devices(), or a word such as "tun:transom0", "udp:192.0.2.1:4000" or "shared".
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
        listener.map(Listener::new).map_err(os)
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
