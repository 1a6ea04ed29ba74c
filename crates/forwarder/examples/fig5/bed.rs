//! The network of a run: the namespaces of the tests, with an access link in front of the router, and Transom as one more host behind the sender.
//!
//! ```text
//! host (Transom) == sender  near ==== in  router  out ==== far  receiver
//!                         100 Mbit/s            10 Mbit/s, 75,000 bytes
//! ```

use std::net::SocketAddr;

use transom_device::interface::Interfaces;
use transom_device::tun::{Tun, TunOffload};
use transom_forwarder::tc::{Options, Tc};
use transom_forwarder::{Deployment, Nfqueue, PolicyFile, QueueStatus, Refusal, User};
use transom_net::Stack;

use crate::senders::Senders;
use crate::support::{BOTTLENECK, LIMIT, Net, Offloads, network, run, wire};

/// Bits per second of the bottleneck, in [`network`]'s queue and in mode user's.
pub(crate) const RATE: u64 = 10_000_000;
/// The paper's thresholds, 35 and 15 packets of 1500 bytes.
pub(crate) const UPPER: u64 = 52_500;
pub(crate) const LOWER: u64 = 22_500;
/// A full packet in the queue, with its Ethernet header.
pub(crate) const PACKET: u64 = 1514;

/// The addresses of Transom, and of the sender beside it.
const TRANSOM: &str = "10.3.0.2";
const GATEWAY: &str = "10.3.0.1/24";
const BEHIND: &str = "10.3.0.0/24";

/// The window control in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Nothing,
    Tc,
    Nfqueue,
    User,
}

impl Control {
    pub(crate) const ALL: [Control; 4] =
        [Control::Nothing, Control::Tc, Control::Nfqueue, Control::User];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Control::Nothing => "none",
            Control::Tc => "tc",
            Control::Nfqueue => "nfqueue",
            Control::User => "user",
        }
    }

    /// Begins in the router.
    fn start(self) -> Result<Option<Works>, Refusal> {
        let text = format!(
            "policy = 'target-window(upper={UPPER}B, lower={LOWER}B, rule=section-3.2)'\nrate = '{RATE}bit/s'\nqueue = '{LIMIT}B'"
        );
        let policy: PolicyFile = text.parse()?;
        Ok(match self {
            Control::Nothing => None,
            Control::Tc => Some(Box::new(Tc::attach(Options::new(BOTTLENECK, policy.control))?)),
            Control::Nfqueue => Some(Box::new(Nfqueue::start(BOTTLENECK, &policy.control)?)),
            Control::User => Some(Box::new(User::start("in", BOTTLENECK, &policy)?)),
        })
    }
}

type Works = Box<dyn Deployment>;

/// A network that is up, and what controls windows in it.
pub(crate) struct Bed {
    // Ends before the namespaces do.
    works: Option<Works>,
    queues: Option<(Interfaces, u32)>,
    pub(crate) transom: Option<Stack>,
    pub(crate) net: Net,
    /// The address of the receiver.
    pub(crate) receiver: SocketAddr,
}

impl Bed {
    /// `None`, and a word about it, where that cannot be had.
    pub(crate) fn new(control: Control, senders: Senders) -> Result<Option<Bed>, String> {
        // Without offloads: a super-segment would be one packet.
        let own_queue = control == Control::User;
        let net = if own_queue { wire(Offloads::Off) } else { network(Offloads::Off) };
        let Some(net) = net else { return Ok(None) };
        let receiver = if own_queue { "10.1.0.3:0" } else { "10.2.0.2:0" };
        // It drops nothing: it holds more than all that the ten can have in flight through the bottleneck.
        let access = "qdisc add dev near root tbf rate 100mbit burst 5kb limit 3000000";
        run(&net.sender, "tc", &access.split(' ').collect::<Vec<_>>());
        let transom = match senders.with_transom() {
            true => Some(host(&net, own_queue)?),
            false => None,
        };
        let started = net.router.run(|| control.start()).map_err(|error| error.to_string())?;
        let works = match started {
            Ok(works) => works,
            Err(
                error @ (Refusal::Capability { .. }
                | Refusal::NoTypes
                | Refusal::BigEndian
                | Refusal::NoQueues(_)
                | Refusal::Tool { .. }),
            ) => {
                eprintln!("SKIPPED: {}: {error}", control.name());
                return Ok(None);
            }
            Err(error) => return Err(error.to_string()),
        };
        let queues = match own_queue {
            true => None,
            false => {
                let state = net.router.interfaces().state(BOTTLENECK);
                let index = state.map_err(|error| error.to_string())?.index;
                let opened = net.router.run(Interfaces::open).map_err(|error| error.to_string())?;
                Some((opened.map_err(|error| error.to_string())?, index))
            }
        };
        let receiver = receiver.parse().map_err(|_| "an address is wrong")?;
        Ok(Some(Bed { works, queues, transom, net, receiver }))
    }

    /// The bottleneck's queue.
    pub(crate) fn queue(&mut self) -> Result<QueueStatus, String> {
        match (&mut self.queues, &mut self.works) {
            (Some((interfaces, index)), _) => {
                interfaces.root_queue(*index).map(Into::into).map_err(|error| error.to_string())
            }
            (None, Some(works)) => {
                works.status(0).map(|status| status.queue).map_err(|error| error.to_string())
            }
            (None, None) => Err("there is no queue".into()),
        }
    }

    /// Whether all of `flows` were controlled, if somebody is there to; the acknowledgements whose window was changed.
    pub(crate) fn rewritten(&mut self, flows: u64) -> Result<u64, String> {
        let Some(works) = &mut self.works else { return Ok(0) };
        works.maintain().map_err(|error| error.to_string())?;
        let counters = works.status(0).map_err(|error| error.to_string())?.counters;
        if counters.confirmed != flows || counters.rewritten == 0 {
            return Err(format!("not everything was controlled: {counters:?}"));
        }
        Ok(counters.rewritten)
    }
}

/// Transom behind the sender, whose kernel forwards for it. No packet is longer than a wire's there.
fn host(net: &Net, in_one_network: bool) -> Result<Stack, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    net.sender.set_sysctl("net.ipv4.ip_forward", "1").map_err(|error| text(&error))?;
    let wrong = |_| "an address is wrong".to_owned();
    let gateway = GATEWAY.parse().map_err(wrong)?;
    let tun = Tun::builder().name("host").offload(TunOffload::None).address(gateway);
    let tun = net.sender.run(|| tun.open()).map_err(|error| text(&error))?;
    let tun = tun.map_err(|error| text(&error))?;
    let mut ways = vec![(&net.receiver, "far", "10.1.0.2")];
    if !in_one_network {
        ways = vec![(&net.router, "in", "10.1.0.2"), (&net.receiver, "far", "10.2.0.1")];
    }
    for (namespace, name, by) in ways {
        let (to, by) = (BEHIND.parse().map_err(wrong)?, by.parse().map_err(|_| "an address")?);
        namespace.interfaces().add_route(name, to, Some(by)).map_err(|error| text(&error))?;
    }
    let address = TRANSOM.parse().map_err(|_| "an address is wrong")?;
    Stack::builder().address(address, 24).start(tun).map_err(|error| text(&error))
}
