//! The running host and how it is built.

use crate::clock::Clock;
use crate::engine::Inner;
use crate::guard::guarded;
use crate::listener::TcpListener;
#[cfg(any(feature = "broker", feature = "bpf"))]
use crate::ports::PortRegistrar;
use crate::ports::{KernelPorts, PortSource, Ports};
use crate::runtime::Runtime;
use crate::sharing::{Follower, HostView, Sharing};
use crate::stream::TcpStream;
use crate::stream::file_memory::FileMemory;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};
use transom_device::interface::IpPrefix;
use transom_device::open::{Opened, open};
use transom_device::{Device, DeviceWord};
use transom_extensions::Budget;
use transom_stack::{
    FastOpenConfig, HostTotals, Interface, ListenConfig, MemoryInfo, MemoryLimits, Offload, Shard,
    Stack as Host, StackConfig, StackCounters,
};
use transom_tcp::Profile;
use transom_tcp::compose::compose;
use transom_tcp::time::Duration;

/// How long dropping the last handle waits for written data to be acknowledged.
const DRAIN_ON_DROP: std::time::Duration = std::time::Duration::from_secs(2);

/// A user-level TCP host that runs in this process.
///
/// Clones are handles to the same host. Streams and listeners keep it alive. When the last handle of any kind is dropped, it
/// waits up to two seconds for data that was written and not yet acknowledged, and stops.
///
/// A host of several [shards](StackBuilder::shards) is one for its programs and its peers. Each connection is in one shard for all its life; a listener
/// is in all of them.
#[derive(Clone, Debug)]
pub struct Stack {
    /// At least one.
    shards: Arc<[Arc<Shared>]>,
    /// The shard that gets the next connection, modulo their number.
    pub(crate) turn: Arc<AtomicUsize>,
}

/// A handle that does not keep its host alive ([`Stack::downgrade`]).
#[derive(Clone, Debug)]
pub struct WeakStack {
    shards: Vec<Weak<Shared>>,
    turn: Arc<AtomicUsize>,
}

impl WeakStack {
    /// The host, as long as any stream, listener or [`Stack`] keeps it alive.
    pub fn upgrade(&self) -> Option<Stack> {
        let shards = self.shards.iter().map(Weak::upgrade).collect::<Option<_>>()?;
        Some(Stack { shards, turn: Arc::clone(&self.turn) })
    }
}

/// State that all handles of one shard share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) runtime: Arc<Runtime>,
    /// The time of the host's extensions.
    pub(crate) budget: Arc<Budget>,
    /// For files that are sent.
    pub(crate) files: FileMemory,
    host: Arc<Family>,
}

/// All shards of a host; its end is the host's end.
#[derive(Debug)]
struct Family {
    runtimes: Vec<Arc<Runtime>>,
    ports: Option<Arc<Ports>>,
    follower: Option<Follower>,
}

/// The time that the extensions of a host have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtensionTime {
    /// How long they ran, all together.
    pub used: std::time::Duration,
    /// Wake-ups that they missed, because they had [used up](Limits::extension_time) what they may take.
    pub missed: u64,
}

impl Drop for Family {
    fn drop(&mut self) {
        self.follower = None;
        let runtimes = self.runtimes.iter().map(|runtime| &**runtime);
        wait_until(runtimes, DRAIN_ON_DROP, |host| !host.has_undelivered());
        self.runtimes.iter().for_each(|runtime| runtime.stop());
    }
}

/// Waits until all are `done`, or until `timeout`, or until the devices of the others have failed. Returns whether all were done.
pub(crate) fn wait_until<'a>(
    runtimes: impl Iterator<Item = &'a Runtime> + Clone,
    timeout: std::time::Duration,
    done: impl Fn(&Host) -> bool,
) -> bool {
    let deadline = std::time::Instant::now() + timeout;
    loop {
        let (mut all, mut waits) = (true, false);
        for runtime in runtimes.clone() {
            let (done, failed) = runtime.with(|inner, _| (done(&inner.host), inner.has_failed()));
            all &= done;
            waits |= !done && !failed;
        }
        if !waits || std::time::Instant::now() >= deadline {
            return all;
        }
        // The background thread does the work; this one only looks.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Builds a [`Stack`].
#[derive(Clone, Debug)]
pub struct StackBuilder {
    /// What each shard has. The rest is known when the host starts.
    config: StackConfig,
    profile: Profile,
    secret: Option<[u8; 16]>,
    busy_poll: Duration,
    memory: Option<MemoryLimits>,
    extension_time: Duration,
    shards: Option<usize>,
    ports: PortSource,
    sharing: Option<Sharing>,
}

/// Bounds on what a host keeps and spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Half-open connections; beyond that SYN cookies are used.
    pub half_open: usize,
    /// Connections in TIME-WAIT.
    pub time_wait: usize,
    /// Memory for the data of all connections. Nothing leaves it to the machine: an eighth of its memory at most, with pressure from a twelfth on.
    pub memory: Option<MemoryLimits>,
    /// Records of the event log in each shard, 64 bytes each; with none it is off.
    pub log_records: usize,
    /// How much of each second the extensions of all connections may take together. When they have used it up, they miss wake-ups, and those whose calls
    /// are long are detached. It does not apply to [observers](TcpStream::observer), which run in threads of their own.
    pub extension_time: std::time::Duration,
    /// ICMP errors that are sent in a second. A host that [refuses](crate::IncomingConnection::refuse) connections by ICMP needs more than by default: beyond
    /// the limit the peer hears nothing and repeats its SYN. See [`StackConfig::icmp_errors_per_second`].
    pub icmp_errors_per_second: u32,
}

transom_tcp::setters! {
    Limits:
    with_connections = connections: usize,
    with_half_open = half_open: usize,
    with_time_wait = time_wait: usize,
    with_memory = memory: Option<MemoryLimits>,
    with_log_records = log_records: usize,
    with_extension_time = extension_time: std::time::Duration,
    with_icmp_errors_per_second = icmp_errors_per_second: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 1 << 20,
            half_open: 1024,
            time_wait: 65_536,
            memory: None,
            log_records: 4096,
            extension_time: std::time::Duration::from_millis(250),
            icmp_errors_per_second: 100,
        }
    }
}

impl Stack {
    /// Starts building a host.
    pub fn builder() -> StackBuilder {
        let builder = StackBuilder {
            config: StackConfig::new(Vec::new()),
            profile: Profile::default(),
            secret: None,
            busy_poll: Duration::ZERO,
            memory: None,
            extension_time: transom_extensions::PER_SECOND,
            shards: None,
            ports: PortSource::Own,
            sharing: None,
        };
        builder.limits(Limits::default())
    }

    /// The shards of this handle, in their order.
    pub(crate) fn shards(&self) -> &[Arc<Shared>] {
        &self.shards
    }

    /// The first shard.
    pub(crate) fn first(&self) -> &Arc<Shared> {
        &self.shards[0]
    }

    /// The reserved ports, if the host does not choose ports itself.
    pub(crate) fn ports(&self) -> Option<&Arc<Ports>> {
        self.first().host.ports.as_ref()
    }

    /// The kernel's routes, if the host shares its addresses.
    pub(crate) fn follower(&self) -> Option<&Follower> {
        self.first().host.follower.as_ref()
    }

    fn runtimes(&self) -> impl Iterator<Item = &Runtime> + Clone {
        self.shards.iter().map(|shard| &*shard.runtime)
    }

    /// How many [shards](StackBuilder::shards) this handle is for.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// A handle to one shard: what it opens, counts and logs is that shard's. A listener made by it is in that shard alone; the others hand over
    /// what comes for it.
    pub fn shard(&self, index: usize) -> Option<Stack> {
        let shard = Arc::clone(self.shards.get(index)?);
        Some(Stack { shards: [shard].into(), turn: Arc::clone(&self.turn) })
    }

    /// A handle that does not keep the host alive, for one that only looks.
    pub fn downgrade(&self) -> WeakStack {
        let shards = self.shards.iter().map(Arc::downgrade).collect();
        WeakStack { shards, turn: Arc::clone(&self.turn) }
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

    /// Listens at every port of every address of the host, for what no other listener has. Both versions of IP are meant, or IPv6 alone
    /// ([`ListenConfig::v6_only`]). [`TcpListener::local_addr`] is the unspecified address with port 0; that of a stream is the one that its peer
    /// wanted to reach.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if there is such a listener, [`io::ErrorKind::InvalidInput`] if the host's ports are not its own, or for a profile that
    /// does not work.
    pub fn listen_to_everything(&self, config: ListenConfig) -> io::Result<TcpListener> {
        TcpListener::bind_to_everything(self, config)
    }

    /// The host's counters.
    pub fn counters(&self) -> StackCounters {
        self.runtimes().map(|runtime| runtime.lock().host.counters()).sum()
    }

    /// The memory of all connections' data, and the effects of its [limits](Limits::memory).
    pub fn memory(&self) -> MemoryInfo {
        let memory = |runtime: &Runtime| {
            let mut inner = runtime.lock();
            inner.host.refresh_memory();
            inner.host.memory()
        };
        self.runtimes().map(memory).sum()
    }

    /// The time that the host's extensions have used.
    pub fn extension_time(&self) -> ExtensionTime {
        let budget = &self.first().budget;
        ExtensionTime { used: budget.used().into(), missed: budget.missed() }
    }

    /// Packets that the device refused.
    pub fn dropped_by_device(&self) -> u64 {
        self.runtimes().map(|runtime| runtime.lock().dropped()).sum()
    }

    /// Connections that exist, TIME-WAIT and half-open ones not included.
    pub fn connection_count(&self) -> usize {
        self.runtimes().map(|runtime| runtime.lock().host.connection_count()).sum()
    }

    /// Waits until every connection has ended in order, or until `timeout`. Returns whether they have.
    pub fn drain(&self, timeout: std::time::Duration) -> bool {
        wait_until(self.runtimes(), timeout, |host| host.connection_count() == 0)
    }
}

impl StackBuilder {
    /// Adds an address of the host with its prefix length.
    pub fn address(mut self, address: IpAddr, prefix: u8) -> Self {
        self.config.addresses.push((address, prefix));
        self
    }

    /// The host has every address, loopback addresses too: it is the end of all connections that are routed to its device. A transparent proxy needs that.
    /// Connections are opened from any address that the caller names. Without a name, from one of the [addresses](StackBuilder::address), of which there
    /// may be none. The host answers no echo requests. See [`StackConfig::every_address`].
    ///
    /// It cannot be [shared](StackBuilder::shared), and its [ports](StackBuilder::ports) are its own: [`StackBuilder::start`] refuses the rest.
    pub fn every_address(mut self) -> Self {
        self.config.every_address = true;
        self
    }

    /// The profile of connections that do not name their own. Its extensions are guarded. An extension that panics, or that exceeds
    /// [`Budget::allowed`](transom_extensions::Budget::allowed) three times in a row, is detached; its connection continues.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The units of TCP for connections that do not name their own, such as `"cubic + pacing"`. `transom units` lists the words. The text says what is
    /// different from [`Profile::default`], and replaces an earlier [profile](StackBuilder::profile).
    ///
    /// ```
    /// # use transom_net::Stack;
    /// let builder = Stack::builder().tcp("cubic + pacing")?.extension("nice")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] with the word that is wrong.
    pub fn tcp(self, units: &str) -> io::Result<Self> {
        Ok(self.profile(compose(units).map_err(invalid_input)?))
    }

    /// Adds extensions to the profile, such as `"nice"` or `"vegas + rate-cap(rate=5Mbit/s)"`. `transom ext list` has them.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] with the word that is wrong.
    pub fn extension(mut self, words: &str) -> io::Result<Self> {
        let chosen = transom_extensions::stack(words).map_err(invalid_input)?;
        self.profile.extensions.extend(chosen);
        Ok(self)
    }

    /// Sets the secret from which sequence numbers, ports and hash keys are derived. By default it is random.
    pub fn secret(mut self, secret: [u8; 16]) -> Self {
        self.secret = Some(secret);
        self
    }

    /// How long a waiting thread polls the device before it sleeps. It trades CPU time for latency. Without it, or with zero, a thread stays awake
    /// for at most 50 µs, and only while that spares it a sleep.
    pub fn busy_poll(mut self, span: std::time::Duration) -> Self {
        self.busy_poll = span.into();
        self
    }

    /// Bounds on what the host keeps and spends.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.max_connections = limits.connections;
        self.config.max_half_open = limits.half_open;
        self.config.max_time_wait = limits.time_wait;
        self.config.log_records = limits.log_records;
        self.config.icmp_errors_per_second = limits.icmp_errors_per_second;
        self.memory = limits.memory;
        self.extension_time = limits.extension_time.into();
        self
    }

    /// Gives the device a comment on the sender's state with each segment ([`Device::annotate`]). A [`Tapped`](transom_device::Tapped)
    /// device writes it into its capture. Off by default.
    pub fn comments(mut self, comments: bool) -> Self {
        self.config.comments = comments;
        self
    }

    /// How long keys of TCP Fast Open live, and how many servers' cookies are remembered. Cookies are made from the [secret](StackBuilder::secret): with
    /// another one, those of before are not known.
    pub fn fast_open(mut self, config: FastOpenConfig) -> Self {
        self.config.fast_open = config;
        self
    }

    /// Works in so many shards, 1 to 64. Each has a queue of the device, a lock and timers of its own, so that each can use a core. By default there
    /// is one for each queue of the device. [`StackBuilder::device`] opens the device with as many queues as the process has processors
    /// ([`open_options`](crate::open_options)). The [limits](StackBuilder::limits) are the host's, but for the log's
    /// records: all shards keep them together. With one shard, one lock guards the host.
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Says where ports come from; by default from the host's own range.
    pub fn ports(mut self, ports: PortSource) -> Self {
        self.ports = ports;
        self
    }

    /// Takes ports from the kernel, and tells `registrar` of each.
    #[cfg(any(feature = "broker", feature = "bpf"))]
    pub(crate) fn registrar(self, registrar: impl PortRegistrar + 'static) -> Self {
        let ports = match &self.ports {
            PortSource::Own => KernelPorts::default(),
            PortSource::Kernel(ports) => ports.clone(),
        };
        self.ports(PortSource::Kernel(ports.with_registrar(Some(Arc::new(registrar)))))
    }

    /// Works on addresses that the kernel of the same machine has too, and perhaps other processes: those of `host`, which are followed when they change,
    /// instead of [addresses](StackBuilder::address) of its own. The kernel says which [ports](StackBuilder::ports) are free, unless that is said otherwise. It
    /// also chooses the address from which a remote one is reached.
    ///
    /// Packets for these ports must come to the device, and no others: a broker or the kernel's routing rules see to that. The host is to be
    /// started in the network namespace whose addresses it shares.
    pub fn shared(mut self, host: impl HostView + 'static) -> Self {
        self.sharing = Some(Sharing::new(host));
        if matches!(self.ports, PortSource::Own) {
            self.ports = PortSource::Kernel(KernelPorts::default());
        }
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
        let word: DeviceWord = word.parse().map_err(invalid_input)?;
        let prefixes = self.config.addresses.iter();
        let prefixes = prefixes.filter_map(|(address, length)| IpPrefix::new(*address, *length));
        let usual = crate::open_options();
        let queues = self.shards.unwrap_or(usual.queues);
        let options = usual.with_addresses(prefixes.collect()).with_queues(queues);
        let (builder, device) = self.on(open(&word, &options)?)?;
        builder.start(device)
    }

    /// Prepares for a device that is open: with the addresses that go with it, or, on a device of a broker's, with all that the lease says. Returns the
    /// device, on which the host is to be started.
    ///
    /// # Errors
    /// The operating system's for threads; [`io::ErrorKind::Unsupported`] for a lease that is not known here.
    pub fn on(mut self, opened: Opened) -> io::Result<(StackBuilder, Box<dyn Device>)> {
        let Opened { device, addresses, lease, .. } = opened;
        #[cfg(feature = "bpf")]
        let lease = match lease.map(|lease| lease.downcast()).transpose() {
            Ok(None) => None,
            Ok(Some(address)) => return Ok((self.on_kernel_address(*address)?, device)),
            Err(lease) => Some(lease),
        };
        if let Some(lease) = lease {
            return Ok((self.with_any_lease(lease)?, device));
        }
        let addresses = addresses.iter().map(|prefix| (prefix.address(), prefix.prefix_len()));
        self.config.addresses = addresses.collect();
        Ok((self, device))
    }

    #[cfg(not(feature = "broker"))]
    fn with_any_lease(self, _: Box<dyn std::any::Any + Send>) -> io::Result<StackBuilder> {
        let why = "this program has no client of the broker";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Starts the host on `device`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] with the reason if the configuration does not make sense, or the device has fewer queues than there are to be
    /// shards; and the operating system's errors for descriptors, threads and randomness.
    pub fn start(self, mut device: impl Device + 'static) -> io::Result<Stack> {
        let mut queues = device.take_queues();
        queues.insert(0, Box::new(device));
        let shards = self.shards.unwrap_or(queues.len());
        if shards == 0 || shards > queues.len() {
            let queues = queues.len();
            let why = format!("the device has {queues} queues, and {shards} shards need one each");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        // A queue that nobody reads would swallow its packets.
        queues.truncate(shards);
        self.start_on(queues)
    }

    /// Starts the host with a shard for each of several devices, which have one network behind them. Packets of one connection must arrive at one device,
    /// but for few: those are handed over.
    ///
    /// # Errors
    /// As [`StackBuilder::start`].
    pub fn start_on(self, devices: Vec<Box<dyn Device>>) -> io::Result<Stack> {
        if self.config.every_address && !matches!(self.ports, PortSource::Own) {
            let why = "a host that has every address chooses its ports itself: the kernel has \
                       other addresses";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let secret = match self.secret {
            Some(secret) => secret,
            None => random_secret()?,
        };
        let count = u32::try_from(devices.len()).unwrap_or(u32::MAX);
        let clock = Clock::start();
        let ports = match &self.ports {
            PortSource::Own => None,
            PortSource::Kernel(source) => Some(Ports::new(source.clone())),
        };
        let limits = devices.iter().map(|device| mtu_of(&**device));
        let limit = limits.min().unwrap_or(65_535);
        let known = self.sharing.as_ref().map(|sharing| sharing.interface(limit)).transpose()?;
        let budget = Arc::new(Budget::new(self.extension_time));
        let totals = Arc::new(HostTotals::new(count));
        let mut runtimes = Vec::new();
        for (index, device) in (0..).zip(devices) {
            let mut config = self.config(&*device, Shard { index, count }, secret, &budget);
            config.totals = Some(Arc::clone(&totals));
            if let Some(Interface { mtu, addresses, address_mtus }) = known.clone() {
                config = config
                    .with_shared(true)
                    .with_mtu(mtu)
                    .with_addresses(addresses)
                    .with_address_mtus(address_mtus);
            }
            let host = Host::new(config, clock.now())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let inner = Inner::new(host, device, clock, ports.clone());
            let started = Runtime::start(inner, clock, self.busy_poll);
            match started {
                Ok(runtime) => runtimes.push(runtime),
                Err(error) => {
                    runtimes.iter().for_each(|runtime: &Arc<Runtime>| runtime.stop());
                    return Err(error);
                }
            }
        }
        if runtimes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a host needs a device"));
        }
        Runtime::join(&runtimes);
        let mut host = Family { runtimes: runtimes.clone(), ports, follower: None };
        if let (Some(sharing), Some(known)) = (self.sharing, known) {
            host.follower = Some(Follower::start(sharing, runtimes.clone(), limit, known)?);
        }
        let host = Arc::new(host);
        let files = FileMemory::default();
        let shard = |runtime| {
            let (budget, files, host) = (budget.clone(), files.clone(), host.clone());
            Arc::new(Shared { runtime, budget, files, host })
        };
        Ok(Stack { shards: runtimes.into_iter().map(shard).collect(), turn: Arc::default() })
    }

    /// The configuration of one shard.
    fn config(
        &self,
        device: &dyn Device,
        shard: Shard,
        secret: [u8; 16],
        budget: &Arc<Budget>,
    ) -> StackConfig {
        let capabilities = device.capabilities();
        let ports = match self.ports {
            PortSource::Own => transom_stack::PortSource::Own,
            PortSource::Kernel(_) => transom_stack::PortSource::Caller,
        };
        let offload = Offload::default()
            .with_tx_checksum(capabilities.tx_checksum)
            .with_segmentation(capabilities.segmentation);
        let config = self.config.clone().with_shard(shard).with_ports(ports).with_secret(secret);
        config
            .with_mtu(mtu_of(device))
            .with_offload(offload)
            .with_profile(Arc::new(guarded(self.profile.clone(), budget)))
            .with_memory(self.memory.unwrap_or_else(memory_of_the_machine))
    }
}

fn mtu_of(device: &dyn Device) -> u32 {
    u32::try_from(device.capabilities().mtu).unwrap_or(65_535).min(65_535)
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

/// A text that cannot be read.
fn invalid_input(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
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
