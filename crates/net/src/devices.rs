//! Hosts on devices that are named by a word.

use crate::stack::{Stack, StackBuilder};
use std::io;
use transom_device::interface::IpPrefix;
use transom_device::open::{OpenError, OpenOptions, Opened, Reason, open};
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
    /// [`io::ErrorKind::InvalidInput`] for a text that is no such word, and otherwise what is wrong with the device
    /// ([`OpenError`]) or as [`StackBuilder::start`].
    pub fn device(self, word: &str) -> io::Result<Stack> {
        let word: DeviceWord =
            word.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let (builder, opened) = self.open(&word, &OpenOptions::default())?;
        builder.start(opened.device)
    }

    /// Opens a device with options, and prepares the host for it: start the builder that this returns on the device, or on one that wraps it. The
    /// addresses are those of the builder and of the options; without any, those that the device gives. `shared` gives them with the lease.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(
        mut self,
        word: &DeviceWord,
        options: &OpenOptions,
    ) -> Result<(StackBuilder, Opened), OpenError> {
        let own = self.addresses.iter();
        let own = own.filter_map(|(address, length)| IpPrefix::new(*address, *length));
        let addresses = own.chain(options.addresses.iter().copied()).collect();
        let options = OpenOptions { addresses, ..options.clone() };
        if let DeviceWord::Shared { .. } = word {
            return self.open_shared(word, &options);
        }
        let opened = open(word, &options)?;
        self.addresses.clear();
        let with_address = |builder: StackBuilder, prefix: &IpPrefix| {
            builder.address(prefix.address(), prefix.prefix_len())
        };
        Ok((opened.addresses.iter().fold(self, with_address), opened))
    }

    /// Asks the broker for a device on the host's own addresses.
    #[cfg(feature = "broker")]
    fn open_shared(
        self,
        word: &DeviceWord,
        options: &OpenOptions,
    ) -> Result<(StackBuilder, Opened), OpenError> {
        use transom_broker::client::{Lease, default_path};
        let failed = |reason| OpenError::new(word.clone(), reason);
        let path = match word {
            DeviceWord::Shared { socket: Some(path) } => path.clone(),
            _ => default_path(),
        };
        if let Some(own) = options.addresses.first() {
            return Err(failed(Reason::AddressIsGiven(*own)));
        }
        if options.mtu.is_some() {
            return Err(failed(Reason::MtuIsFixed));
        }
        let refused =
            |error: Box<dyn std::error::Error + Send + Sync>| failed(Reason::Broker(error));
        let lease = Lease::connect(path).map_err(|error| refused(error.into()))?;
        let place = format!("{}, the machine's own addresses", lease.opened().device);
        let addresses = &lease.opened().host.addresses;
        let addresses = addresses.iter().filter_map(|own| IpPrefix::new(own.address, own.prefix));
        let addresses = addresses.collect();
        let (builder, tun) = self.leased(lease).map_err(|error| refused(error.into()))?;
        Ok((builder, Opened { device: Box::new(tun), addresses, place }))
    }

    #[cfg(not(feature = "broker"))]
    fn open_shared(
        self,
        word: &DeviceWord,
        _: &OpenOptions,
    ) -> Result<(StackBuilder, Opened), OpenError> {
        Err(OpenError::new(word.clone(), Reason::NoBroker))
    }
}
