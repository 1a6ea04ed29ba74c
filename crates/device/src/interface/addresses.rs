//! The addresses of interfaces.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, Parseable};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeader, AddressHeaderFlags, AddressMessage,
};

use super::{InterfaceError, InterfaceState, Interfaces, IpPrefix, failed, family};
use crate::netlink::attributes;

/// Bytes of `struct ifaddrmsg`.
const BODY_LEN: usize = 8;

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceAddress {
    /// The interface's number.
    pub index: u32,
    /// The address in its network.
    pub address: IpPrefix,
    /// Whether packets may leave from it. IPv6 first checks that no other host has it (RFC 4862, section 5.4), and an optimistic host does not wait
    /// for that (RFC 4429).
    pub usable: bool,
}

impl Interfaces {
    /// All addresses, in the kernel's order.
    ///
    /// # Errors
    /// The system's.
    pub fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let mut addresses = Vec::new();
        self.netlink.dump(request, |body| addresses.extend(parse(body)))?;
        Ok(addresses)
    }

    /// The machine's addresses that packets may leave from, in the kernel's order and each with its interface: usable ones of interfaces that are up.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addresses(&mut self) -> io::Result<Vec<(IpPrefix, InterfaceState)>> {
        let up = self.all()?.into_iter().filter(|state| state.up);
        let up: HashMap<u32, InterfaceState> = up.map(|state| (state.index, state)).collect();
        let found = self.addresses()?.into_iter().filter(|found| found.usable);
        let local = found.filter_map(|found| Some((found.address, up.get(&found.index)?.clone())));
        Ok(local.collect())
    }

    /// Gives an interface an address and, with it, a route to the address' network.
    ///
    /// Duplicate address detection (RFC 4862, section 5.4) is skipped, as no other program configures
    /// addresses on our own interface. So packets may be sent from the address at
    /// once; for those to it, see [`Interfaces::wait_until_local`].
    ///
    /// # Errors
    /// The kernel's refusal, [`io::ErrorKind::AlreadyExists`] for one.
    pub fn add_address(&mut self, name: &str, address: IpPrefix) -> Result<(), InterfaceError> {
        let mut message = self.address_message(name, address)?;
        message.header.flags = AddressHeaderFlags::Nodad;
        let request = RouteNetlinkMessage::NewAddress(message);
        let executed = self.netlink.execute(NLM_F_CREATE | NLM_F_EXCL, request);
        executed.map_err(failed("add an address to", name))?;
        Ok(())
    }

    /// Takes an address away from an interface, and with it the route to its network.
    pub(crate) fn remove_address(
        &mut self,
        name: &str,
        address: IpPrefix,
    ) -> Result<(), InterfaceError> {
        let message = self.address_message(name, address)?;
        let executed = self.netlink.execute(0, RouteNetlinkMessage::DelAddress(message));
        executed.map_err(failed("remove an address from", name))?;
        Ok(())
    }

    fn address_message(
        &mut self,
        name: &str,
        address: IpPrefix,
    ) -> Result<AddressMessage, InterfaceError> {
        let mut message = AddressMessage::default();
        message.header.family = family(address.address());
        message.header.prefix_len = address.prefix_len();
        message.header.index = self.state(name)?.index;
        message.attributes = vec![
            AddressAttribute::Local(address.address()),
            AddressAttribute::Address(address.address()),
        ];
        Ok(message)
    }
}

fn parse(body: &[u8]) -> Option<InterfaceAddress> {
    let header = AddressHeader::parse(body).ok()?;
    let mut flags = AddressFlags::from_bits_retain(header.flags.bits().into());
    let (mut local, mut other): (Option<IpAddr>, Option<IpAddr>) = (None, None);
    for attribute in attributes(body, BODY_LEN) {
        match AddressAttribute::parse(&attribute) {
            Ok(AddressAttribute::Local(address)) => local = Some(address),
            // On a link between two this is the other end's.
            Ok(AddressAttribute::Address(address)) => other = Some(address),
            Ok(AddressAttribute::Flags(all)) => flags = all,
            _ => {}
        }
    }
    Some(InterfaceAddress {
        index: header.index,
        address: IpPrefix::new(local.or(other)?, header.prefix_len)?,
        usable: !flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed)
            || flags.contains(AddressFlags::Optimistic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_cut_off_is_ignored() {
        for length in 0..40 {
            assert_eq!(parse(&vec![2; length]), None);
            for byte in [0, 1, 4, 255] {
                let _ = parse(&vec![byte; length]);
            }
        }
    }

    #[test]
    fn the_loopback_interface_has_its_address() {
        let found = Interfaces::open().unwrap().local_addresses().unwrap();
        let own = "127.0.0.1/8".parse().unwrap();
        let (_, lo) = found.iter().find(|(address, _)| *address == own).expect("127.0.0.1");
        assert_eq!(lo.name, "lo");
    }
}
