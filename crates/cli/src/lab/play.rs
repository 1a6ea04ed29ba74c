//! `transom lab play`: a page on which every value of a scenario is a control, and the curves answer at once.

#[cfg(feature = "web")]
mod bases;
#[cfg(feature = "web")]
mod question;
#[cfg(feature = "web")]
mod server;
#[cfg(feature = "web")]
mod timing;
#[cfg(feature = "web")]
mod work;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Play with a scenario in the browser: move a slider, and see real TCP answer
///
/// The page draws the network and has a control for each value of the scenario. Each change runs the simulation anew. Two settings can be
/// side by side, a click on a moment lists the decisions of the stacks there, and the address of the page holds its state. Without a
/// scenario it begins with the sawtooth. The server listens on the loopback interface and answers no page of another site.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab play
      the seven figures that every course draws, and the main figures of the papers
  transom lab play scenario.toml
      your own scenario
  transom lab play --address 8080
      at http://127.0.0.1:8080/
  transom lab play --time
      how long the curves of each figure take after a change")]
pub(crate) struct Args {
    /// The scenario to begin with
    #[arg(value_name = "SCENARIO")]
    scenario: Option<PathBuf>,
    /// Listen at this loopback address, or at a port of it
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = crate::address::loopback)]
    address: SocketAddr,
    /// Instead of serving, time the figures of every course: from a change to the complete curves
    #[arg(long, conflicts_with_all = ["scenario", "address"])]
    time: bool,
}

#[cfg(feature = "web")]
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let bases = bases::Bases::new(args.scenario.as_deref())?;
    if args.time {
        crate::output::raw_lines(&timing::table(&bases)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let works = work::Works::new();
    let router = server::router(bases, works.clone());
    let served = crate::web::until_interrupted(args.address, "Play at", router);
    // Runs in progress end at their next look.
    works.end();
    served
}

#[cfg(not(feature = "web"))]
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Named here, so that a build without this part reads the same arguments.
    let _ = (args.scenario, args.address, args.time);
    Err(crate::features::Feature::WEB.missing())
}
