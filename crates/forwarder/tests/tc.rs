//! Mode tc between kernels.

mod support;

use support::{BOTTLENECK, Net, Offloads, Way, network};
use transom_forwarder::tc::{Options, Tc};
use transom_forwarder::{Deployment, Refusal, Status};
use transom_router::window::{ControlConfig, PolicyConfig, TargetWindowConfig, Threshold};

fn policy() -> ControlConfig {
    let target = TargetWindowConfig::new(Threshold::Bytes(40_000), Threshold::Bytes(20_000));
    ControlConfig::new(PolicyConfig::TargetWindow(target))
}

/// Attached in the router, or `None` and a word about it.
fn attach(net: &Net, options: Options) -> Option<Tc> {
    match net.router.run(|| Tc::attach(options)).unwrap() {
        Ok(tc) => Some(tc),
        Err(error @ (Refusal::Capability { .. } | Refusal::NoTypes | Refusal::BigEndian)) => {
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
        let before = net.transfer(Way::default(), 10, 1_000_000);
        eprintln!("{offloads:?} without: {before:?}");
        let Some(mut tc) = attach(&net, Options::new(BOTTLENECK, policy())) else { return };
        for way in [(false, false), (false, true), (true, false), (true, true)] {
            let drops = net.transfer(Way { six: way.0, reverse: way.1 }, 10, 1_000_000);
            let status: Status = tc.status(3).unwrap();
            eprintln!("{way:?} {drops:?}: {status:?}");
        }
    }
}
