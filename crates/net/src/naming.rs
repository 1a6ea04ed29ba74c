//! Hosts on devices that one word names.

use crate::stack::{Stack, StackBuilder};
use std::io;
use std::path::Path;
use transom_device::interface::IpPrefix;
use transom_device::open::{OpenError, OpenOptions, Opened, open};
use transom_device::word::DeviceWord;

impl StackBuilder {
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
    /// [`io::ErrorKind::InvalidInput`] for a text that is no such word. Otherwise the device's failure ([`OpenError`]), or as
    /// [`StackBuilder::start`].
    pub fn device(self, word: &str) -> io::Result<Stack> {
        let word: DeviceWord =
            word.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let prefixes = self.own_addresses();
        let prefixes =
            prefixes.iter().filter_map(|&(address, length)| IpPrefix::new(address, length));
        let options = OpenOptions { addresses: prefixes.collect(), ..open_options() };
        let (builder, opened) = self.open(&word, &options)?;
        builder.start(opened.device)
    }

    /// Opens the device that `word` names, and returns it with a builder that has the addresses of the device. The caller may put
    /// something around the device, and then [starts](StackBuilder::start) the host on it.
    ///
    /// # Errors
    /// [`OpenError`], with the reason and what would work.
    pub fn open(
        self,
        word: &DeviceWord,
        options: &OpenOptions,
    ) -> Result<(StackBuilder, Opened), OpenError> {
        #[cfg(feature = "broker")]
        if let DeviceWord::Shared { socket } = word {
            return self.open_leased(word, socket.as_deref());
        }
        let opened = open(word, options)?;
        let builder = self.without_addresses();
        let builder = opened.addresses.iter().fold(builder, |builder, prefix| {
            builder.address(prefix.address(), prefix.prefix_len())
        });
        Ok((builder, opened))
    }

    #[cfg(feature = "broker")]
    fn open_leased(
        self,
        word: &DeviceWord,
        socket: Option<&Path>,
    ) -> Result<(StackBuilder, Opened), OpenError> {
        let socket = socket.map_or_else(transom_broker::client::default_path, Path::to_owned);
        let attempt = || {
            let lease = transom_broker::client::Lease::connect(&socket)?;
            let addresses = addresses_of(&lease);
            let (builder, tun) = self.without_addresses().leased(lease)?;
            let place = format!("the machine's own address, by the broker's device {}", tun.name());
            Ok::<_, io::Error>((builder, Opened { device: Box::new(tun), addresses, place }))
        };
        attempt().map_err(|source| OpenError::of_broker(word.clone(), socket.clone(), source))
    }
}

/// The addresses that the broker lends ports of; link-local ones mean nothing without their interface.
#[cfg(feature = "broker")]
fn addresses_of(lease: &transom_broker::client::Lease) -> Vec<IpPrefix> {
    let addresses = lease.opened().host.addresses.iter();
    let link_local =
        |address| matches!(address, std::net::IpAddr::V6(v6) if v6.is_unicast_link_local());
    let usable = addresses.filter(|found| !link_local(found.address));
    usable.filter_map(|found| IpPrefix::new(found.address, found.prefix)).collect()
}

/// The options with which a word's device is opened. They have the client of the broker, which the crate of devices does not know.
pub fn open_options() -> OpenOptions {
    OpenOptions { shared: SHARED, ..OpenOptions::default() }
}

#[cfg(not(feature = "broker"))]
const SHARED: Option<transom_device::open::OpenShared> = None;
#[cfg(feature = "broker")]
const SHARED: Option<transom_device::open::OpenShared> = Some(open_alone);

/// Asks the broker for a device. No port is registered, so no packet comes: this shows whether a broker is there.
#[cfg(feature = "broker")]
fn open_alone(socket: &Path, _: &OpenOptions) -> io::Result<Opened> {
    let lease = transom_broker::client::Lease::connect(socket)?;
    let addresses = addresses_of(&lease);
    let (_, tun) = Stack::builder().leased(lease)?;
    let place = format!("a device, {}", tun.name());
    Ok(Opened { device: Box::new(tun), addresses, place })
}
