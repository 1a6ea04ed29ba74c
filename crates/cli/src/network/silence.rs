//! A destination that does not answer: what is probably missing, said after a second and not after the minutes that TCP takes to give up.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use transom_device::interface::IpPrefix;

use crate::output::note;
use crate::progress::Waiting;

/// How long a destination may be silent. TCP repeats a SYN after this time (RFC 6298, section 2).
const PATIENCE: Duration = Duration::from_secs(1);
/// So many destinations are named at most: a program that scans a network needs no line for each address.
const MOST: usize = 5;

/// Says once of each destination that it does not answer.
#[derive(Clone, Debug)]
pub(crate) struct Silence {
    own: Vec<IpPrefix>,
    /// The interface behind which the host's kernel is, for a TUN interface outside a network of the command's own.
    behind_host: bool,
    told: HashSet<SocketAddr>,
}

impl Silence {
    pub(super) fn new(own: Vec<IpPrefix>, behind_host: bool) -> Self {
        Silence { own, behind_host, told: HashSet::new() }
    }

    /// The message about a destination.
    fn message(&self, destination: IpAddr) -> String {
        let of_family = |prefix: &&IpPrefix| prefix.address().is_ipv4() == destination.is_ipv4();
        let own = self.own.iter().find(of_family);
        match own {
            Some(own) if self.behind_host && !own.contains(destination) => format!(
                "no answer from {destination} to {own}: does this host forward packets and translate addresses? \
                 `transom doctor --reach {destination}` finds out; docs/howto/reach.md has all ways",
                own = own.address()
            ),
            Some(own) => format!("no answer from {destination} to {} yet", own.address()),
            None => {
                format!("no answer from {destination} yet: this host has no address of its kind")
            }
        }
    }

    /// Waits beside a call that connects, and says if that takes long. The wait ends when the result is dropped.
    pub(crate) fn watch(&self, destination: SocketAddr) -> Option<Waiting> {
        let mut silence = self.clone();
        // Without a thread nothing is said, and nothing else is lost.
        Waiting::at_most(PATIENCE, move || silence.unanswered(destination)).ok()
    }

    /// A destination has not answered for so long.
    pub(crate) fn unanswered(&mut self, destination: SocketAddr) {
        if self.told.len() < MOST && self.told.insert(destination) {
            note(format_args!("transom: {}", self.message(destination.ip())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_the_place() {
        let own = vec!["10.9.0.2/24".parse().unwrap()];
        let there = |own: &[IpPrefix], behind, to: &str| {
            Silence::new(own.to_vec(), behind).message(to.parse().unwrap())
        };
        assert!(there(&own, true, "192.0.2.1").contains("--reach 192.0.2.1"));
        assert_eq!(there(&own, true, "10.9.0.1"), "no answer from 10.9.0.1 to 10.9.0.2 yet");
        assert_eq!(there(&own, false, "192.0.2.1"), "no answer from 192.0.2.1 to 10.9.0.2 yet");
        assert!(there(&own, true, "2001:db8::1").contains("no address of its kind"));
    }
}
