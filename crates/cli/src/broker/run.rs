//! The broker itself.

use std::process::ExitCode;

use anyhow::Context;
use transom_broker::daemon::{Daemon, Ended};
use transom_broker::{Policy, client};
use transom_device::serving::serve_metrics;

use super::RunArgs;
use crate::interrupt::StoppedBy;
use crate::output;

pub(super) fn lend(args: &RunArgs, policy: Policy) -> anyhow::Result<ExitCode> {
    let uplinks = policy.uplinks.join(", ");
    let at = policy.metrics;
    let daemon = Daemon::start(policy, &args.socket, &args.pins)?;
    let stopper = daemon.stopper();
    let stopped_by = StoppedBy::signal(move || stopper.signal())?;
    if let Some(at) = at {
        let socket = args.socket.clone();
        // As anybody else who asks.
        let text = move || {
            let status = client::list(&socket).map_err(|error| error.to_string())?;
            Ok(status.metrics())
        };
        let at = serve_metrics(at, text).with_context(|| format!("cannot listen at {at}"))?;
        output::note(format_args!("metrics at http://{at}/metrics"));
    }
    let socket = args.socket.display();
    output::note(format_args!("ports of {uplinks} are lent at {socket}"));
    match daemon.run()? {
        Ended::Stopped => Ok(ExitCode::SUCCESS),
        Ended::Interrupted => {
            output::note("leases go on; `transom broker run` takes them over");
            Ok(stopped_by.status())
        }
    }
}
