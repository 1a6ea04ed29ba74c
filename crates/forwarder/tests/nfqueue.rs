//! Mode nfqueue between kernels.

mod support;

use support::{BOTTLENECK, Net, Offloads, Way, network, run};
use transom_forwarder::nfqueue::Nfqueue;
use transom_forwarder::{Deployment, Refusal, Status};
use transom_router::window::{ControlConfig, PolicyConfig, TargetWindowConfig, Threshold};

fn policy() -> ControlConfig {
    let target = TargetWindowConfig::new(Threshold::Bytes(40_000), Threshold::Bytes(20_000));
    ControlConfig::new(PolicyConfig::TargetWindow(target))
}

/// Started in the router, or `None` and a word about it.
fn start(net: &Net, config: &ControlConfig) -> Option<Nfqueue> {
    match net.router.run(|| Nfqueue::start(BOTTLENECK, config)).unwrap() {
        Ok(started) => Some(started),
        Err(error @ (Refusal::Capability { .. } | Refusal::NoQueues(_) | Refusal::Tool { .. })) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn a_slice() {
    for offloads in [Offloads::On, Offloads::Off] {
        let Some(net) = network(offloads) else { return };
        let Some(mut tc) = start(&net, &policy()) else { return };
        for way in [(false, false), (false, true), (true, false), (true, true)] {
            let drops = net.transfer(Way { six: way.0, reverse: way.1 }, 10, 1_000_000);
            let status: Status = tc.status(3).unwrap();
            eprintln!("{way:?} {drops:?}: {status:?}");
        }
        eprintln!("{}", run(&net.router, "iptables", &["-t", "mangle", "-S"]));
        drop(tc);
        eprintln!("{}", run(&net.router, "iptables", &["-t", "mangle", "-S"]));
        eprintln!("{}", run(&net.router, "ip6tables", &["-t", "mangle", "-S"]));
    }
}
