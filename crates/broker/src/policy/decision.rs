//! Decisions by the rules of a policy.

use std::net::IpAddr;
use std::ops::RangeInclusive;

#[cfg(feature = "daemon")]
use nix::unistd::{Gid, Uid, User, getgrouplist};
use transom_device::interface::IpPrefix;

use super::{Policy, Rule, Subject};

/// The user who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The user's number.
    pub(crate) user: u32,
    /// The numbers of the user's groups.
    pub(crate) groups: Vec<u32>,
    /// Whether the system's databases have the user. The subordinate numbers of a user (subuid(5)) are not there.
    pub(crate) known: bool,
}

impl Caller {
    /// A user with the groups that the system's databases have, and the process' own one.
    #[cfg(feature = "daemon")]
    pub(crate) fn new(user: u32, group: u32) -> Self {
        let (mut groups, mut known) = (vec![group], false);
        if let Ok(Some(found)) = User::from_uid(Uid::from_raw(user))
            && let Ok(name) = std::ffi::CString::new(found.name)
            && let Ok(others) = getgrouplist(&name, Gid::from_raw(group))
        {
            groups.extend(others.into_iter().map(Gid::as_raw));
            known = true;
        }
        Caller { user, groups, known }
    }
}

impl Rule {
    /// Whether the caller may hold ports of this address.
    pub(crate) fn allows_address(&self, caller: &Caller, address: IpAddr) -> bool {
        let here = |network: &IpPrefix| network.contains(address);
        self.applies_to(caller) && (self.addresses.is_empty() || self.addresses.iter().any(here))
    }

    fn applies_to(&self, caller: &Caller) -> bool {
        match self.subject {
            Subject::User(user) => user == caller.user,
            Subject::Group(group) => caller.groups.contains(&group),
            Subject::Everybody => true,
        }
    }
}

impl Policy {
    /// The rule that decides about a caller's devices; `None` if there is no rule at all.
    pub(crate) fn first(&self, caller: &Caller) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.applies_to(caller))
    }

    /// Whether a rule is for this user in particular, and not for everybody. Of a group, that is so for the users whom the system knows: one user can have
    /// thousands of subordinate numbers, with a group of its own.
    pub(crate) fn names(&self, caller: &Caller) -> bool {
        self.rules.iter().any(|rule| match rule.subject {
            Subject::User(user) => user == caller.user,
            Subject::Group(_) => caller.known && rule.applies_to(caller),
            Subject::Everybody => false,
        })
    }

    /// The place of the rule that lets a caller hold a port of an address.
    pub(crate) fn allows(
        &self,
        caller: &Caller,
        address: IpAddr,
        port: u16,
        ephemeral: &RangeInclusive<u16>,
    ) -> Option<usize> {
        self.rules.iter().position(|rule| {
            rule.allows_address(caller, address)
                && (rule.ports.contain(port) || (rule.ephemeral && ephemeral.contains(&port)))
        })
    }
}
