//! Stacks: opened by the word of a device, and driven for the calls of programs.

use crate::error::{errno_with_message, set_message};
use crate::signals;
use crate::watch::Watch;
use libc::{EINVAL, POLLOUT};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_device::interface::IpPrefix;
use transom_live::StatusSocket;
use transom_net::{HeldPort, HostEvent, HostWait, RawHost, Stack};
use transom_sockets::{Awaited, Drive, Errno, Port, Result, Sockets, Table, Waited};
use transom_stack::Stack as Host;
use transom_stack::mapped::Bound;
use transom_tcp::compose::compose;
use transom_tcp::time::{Duration, Instant};

/// A running stack with its sockets.
pub(crate) struct OpenStack {
    pub(crate) raw: RawHost,
    pub(crate) tables: Arc<SocketTables>,
    /// Where `transom top` asks for its connections, if the environment asks for that.
    status: Mutex<Option<StatusSocket>>,
}

/// The tables of a stack's sockets. Their locks are taken in this order, and after the host's.
pub(crate) struct SocketTables {
    watch: Mutex<Watch>,
    table: Mutex<Table>,
    /// Whether the host reports its events.
    pub(crate) watched: AtomicBool,
}

/// The settings with which a stack is opened, as text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StackSettings<'a> {
    pub(crate) device: &'a str,
    /// Addresses with their prefixes, separated by commas or spaces.
    pub(crate) addresses: &'a str,
    /// The units of TCP.
    pub(crate) tcp: &'a str,
}

impl OpenStack {
    /// Opens the device and starts a stack on it.
    pub(crate) fn open(settings: StackSettings<'_>) -> Result<Arc<OpenStack>> {
        let invalid = |message: String| {
            set_message(message);
            Errno(EINVAL)
        };
        let profile = compose(settings.tcp).map_err(|error| invalid(format!("tcp: {error}")))?;
        profile.carries_a_stream().map_err(|error| invalid(format!("tcp: {error}")))?;
        // Calls that wait want the stack's one lock; several cores are for several stacks.
        let mut builder = Stack::builder().profile(profile).shards(1);
        for prefix_text in
            settings.addresses.split([',', ' ']).filter(|prefix_text| !prefix_text.is_empty())
        {
            let prefix = parse_prefix(prefix_text).ok_or_else(|| {
                invalid(format!("`{prefix_text}` is no address, such as 192.0.2.1/24"))
            })?;
            builder = builder.address(prefix.address(), prefix.prefix_len());
        }
        let stack = signals::with_signals_blocked(|| builder.device(settings.device))
            .map_err(errno_with_message)?;
        let status = StatusSocket::is_asked_for().then(|| open_status_socket(&stack)).flatten();
        let raw = RawHost::new(stack).ok_or(Errno(EINVAL))?;
        let watch = Watch::new().map_err(errno_with_message)?;
        let tables = SocketTables {
            watch: Mutex::new(watch),
            table: Mutex::default(),
            watched: AtomicBool::new(false),
        };
        Ok(Arc::new(OpenStack { raw, tables: Arc::new(tables), status: Mutex::new(status) }))
    }

    /// Shows its connections to nobody any more.
    pub(crate) fn hide(&self) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl SocketTables {
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A socket's readiness, in poll's flags. If it is not writable, the stack will report when it is.
    pub(crate) fn readiness(&self, host: &mut Host, now: Instant, key: i32) -> i16 {
        self.sockets(host, now, |sockets| {
            let ready = sockets.readiness(key);
            if ready & POLLOUT == 0 {
                sockets.await_room(key);
            }
            ready
        })
    }

    /// The sockets, while the host is lent.
    pub(crate) fn sockets<T>(
        &self,
        host: &mut Host,
        now: Instant,
        call: impl FnOnce(&mut Sockets<'_>) -> T,
    ) -> T {
        // The runtime sends what is due when the call is over.
        let mut nothing = |_: &mut Host| ();
        call(&mut Sockets::new(host, &mut self.table(), now, &mut nothing))
    }
}

/// Shows the connections to this user. That it cannot is no reason not to start.
fn open_status_socket(stack: &Stack) -> Option<StatusSocket> {
    let opened = signals::with_signals_blocked(|| StatusSocket::open(stack));
    opened
        .map_err(|error| {
            set_message(format!("cannot show the connections (TRANSOM_STATUS): {error}"))
        })
        .ok()
}

/// An address with the length of its prefix, or alone.
fn parse_prefix(text: &str) -> Option<IpPrefix> {
    let alone = |at: IpAddr| IpPrefix::new(at, if at.is_ipv4() { 32 } else { 128 });
    text.parse().ok().or_else(|| alone(text.parse().ok()?))
}

/// A stack at work for one call.
#[derive(Clone, Copy)]
pub(crate) struct DrivenStack<'a>(pub(crate) &'a OpenStack);

fn event(awaited: Awaited) -> HostEvent {
    match awaited {
        Awaited::Readable(id) => HostEvent::Readable(id),
        Awaited::Writable(id) => HostEvent::Writable(id),
        Awaited::Acceptable(id) => HostEvent::Acceptable(id),
    }
}

fn port(held: Option<HeldPort>) -> Option<Port> {
    held.map(|held| Port { address: held.address, reservation: Box::new(held) })
}

impl Drive for DrivenStack<'_> {
    fn with<T>(&mut self, call: impl FnOnce(&mut Sockets<'_>) -> T) -> T {
        self.0.raw.with(|host, now| self.0.tables.sockets(host, now, call))
    }

    fn attempt<T>(&mut self, mut attempt: impl FnMut(&mut Sockets<'_>) -> Option<T>) -> Waited<T> {
        let attempt = |host: &mut Host, now| self.0.tables.sockets(host, now, &mut attempt);
        match self.0.raw.attempt(attempt) {
            Ok(Some(value)) => Waited::Done(value),
            Ok(None) => Waited::TimedOut,
            Err(error) => Waited::Failed(error.into()),
        }
    }

    fn wait<T>(
        &mut self,
        awaited: Awaited,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut Sockets<'_>) -> Option<T>,
    ) -> Waited<T> {
        loop {
            let attempt = |host: &mut Host, now| self.0.tables.sockets(host, now, &mut attempt);
            match self.0.raw.wait(event(awaited), timeout, attempt) {
                HostWait::Done(value) => return Waited::Done(value),
                HostWait::TimedOut => return Waited::TimedOut,
                HostWait::Failed(error) => return Waited::Failed(error.into()),
                // As on Linux a call with a timeout is never restarted.
                HostWait::Interrupted
                    if timeout.is_some() || signals::any_handler_without_restart() =>
                {
                    return Waited::Interrupted;
                }
                HostWait::Interrupted => {}
            }
        }
    }

    fn wake(&mut self, awaited: Awaited) {
        self.0.raw.wake(event(awaited));
    }

    fn reserve(&mut self, bound: &Bound) -> Result<Option<Port>> {
        Ok(port(self.0.raw.reserve(bound)?))
    }

    fn reserve_towards(
        &mut self,
        remote: IpAddr,
        bound: Option<SocketAddr>,
    ) -> Result<Option<Port>> {
        Ok(port(self.0.raw.reserve_towards(remote, bound)?))
    }
}
