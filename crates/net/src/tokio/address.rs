//! Names of hosts, as Tokio's functions take them.

use super::blocking::blocking;
use std::future::{Future, ready};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::pin::Pin;

/// Addresses that may take their time.
type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Addresses, or a name that the system resolves. It has the implementations of `tokio::net::ToSocketAddrs`.
///
/// An address is taken as it is. A name such as `"localhost:80"` is looked up by the system in a thread of its own, so that no task waits.
pub trait ToSocketAddrs: sealed::Sealed {}

impl<T: sealed::Sealed + ?Sized> ToSocketAddrs for T {}

mod sealed {
    pub trait Sealed {
        fn resolve(&self) -> super::Lookup;
    }
}

use sealed::Sealed;

fn known(addresses: Vec<SocketAddr>) -> Lookup {
    Box::pin(ready(Ok(addresses)))
}

/// Looks a name up as `std` does.
fn look_up<T>(name: T) -> Lookup
where
    T: std::net::ToSocketAddrs<Iter = std::vec::IntoIter<SocketAddr>> + Send + 'static,
{
    Box::pin(async move { blocking(move || name.to_socket_addrs().map(Iterator::collect)).await? })
}

macro_rules! one_address {
    ($($kind:ty,)*) => {$(
        impl Sealed for $kind {
            fn resolve(&self) -> Lookup {
                known(vec![(*self).into()])
            }
        }
    )*};
}

one_address! {
    SocketAddr, SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16),
}

impl Sealed for [SocketAddr] {
    fn resolve(&self) -> Lookup {
        known(self.to_vec())
    }
}

impl Sealed for str {
    fn resolve(&self) -> Lookup {
        match self.parse() {
            Ok(address) => known(vec![address]),
            Err(_) => look_up(self.to_owned()),
        }
    }
}

impl Sealed for (&str, u16) {
    fn resolve(&self) -> Lookup {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(host) => known(vec![(host, port).into()]),
            Err(_) => look_up((host.to_owned(), port)),
        }
    }
}

impl Sealed for (String, u16) {
    fn resolve(&self) -> Lookup {
        (self.0.as_str(), self.1).resolve()
    }
}

impl Sealed for String {
    fn resolve(&self) -> Lookup {
        self.as_str().resolve()
    }
}

impl<T: Sealed + ?Sized> Sealed for &T {
    fn resolve(&self) -> Lookup {
        (**self).resolve()
    }
}

/// Tries each address of `addr` in turn, and gives the first success or the last failure.
pub(super) async fn each_address<T, F: Future<Output = io::Result<T>>>(
    addr: impl ToSocketAddrs,
    mut attempt: impl FnMut(SocketAddr) -> F,
) -> io::Result<T> {
    let mut last = None;
    for addr in addr.resolve().await? {
        match attempt(addr).await {
            Ok(value) => return Ok(value),
            Err(error) => last = Some(error),
        }
    }
    let nowhere =
        || io::Error::new(io::ErrorKind::InvalidInput, "could not resolve to any addresses");
    Err(last.unwrap_or_else(nowhere))
}
