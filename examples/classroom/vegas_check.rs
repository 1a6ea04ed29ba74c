//! The judge of the second exercise.

use std::error::Error;
use std::process::ExitCode;

use crate::watched_transfer::{Judge, transfer};
use transom_tcp::Profile;
use transom_tcp::extension::ExtensionChoice;

/// Two paths of 10 Mbit/s and 40 ms: a smooth one, and one on which each packet may be delayed by up to 10 ms more, as in a wireless network.
pub(crate) fn check(vegas: &ExtensionChoice) -> Result<ExitCode, Box<dyn Error>> {
    let run = |path: &str| {
        let profile = Profile::classic().with_extensions(vec![vegas.clone()]);
        transfer(profile, path, "delay=20ms", 60)
    };
    let smooth = run("rate=10Mbit/s, delay=20ms, queue=100 packets")?;
    let rough = run("rate=10Mbit/s, delay=20ms, queue=100 packets, jitter=uniform(0ms, 10ms)")?;
    rough.draw();
    let mut judge = Judge::default();
    judge.expect("smooth path: rate, in Mbit/s", smooth.rate(), 9.2..=10.0);
    judge.expect("smooth path: mean round trip, in ms", smooth.mean_rtt(), 40.0..=48.0);
    judge.expect("rough path: rate, in Mbit/s", rough.rate(), 8.0..=10.0);
    judge.expect("rough path: mean round trip, in ms", rough.mean_rtt(), 40.0..=60.0);
    Ok(judge.end())
}
