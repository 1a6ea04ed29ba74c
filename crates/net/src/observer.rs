//! Observers: a thread of the program that watches a connection, waits for what happens to it, and narrows what it does, from outside.
//!
//! An [`Observer`] is the handle of a layer of the connection ([`transom_tcp::extension`]). The layer is woken like every other one and puts its view
//! into a mailbox. The handle waits at the mailbox and puts its requests there. So the observer never delays the flow: the mailbox holds one view and
//! some counters, and is locked for moments only. The user-level libraries of icTCP work in this way (Gunawi et al., OSDI 2004). As with them, an
//! observer can be late.
//!
//! # What is missed
//!
//! Events are counted for each kind ([`Wake`]). [`Observer::wait`] names kinds. It returns as soon as one of them has happened since its last report,
//! and reports how often each has. All but the last of the events that it reports together are *missed* wake-ups: the observer has not seen their
//! views. An observer that returns in time for every event misses none, even if it was not waiting at that moment. The miss rate of the paper's
//! section 5.3 is [`Totals::missed`] over [`Totals::happened`]. An event of several kinds counts once for each.
//!
//! ```no_run
//! # fn example(stream: &transom_net::TcpStream) -> Result<(), Box<dyn std::error::Error>> {
//! use transom_tcp::extension::{Value, Wake};
//!
//! let observer = stream.observer(Wake::ROUND)?;
//! while let Some(notice) = observer.wait(Wake::ROUND, None)? {
//!     let info = notice.snapshot.info;
//!     println!("cwnd {} srtt {:?}, {} rounds missed", info.cwnd, info.srtt, notice.missed);
//!     observer.limits(|limits| limits.at_most(Value::Cwnd(20 * u64::from(info.mss))))?;
//! }
//! # Ok(())
//! # }
//! ```

mod mailbox;
mod snapshot;

pub use mailbox::{Counts, Notice, Totals};
pub use snapshot::Snapshot;

use crate::engine::Inner;
use crate::stack::Shared;
use mailbox::Layer;
pub(crate) use mailbox::Mailbox;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use transom_stack::ConnectionId;
use transom_tcp::Connection;
use transom_tcp::extension::{AttachError, Capabilities, Fault, LayerId, Limits, Wake};
use transom_tcp::time::Instant;

/// The configuration of an observer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObserverOptions {
    /// The name by which reports call its layer.
    pub name: String,
    /// The kinds of events that it receives.
    pub wake: Wake,
    /// The lists in its snapshots: [`Capabilities::ACK_LIST`] and [`Capabilities::MESSAGE_LIST`]. The connection must have all other capabilities
    /// that are named here.
    pub requires: Capabilities,
}

transom_tcp::setters! {
    ObserverOptions:
    with_name = name: String,
    with_wake = wake: Wake,
    with_requires = requires: Capabilities,
}

impl Default for ObserverOptions {
    /// Named "observer", with every kind of event, without lists.
    fn default() -> Self {
        let (wake, requires) = (Wake::all(), Capabilities::empty());
        ObserverOptions { name: "observer".into(), wake, requires }
    }
}

impl From<Wake> for ObserverOptions {
    fn from(wake: Wake) -> Self {
        ObserverOptions { wake, ..ObserverOptions::default() }
    }
}

/// There is nothing to be observed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed, or its observer was detached")]
pub struct ObservationEnded;

/// A connection to which observers can be attached, from any thread. It keeps neither the connection open nor the host alive.
#[derive(Clone, Debug)]
pub struct Observable {
    shared: Weak<Shared>,
    connection: ConnectionId,
}

impl Observable {
    pub(crate) fn new(shared: &Arc<Shared>, connection: ConnectionId) -> Self {
        Observable { shared: Arc::downgrade(shared), connection }
    }

    /// Whether there is still a connection.
    pub fn exists(&self) -> bool {
        self.shared.upgrade().is_some_and(|shared| {
            shared.runtime.with(|inner, _| inner.host.connection(self.connection).is_some())
        })
    }

    /// Attaches an observer.
    ///
    /// # Errors
    /// As [`TcpStream::observer`](crate::TcpStream::observer).
    pub fn observer(&self, options: ObserverOptions) -> io::Result<Observer> {
        let shared = self.shared.upgrade().ok_or(io::ErrorKind::NotConnected)?;
        Observer::attach(&shared, self.connection, options)
    }
}

/// A layer of a connection that any thread can use. It keeps the host alive, but not the connection open. Dropping it detaches its layer and cancels
/// its requests.
#[derive(Debug)]
pub struct Observer {
    shared: Arc<Shared>,
    connection: ConnectionId,
    layer: LayerId,
    mailbox: Arc<Mailbox>,
}

impl Observer {
    pub(crate) fn attach(
        shared: &Arc<Shared>,
        connection: ConnectionId,
        options: ObserverOptions,
    ) -> io::Result<Observer> {
        let mailbox = Arc::new(Mailbox::default());
        let layer = Box::new(Layer::new(options, Arc::clone(&mailbox)));
        let layer = shared.runtime.with(|inner, now| {
            let attach = |connection: &mut Connection| connection.attach(now, layer);
            let attached = inner.host.with_connection(connection, now, attach);
            let attached = attached.unwrap_or(Err(AttachError::NotEstablished));
            if attached.is_ok() {
                inner.observe(connection, &mailbox);
            }
            attached
        });
        match layer {
            Ok(layer) => Ok(Observer { shared: Arc::clone(shared), connection, layer, mailbox }),
            Err(error @ AttachError::NotEstablished) => {
                Err(io::Error::new(io::ErrorKind::NotConnected, error))
            }
            Err(error) => Err(io::Error::new(io::ErrorKind::InvalidInput, error)),
        }
    }

    /// Waits until one of `wake` has happened that was not reported yet, at most for `timeout`, which may be zero. Reports all such events; `None` if there are
    /// none by then. Only the kinds in the observer's options are ever reported. For one thread at a time: each event is reported once.
    ///
    /// # Errors
    /// [`ObservationEnded`] when every event was reported and no more will come.
    pub fn wait(
        &self,
        wake: Wake,
        timeout: Option<Duration>,
    ) -> Result<Option<Notice>, ObservationEnded> {
        self.mailbox.wait(wake, timeout)
    }

    /// The present state of the connection. This does not count as an event.
    ///
    /// # Errors
    /// When it is over.
    pub fn snapshot(&self) -> Result<Snapshot, ObservationEnded> {
        let look = self.shared.runtime.with(|inner, now| {
            self.mailbox.expect_look();
            let wake = |connection: &mut Connection| connection.wake_layer(now, self.layer);
            // With the connection gone nobody answers.
            let _ = inner.host.with_connection(self.connection, now, wake);
            self.mailbox.take_look()
        });
        look.ok_or(ObservationEnded)
    }

    /// Changes the layer's requests at once. `change` gets the limits as it left them; times are those of [`Observer::now`]. It may use the
    /// connection and any observer. While it runs, the earlier requests hold. If several calls change the limits at the same time, the last one
    /// counts, for each variable separately.
    ///
    /// # Errors
    /// When it is over. An interval that ends before it begins ends it.
    pub fn limits(&self, change: impl FnOnce(&mut Limits)) -> Result<(), ObservationEnded> {
        self.mailbox.change(change)?;
        self.wake();
        Ok(())
    }

    /// Has the layer detached for a fault, which the connection reports ([`poll_departure`](transom_tcp::Connection::poll_departure)).
    pub fn fail(&self, fault: Fault) {
        self.mailbox.fail(fault);
        self.wake();
    }

    /// Detaches the layer and cancels its requests.
    pub fn detach(&self) {
        self.with(|connection, now| connection.detach(now, self.layer).is_some());
    }

    /// The time of the connection's clock.
    pub fn now(&self) -> Instant {
        self.shared.runtime.now()
    }

    /// The number of events and of missed ones since the observer was made.
    pub fn totals(&self) -> Totals {
        self.mailbox.totals()
    }

    /// Which layer of the connection it is.
    pub fn layer(&self) -> LayerId {
        self.layer
    }

    /// Has the layer called, so that it takes what is in the mailbox.
    fn wake(&self) {
        self.with(|connection, now| connection.wake_layer(now, self.layer));
    }

    fn with(&self, call: impl FnOnce(&mut Connection, Instant) -> bool) {
        self.shared.runtime.with(|inner, now| {
            // With the connection gone there is nothing to be done.
            let _ = inner
                .host
                .with_connection(self.connection, now, |connection| call(connection, now));
        });
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.detach();
    }
}

impl Inner {
    /// Notifies `mailbox` when the connection is closed.
    fn observe(&mut self, connection: ConnectionId, mailbox: &Arc<Mailbox>) {
        // Nobody reports the end of a connection that has no stream any more, so such entries are removed now and then.
        if self.observers.len() == self.observers.capacity() {
            let is_there = |observer: &Weak<Mailbox>| observer.strong_count() > 0;
            self.observers.retain(|_, observers| observers.iter().any(is_there));
        }
        let observers = self.observers.entry(connection).or_default();
        observers.retain(|observer| observer.strong_count() > 0);
        observers.push(Arc::downgrade(mailbox));
    }

    /// The connection is closed. Extensions are not called, but waiting observers must know.
    pub(crate) fn end_observers(&mut self, connection: ConnectionId) {
        let observers = self.observers.remove(&connection).unwrap_or_default();
        observers.iter().filter_map(Weak::upgrade).for_each(|mailbox| mailbox.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use transom_device::memory::{MemoryConfig, pair};

    /// Of connections that were observed when their streams were gone nothing stays behind.
    #[test]
    fn observers_of_connections_without_streams_are_forgotten() {
        let (a, b) = pair(&MemoryConfig::default()).unwrap();
        let host = |number: u8, device| {
            Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
        };
        let (a, b) = (host(1, a), host(2, b));
        let listener = b.listen("10.0.0.2:0").unwrap();
        let mut peers = Vec::new();
        for _ in 0..30 {
            let stream = a.connect(listener.local_addr().unwrap()).unwrap();
            // As long as the peer does not close, there is a connection.
            peers.push(listener.accept().unwrap().0);
            let observable = stream.observable();
            drop(stream);
            drop(observable.observer(ObserverOptions::default()).unwrap());
        }
        for peer in &peers {
            peer.set_linger(Some(Duration::ZERO)).unwrap();
        }
        drop(peers);
        // The smallest table there is has three or so places.
        assert!(a.first().runtime.lock().observers.len() < 10);
    }
}
