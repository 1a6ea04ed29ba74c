//! The running host and how it is built.

use crate::clock::Clock;
use crate::guard::guarded;
use crate::listener::TcpListener;
use crate::runtime::Runtime;
use crate::stream::TcpStream;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use transom_device::Device;
use transom_device::interface::IpPrefix;
use transom_device::open::{OpenOptions, Opened, open};
use transom_device::word::DeviceWord;
use transom_extensions::Budget;
use transom_stack::config::{Offload, StackConfig, StackCounters};
use transom_stack::fast_open::FastOpenConfig;
use transom_stack::memory::{MemoryInfo, MemoryLimits};
use transom_stack::stack::Stack as Host;
use transom_tcp::profile::Profile;
use transom_tcp::time::Duration;

/// How long dropping the last handle waits for written data to be acknowledged.
const DRAIN_ON_DROP: std::time::Duration = std::time::Duration::from_secs(2);

/// A user-level TCP host that runs in this process.
///
/// Clones are handles to the same host. Streams and listeners keep it alive; when the last handle of any kind is dropped, it
/// waits up to two seconds for data that was written and not yet acknowledged, and stops.
#[derive(Clone, Debug)]
pub struct Stack {
    pub(crate) shared: Arc<Shared>,
}

/// What all handles share; its end is the host's end.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) runtime: Arc<Runtime>,
    /// The time of the host's extensions.
    pub(crate) budget: Arc<Budget>,
}

/// What the extensions of a host have taken of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionTime {
    /// How long they ran, all together.
    pub used: std::time::Duration,
    /// Wake-ups that they missed, because they had [used up](StackBuilder::extension_time) what they may take.
    pub missed: u64,
}

impl Drop for Shared {
    fn drop(&mut self) {
        wait_until(&self.runtime, DRAIN_ON_DROP, |host| !host.has_undelivered());
        self.runtime.stop();
    }
}

/// Waits until `done`, or until `timeout`, or until the device fails. Returns whether it was done.
fn wait_until(
    runtime: &Runtime,
    timeout: std::time::Duration,
    done: impl Fn(&Host) -> bool,
) -> bool {
    let deadline = std::time::Instant::now() + timeout;
    loop {
        let (done, failed) = runtime.with(|inner, _| (done(&inner.host), inner.has_failed()));
        if done || failed || std::time::Instant::now() >= deadline {
            return done;
        }
        // The background thread does the work; this one only looks.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Builds a [`Stack`].
#[derive(Clone, Debug)]
pub struct StackBuilder {
    addresses: Vec<(IpAddr, u8)>,
    profile: Profile,
    secret: Option<[u8; 16]>,
    busy_poll: Duration,
    limits: Limits,
    log_records: Option<usize>,
    comments: bool,
    extension_time: Duration,
    fast_open: FastOpenConfig,
}

/// Bounds on what a host keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Half-open connections; beyond that SYN cookies are used.
    pub half_open: usize,
    /// Connections in TIME-WAIT.
    pub time_wait: usize,
    /// Memory for the data of all connections. Nothing leaves it to the machine: an eighth of its memory at most, with pressure from a twelfth on.
    pub memory: Option<MemoryLimits>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections: 1 << 20, half_open: 1024, time_wait: 65_536, memory: None }
    }
}

impl Stack {
    /// Starts building a host.
    pub fn builder() -> StackBuilder {
        StackBuilder {
            addresses: Vec::new(),
            profile: Profile::default(),
            secret: None,
            busy_poll: Duration::ZERO,
            limits: Limits::default(),
            log_records: None,
            comments: false,
            extension_time: transom_extensions::budget::PER_SECOND,
            fast_open: FastOpenConfig::default(),
        }
    }

    /// Connects to the first of `addr`'s addresses that answers, as [`std::net::TcpStream::connect`] does.
    ///
    /// # Errors
    /// Those of the last address tried; [`io::ErrorKind::InvalidInput`] if there is none.
    pub fn connect(&self, addr: impl ToSocketAddrs) -> io::Result<TcpStream> {
        TcpStream::connect(self, addr)
    }

    /// Listens at the first of `addr`'s addresses that can be listened at.
    ///
    /// # Errors
    /// As [`TcpListener::bind`].
    pub fn listen(&self, addr: impl ToSocketAddrs) -> io::Result<TcpListener> {
        TcpListener::bind(self, addr)
    }

    /// What the host has counted.
    pub fn counters(&self) -> StackCounters {
        self.shared.runtime.lock().host.counters()
    }

    /// What the data of all connections takes, and what has come of the [limits](Limits::memory) on it.
    pub fn memory(&self) -> MemoryInfo {
        self.shared.runtime.lock().host.memory()
    }

    /// What the host's extensions have taken of its time.
    pub fn extension_time(&self) -> ExtensionTime {
        let budget = &self.shared.budget;
        ExtensionTime { used: budget.used().into(), missed: budget.missed() }
    }

    /// Packets that the device refused.
    pub fn dropped_by_device(&self) -> u64 {
        self.shared.runtime.lock().dropped()
    }

    /// Connections that exist, TIME-WAIT and half-open ones not included.
    pub fn connection_count(&self) -> usize {
        self.shared.runtime.lock().host.connection_count()
    }

    /// Waits until every connection has ended in order, or until `timeout`. Returns whether they have.
    pub fn drain(&self, timeout: std::time::Duration) -> bool {
        wait_until(&self.shared.runtime, timeout, |host| host.connection_count() == 0)
    }
}

impl StackBuilder {
    /// Adds an address of the host with its prefix length.
    pub fn address(mut self, address: IpAddr, prefix: u8) -> Self {
        self.addresses.push((address, prefix));
        self
    }

    /// The profile of connections that do not name their own. Its extensions are guarded: one that panics, or takes longer than
    /// [`ALLOWED`](transom_extensions::guard::ALLOWED) three times in a row, is detached, and its connection goes on.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the secret from which sequence numbers, ports and hash keys are derived. By default it is random.
    pub fn secret(mut self, secret: [u8; 16]) -> Self {
        self.secret = Some(secret);
        self
    }

    /// A thread that waits looks at the device without sleeping for so long before it sleeps. It trades CPU time for
    /// latency. Without it, or with zero, a thread stays awake for at most 50 µs, and only while that spares it a sleep.
    pub fn busy_poll(mut self, span: std::time::Duration) -> Self {
        self.busy_poll = span.into();
        self
    }

    /// Bounds on what the host keeps.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How many records of the event log are kept, 64 bytes each; with none it is off. The default is 4096.
    pub fn log_records(mut self, records: usize) -> Self {
        self.log_records = Some(records);
        self
    }

    /// Has the device told of each segment how its sender stood ([`Device::annotate`]), which a
    /// [`Tapped`](transom_device::capture::Tapped) one writes into its capture. By default it is not.
    pub fn comments(mut self, comments: bool) -> Self {
        self.comments = comments;
        self
    }

    /// How much of each second the extensions of all connections may take together; a quarter of it by default. When they have used it up, they miss
    /// wake-ups, and those whose calls are long are detached. It does not apply to [observers](TcpStream::observer), which run in threads of their own.
    pub fn extension_time(mut self, per_second: std::time::Duration) -> Self {
        self.extension_time = per_second.into();
        self
    }

    /// How long keys of TCP Fast Open live, and how many servers' cookies are remembered. Cookies are made from the [secret](StackBuilder::secret): with
    /// another one, those of before are not known.
    pub fn fast_open(mut self, config: FastOpenConfig) -> Self {
        self.fast_open = config;
        self
    }

    /// Opens the device that a word names, such as `tun:transom0` or `udp:192.0.2.1:4000`, and starts the host on it. [`DeviceWord`] has all
    /// words. Without an [address](StackBuilder::address) the host has those that the device gives.
    ///
    /// ```no_run
    /// # use transom_net::Stack;
    /// let stack = Stack::builder().device("udp:192.0.2.1:4000")?;
    /// let stream = stack.connect("10.9.0.1:80")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a text that is no such word, and otherwise what is wrong with the device
    /// ([`OpenError`](transom_device::open::OpenError)) or as [`StackBuilder::start`].
    pub fn device(self, word: &str) -> io::Result<Stack> {
        let word: DeviceWord =
            word.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let prefixes = self.addresses.iter();
        let prefixes = prefixes.filter_map(|(address, length)| IpPrefix::new(*address, *length));
        let options = OpenOptions { addresses: prefixes.collect(), ..crate::open_options() };
        let Opened { device, addresses, .. } = open(&word, &options)?;
        let builder = StackBuilder { addresses: Vec::new(), ..self };
        let with_address = |builder: StackBuilder, prefix: IpPrefix| {
            builder.address(prefix.address(), prefix.prefix_len())
        };
        addresses.into_iter().fold(builder, with_address).start(device)
    }

    /// Starts the host on `device`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] with the reason if the configuration does not make sense, and the operating system's
    /// errors for descriptors, threads and randomness.
    pub fn start(self, device: impl Device + 'static) -> io::Result<Stack> {
        let capabilities = device.capabilities();
        let secret = match self.secret {
            Some(secret) => secret,
            None => random_secret()?,
        };
        let budget = Arc::new(Budget::new(self.extension_time));
        let default = StackConfig::new(self.addresses);
        let config = StackConfig {
            mtu: u32::try_from(capabilities.mtu).unwrap_or(65_535).min(65_535),
            offload: Offload {
                tx_checksum: capabilities.tx_checksum,
                segmentation: capabilities.segmentation,
            },
            profile: Arc::new(guarded(self.profile, &budget)),
            secret,
            max_connections: self.limits.connections,
            max_half_open: self.limits.half_open,
            max_time_wait: self.limits.time_wait,
            memory: self.limits.memory.unwrap_or_else(memory_of_the_machine),
            log_records: self.log_records.unwrap_or(default.log_records),
            comments: self.comments,
            fast_open: self.fast_open,
            ..default
        };
        let clock = Clock::start();
        let host = Host::new(config, clock.now())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let runtime = Runtime::start(host, Box::new(device), clock, self.busy_poll)?;
        Ok(Stack { shared: Arc::new(Shared { runtime, budget }) })
    }
}

/// In the proportions of Linux' `tcp_mem`: an eighth of the memory at most.
fn memory_of_the_machine() -> MemoryLimits {
    let info = rustix::system::sysinfo();
    let bytes = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit));
    let eighth = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
    MemoryLimits::of(eighth.max(64 << 20))
}

fn random_secret() -> io::Result<[u8; 16]> {
    let mut secret = [0; 16];
    let mut filled = 0;
    while filled < secret.len() {
        filled +=
            rustix::rand::getrandom(&mut secret[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(secret)
}

/// Tries each address in turn and returns the first success or the last failure.
pub(crate) fn each_address<T>(
    addr: impl ToSocketAddrs,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = None;
    for addr in addr.to_socket_addrs()? {
        match attempt(addr) {
            Ok(value) => return Ok(value),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "could not resolve to any addresses")
    }))
}
