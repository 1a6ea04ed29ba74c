//! Mode user between kernels: the router is a wire.

mod support;

use support::{BOTTLENECK, Offloads, Way, wire};
use transom_forwarder::policy::PolicyFile;
use transom_forwarder::user::User;
use transom_forwarder::{Deployment, Refusal, Status};

#[test]
fn a_slice() {
    let policy =
        "policy = 'target-window(upper=40kB, lower=20kB)'\nrate = '10Mbit/s'\nqueue = '75kB'";
    let policy = PolicyFile::parse(policy).unwrap();
    for offloads in [Offloads::On, Offloads::Off] {
        let Some(net) = wire(offloads) else { return };
        let started = net.router.run(|| User::start("in", BOTTLENECK, &policy)).unwrap();
        let mut user = match started {
            Ok(user) => user,
            Err(error @ Refusal::Capability { .. }) => {
                eprintln!("SKIPPED: {error}");
                return;
            }
            Err(error) => panic!("{error:?}"),
        };
        for way in [(false, false), (false, true), (true, false), (true, true)] {
            let drops = net.transfer(Way { six: way.0, reverse: way.1 }, 10, 1_000_000);
            let status: Status = user.status(3).unwrap();
            eprintln!("{way:?} {drops:?}: {status:?}");
        }
    }
}
