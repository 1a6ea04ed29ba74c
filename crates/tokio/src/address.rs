//! Names of hosts, as Tokio's functions take them.

use crate::blocking::blocking;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::pin::Pin;

/// A lookup that may take its time.
type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Addresses, or a name that the system resolves. It has the implementations of `tokio::net::ToSocketAddrs`.
///
/// An address is taken as it is. A name such as `"localhost:80"` is looked up by the system in a thread of its own, so that no task waits.
pub trait ToSocketAddrs: sealed::Sealed {}

mod sealed {
    use super::{Lookup, SocketAddr, io};

    pub trait Sealed {
        /// The addresses, at once or later.
        fn resolve(&self) -> Resolved;
    }

    pub enum Resolved {
        Now(Vec<SocketAddr>),
        Later(io::Result<Lookup>),
    }
}

use sealed::{Resolved, Sealed};

/// All addresses that `addr` stands for.
pub(crate) async fn resolve(addr: &impl ToSocketAddrs) -> io::Result<Vec<SocketAddr>> {
    match addr.resolve() {
        Resolved::Now(addresses) => Ok(addresses),
        Resolved::Later(lookup) => lookup?.await,
    }
}

/// Looks a name up as `std` does.
fn look_up<T>(name: T) -> Resolved
where
    T: std::net::ToSocketAddrs<Iter = std::vec::IntoIter<SocketAddr>> + Send + 'static,
{
    let lookup = blocking(move || name.to_socket_addrs().map(Iterator::collect));
    Resolved::Later(lookup.map(|lookup| Box::pin(lookup) as Lookup))
}

macro_rules! addresses {
    ($($type:ty: $one:expr;)*) => {$(
        impl ToSocketAddrs for $type {}

        impl Sealed for $type {
            fn resolve(&self) -> Resolved {
                let one: fn(&$type) -> SocketAddr = $one;
                Resolved::Now(vec![one(self)])
            }
        }
    )*};
}

addresses! {
    SocketAddr: |addr| *addr;
    SocketAddrV4: |addr| (*addr).into();
    SocketAddrV6: |addr| (*addr).into();
    (IpAddr, u16): |addr| (*addr).into();
    (Ipv4Addr, u16): |addr| (*addr).into();
    (Ipv6Addr, u16): |addr| (*addr).into();
}

impl ToSocketAddrs for [SocketAddr] {}

impl Sealed for [SocketAddr] {
    fn resolve(&self) -> Resolved {
        Resolved::Now(self.to_vec())
    }
}

impl ToSocketAddrs for str {}

impl Sealed for str {
    fn resolve(&self) -> Resolved {
        match self.parse() {
            Ok(addr) => Resolved::Now(vec![addr]),
            Err(_) => look_up(self.to_owned()),
        }
    }
}

impl ToSocketAddrs for (&str, u16) {}

impl Sealed for (&str, u16) {
    fn resolve(&self) -> Resolved {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(host) => Resolved::Now(vec![(host, port).into()]),
            Err(_) => look_up((host.to_owned(), port)),
        }
    }
}

impl ToSocketAddrs for (String, u16) {}

impl Sealed for (String, u16) {
    fn resolve(&self) -> Resolved {
        (self.0.as_str(), self.1).resolve()
    }
}

impl ToSocketAddrs for String {}

impl Sealed for String {
    fn resolve(&self) -> Resolved {
        self.as_str().resolve()
    }
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {}

impl<T: Sealed + ?Sized> Sealed for &T {
    fn resolve(&self) -> Resolved {
        (**self).resolve()
    }
}

/// Tries each address of `addr` in turn, and gives the first success or the last failure.
pub(crate) async fn each_address<T, F: Future<Output = io::Result<T>>>(
    addr: impl ToSocketAddrs,
    mut attempt: impl FnMut(SocketAddr) -> F,
) -> io::Result<T> {
    let mut last = None;
    for addr in resolve(&addr).await? {
        match attempt(addr).await {
            Ok(value) => return Ok(value),
            Err(error) => last = Some(error),
        }
    }
    let nowhere =
        || io::Error::new(io::ErrorKind::InvalidInput, "could not resolve to any addresses");
    Err(last.unwrap_or_else(nowhere))
}
