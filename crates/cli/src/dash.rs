//! `transom dash`: every TCP connection of this user's Transom processes and of the kernel, in the browser.

#[cfg(feature = "web")]
mod server;

use std::net::SocketAddr;
use std::process::ExitCode;

use crate::address::loopback;
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
  TRANSOM_STATUS=1 transom exec curl http://example.org/
      a program whose connections are on the page")]
pub(crate) struct Args {
    /// Listen at this loopback address, or at a port of it
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = loopback)]
    address: SocketAddr,
    #[command(flatten)]
    looks: Looks,
}

#[cfg(feature = "web")]
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let looks = server::looks(args.looks.collector(), args.looks.interval)?;
    crate::web::until_interrupted(args.address, "The connections are at", server::router(looks))
}

#[cfg(not(feature = "web"))]
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Named here, so that a build without this part reads the same arguments.
    let _ = (args.address, args.looks.interval, args.looks.collector());
    Err(crate::features::Feature::WEB.missing())
}
