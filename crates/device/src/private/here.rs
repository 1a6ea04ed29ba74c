//! A private network that this process makes itself.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use netlink_packet_route::AddressFamily;

use super::device::{Carrier, Parts};
use super::error::{PrivateError, paths_error};
use super::parameters::Parameters;
use super::paths::{self, Paths};
use super::settings::{InterfaceKind, PrivateSettings};
use super::wire::Wire;
use crate::diag::{Destroyed, Diag};
use crate::interface::IpPrefix;
use crate::namespace::Namespace;
use crate::tun::{Tun, TunError};

/// So long is waited for the kernel to take in packets to a new address. When it takes longer, the worst is that the first of them are lost.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(2);

/// Its namespace, and the sockets by which it is changed.
#[derive(Debug)]
pub(super) struct Here {
    pub(super) namespace: Namespace,
    paths: Paths,
    name: String,
    diag: Option<Diag>,
}

/// A change to a private network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// One more of the [`addresses`](PrivateSettings::addresses), which the host has got.
    AddAddress(IpPrefix),
    /// The host has lost this address. Connections that use it go on until they end.
    RemoveAddress(IpPrefix),
    /// One more of the [`bindable`](PrivateSettings::bindable) addresses.
    AddBindable(IpPrefix),
    /// The host has lost such an address. Connections that use it go on until they end.
    RemoveBindable(IpPrefix),
    /// One more of the [`routes`](PrivateSettings::routes).
    AddRoute(IpPrefix, Option<IpAddr>),
}

impl PrivateSettings {
    /// Makes the network. What its sockets find is copied from the network namespace that the calling thread is in.
    pub(super) fn make(&self) -> Result<(Here, Parts), PrivateError> {
        let mut parameters = Parameters::read();
        if let Some((first, last)) = self.local_ports {
            parameters.set_local_ports(first, last);
        }
        let namespace = Namespace::new()?;
        parameters.apply(&namespace, self.loopback)?;
        let carrier = self.carrier(&namespace)?;
        let state = namespace.interfaces().state(&self.name)?;
        let is_veth = matches!(carrier, Carrier::Veth(_));
        let paths = namespace.run(|| Paths::open(state.index, is_veth))?;
        let paths = paths.map_err(paths_error("open a netlink socket"))?;
        let name = self.name.clone();
        let mut here = Here { namespace, paths, name, diag: None };
        let loopback = here.set_up(self, parameters.ipv6)?;
        Ok((here, Parts { carrier, loopback }))
    }

    fn carrier(&self, namespace: &Namespace) -> Result<Carrier, PrivateError> {
        let tun = || namespace.run(|| self.tun());
        match self.kind {
            InterfaceKind::Tun => tun()?.map_err(PrivateError::Tun),
            InterfaceKind::Veth => self.veth(namespace).map_err(PrivateError::Veth),
            InterfaceKind::Any => match tun()? {
                Ok(carrier) => Ok(carrier),
                Err(tun @ (TunError::Open(_) | TunError::Create { .. })) => {
                    let veth = self.veth(namespace);
                    veth.map_err(|veth| PrivateError::NoInterface { tun, veth })
                }
                Err(other) => Err(PrivateError::Tun(other)),
            },
        }
    }

    fn tun(&self) -> Result<Carrier, TunError> {
        let tun = Tun::builder().name(&self.name).mtu(self.mtu).queues(self.queues);
        Ok(Carrier::Tun(Box::new(tun.queue_len(self.queue_len).open()?)))
    }

    /// Makes the pair. Its far end is in a second namespace, which lives as long as the socket on it.
    fn veth(&self, namespace: &Namespace) -> io::Result<Carrier> {
        const FAR: &str = "far0";
        let far = Namespace::new()?;
        // The kernel there has no part in it.
        let silent = far.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1");
        if let Err(error) = silent
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        namespace.add_veth(&self.name, &far, FAR)?;
        let index = {
            let mut interfaces = far.interfaces();
            interfaces.set_mtu(FAR, self.mtu.into())?;
            interfaces.set_up(FAR, true)?;
            interfaces.state(FAR)?.index
        };
        let station = {
            let mut interfaces = namespace.interfaces();
            interfaces.set_mtu(&self.name, self.mtu.into())?;
            // Nobody answers questions about neighbours.
            interfaces.set_without_neighbours(&self.name)?;
            interfaces.set_up(&self.name, true)?;
            interfaces.state(&self.name)?.station
        };
        let mtu = self.mtu.into();
        let wire = far.run(|| Wire::open(&self.name, index, station, mtu, None))??;
        Ok(Carrier::Veth(wire))
    }
}

impl Here {
    pub(super) fn change(&mut self, change: Change) -> Result<(), PrivateError> {
        match change {
            Change::AddAddress(address) => self.add_address(address),
            Change::RemoveAddress(address) => {
                let own = self.paths.remove_own(address.address());
                own.map_err(paths_error("remove the route of an address"))?;
                self.remove_bindable(address)
            }
            Change::AddBindable(address) => self.add_bindable(address),
            Change::RemoveBindable(address) => self.remove_bindable(address),
            Change::AddRoute(to, source) => {
                self.paths.add_outside(to, source).map_err(paths_error("add a route"))
            }
        }
    }

    /// The number of the interface.
    pub(super) fn index(&self) -> u32 {
        self.paths.device()
    }

    /// Ends every connection and every listener.
    pub(super) fn destroy_all(&mut self) -> io::Result<Destroyed> {
        let diag = match &mut self.diag {
            Some(diag) => diag,
            missing => missing.insert(self.namespace.run(Diag::open)??),
        };
        diag.destroy_all()
    }

    fn add_address(&mut self, address: IpPrefix) -> Result<(), PrivateError> {
        self.add_bindable(address)?;
        let own = self.paths.add_own(address.address());
        own.map_err(paths_error("route one of the host's addresses"))?;
        let broadcast = self.paths.add_broadcast(address);
        broadcast.map_err(paths_error("route a network's broadcast address"))
    }

    fn add_bindable(&mut self, address: IpPrefix) -> Result<(), PrivateError> {
        let mut interfaces = self.namespace.interfaces();
        interfaces.add_address(&self.name, address)?;
        // Until then a connection from outside is lost. An own address is routed to the device, so only packets with the mark show whether it is taken in.
        let mark = Some(paths::MARK);
        interfaces.wait_until_taken_in(address.address(), mark, ADDRESS_PATIENCE)?;
        Ok(())
    }

    fn remove_bindable(&mut self, address: IpPrefix) -> Result<(), PrivateError> {
        Ok(self.namespace.interfaces().remove_address(&self.name, address)?)
    }

    /// Rules, addresses and routes. Gives the socket for `::1`, if there is to be one.
    fn set_up(
        &mut self,
        settings: &PrivateSettings,
        ipv6: bool,
    ) -> Result<Option<Wire>, PrivateError> {
        let families: &[_] = if ipv6 {
            &[AddressFamily::Inet, AddressFamily::Inet6]
        } else {
            &[AddressFamily::Inet]
        };
        for family in families {
            let rules = self.paths.add_rules(*family, settings.loopback);
            rules.map_err(paths_error("set the rules of routing"))?;
            if settings.loopback {
                let loopback = self.paths.add_loopback(*family);
                loopback.map_err(paths_error("route loopback addresses"))?;
            }
        }
        let usable = |at: &&IpPrefix| ipv6 || at.address().is_ipv4();
        for address in settings.addresses.iter().filter(usable) {
            self.add_address(*address)?;
        }
        for address in settings.bindable.iter().filter(usable) {
            self.add_bindable(*address)?;
        }
        for (to, source) in &settings.routes {
            let added = self.paths.add_outside(*to, *source);
            added.map_err(paths_error("add a route"))?;
        }
        for v4 in [true, false] {
            let first = settings.addresses.iter().filter(usable).map(IpPrefix::address);
            let Some(first) = first.clone().find(|at| at.is_ipv4() == v4) else { continue };
            if !settings.routes.iter().any(|(to, _)| to.address().is_ipv4() == v4) {
                let all = self.paths.add_outside(IpPrefix::everything(v4), Some(first));
                all.map_err(paths_error("add a route"))?;
            }
        }
        if !(ipv6 && settings.loopback) {
            return Ok(None);
        }
        // Both ways have packets of one length.
        self.namespace.interfaces().set_mtu("lo", settings.mtu.into())?;
        let mtu = settings.mtu.into();
        let open = || Wire::open("lo", paths::LOOPBACK, [0; 6], mtu, Some(paths::MARK));
        self.namespace.run(open)?.map(Some).map_err(paths_error("open a packet socket on lo"))
    }
}
