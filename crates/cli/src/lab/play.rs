//! `transom lab play`: a page on which every value of a scenario is a control, and the curves answer at once.

#[cfg(feature = "web")]
mod bases;
#[cfg(feature = "web")]
mod question;
#[cfg(feature = "web")]
mod server;
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
      at http://127.0.0.1:8080/")]
pub(crate) struct Args {
    /// The scenario to begin with
    #[arg(value_name = "SCENARIO")]
    scenario: Option<PathBuf>,
    /// Listen at this loopback address, or at a port of it
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = crate::dash::loopback)]
    address: SocketAddr,
}

#[cfg(feature = "web")]
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    use anyhow::Context as _;
    use tokio::sync::oneshot;
    use transom_device::serving::front::Front;

    let bases = bases::Bases::new(args.scenario.as_deref())?;
    let listening = || format!("cannot listen on {}", args.address);
    let front = Front::bind(args.address).with_context(listening)?;
    let address = front.address();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the server")?;
    let (stop, stopped) = oneshot::channel();
    let stopped_by = crate::interrupt::StoppedBy::signal(move || {
        // It may have ended by itself.
        let _ = stop.send(());
    })?;
    crate::output::note(format_args!("Play at http://{address}/"));
    let works = work::Works::new();
    let served = runtime.block_on(server::serve(front, bases, works.clone(), stopped));
    // Runs in progress end at their next look.
    works.end();
    runtime.shutdown_background();
    served.context("the server has failed")?;
    Ok(stopped_by.status())
}

#[cfg(not(feature = "web"))]
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Named here, so that a build without this part reads the same arguments.
    let _ = (args.scenario, args.address);
    Err(crate::features::Feature::Web.missing())
}
