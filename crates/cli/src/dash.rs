//! `transom dash`: every TCP connection of this user's Transom processes and of the kernel, in the browser.

#[cfg(feature = "web")]
mod server;

use std::net::SocketAddr;
use std::process::ExitCode;

use crate::lab::parse_address;
use crate::top::Looks;

/// Show every TCP connection, of Transom and of the kernel, in a browser
///
/// The same connections as `transom top`, on one page: a table that is sorted and filtered, and the courses of the connection that you click on. The
/// server is for this machine alone: it listens on the loopback interface, and answers no page of another site. Other users of this machine can open
/// the page, too.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom dash
      say where the page is, and serve it until interrupted
  transom dash --address 8080 --interval 500ms
      at http://127.0.0.1:8080/, with two looks a second
  TRANSOM_STATUS=1 transom exec curl https://example.org/
      a program whose connections are on the page")]
pub(crate) struct Args {
    /// Listen at this loopback address, or at a port of it
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = loopback)]
    address: SocketAddr,
    #[command(flatten)]
    looks: Looks,
}

/// The page shows who is connected with whom: that is not for other machines.
pub(crate) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = parse_address(text)?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("it is not a loopback address; to look from another machine, forward the port with ssh -L".into())
    }
}

#[cfg(feature = "web")]
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    use anyhow::Context as _;
    use tokio::sync::oneshot;
    use transom_device::serving::front::Front;

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
    let looks = server::looks(args.looks.collector(), args.looks.interval)?;
    crate::output::note(format_args!("The connections are at http://{address}/"));
    let served = runtime.block_on(server::serve(front, looks, stopped));
    // A browser that has not taken the last event by now does not get it.
    runtime.shutdown_background();
    served.context("the server has failed")?;
    Ok(stopped_by.status())
}

#[cfg(not(feature = "web"))]
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Named here, so that a build without this part reads the same arguments.
    let _ = (args.address, args.looks.interval, args.looks.collector());
    Err(crate::features::Feature::Web.missing())
}
