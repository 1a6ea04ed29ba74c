//! `transom demux`: a process that owns a device, and hands packets to others by their ports.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use transom_device::DeviceWord;
use transom_device::interface::IpPrefix;
use transom_device::open::{OpenOptions, open};
use transom_device::{Demultiplexer, DemuxCounters};

use crate::{interrupt, output};

/// So long the process is deaf to signals at most.
const TURN: Duration = Duration::from_millis(200);

/// Hand a device's packets to other processes, by their ports
///
/// One process owns the device. Others open the device demux:SOCKET,PORTS, and get the packets for their own ports. This is how a user-level TCP finds a
/// packet's process without help from the kernel. It costs each packet a second process: `transom broker` and the device `shared` do the same in
/// the kernel. Whoever may write to the socket's file may connect; by default that is this user.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom demux /run/demux.sock --device tun:transom0
      own transom0, with 10.9.0.2 for all processes behind the socket
  transom serve . --device demux:/run/demux.sock,80 --port 80
      a web server behind it
  transom get --device demux:/run/demux.sock http://10.9.0.1/
      and a client, which takes any port that is free")]
pub(crate) struct Args {
    /// The Unix socket to listen at
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    /// The device to own
    #[arg(long, value_name = "WORD", default_value = "tun:transom0")]
    device: DeviceWord,
    /// The address and network of the processes; repeat it for IPv6 [default: the device's usual one]
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    addr: Vec<IpPrefix>,
    /// The kernel's address on a TUN interface that is created; repeat it for IPv6
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    peer_addr: Vec<IpPrefix>,
}

/// Hands packets over until a signal.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Whole packets are passed on, so nothing may be left to the device.
    let options = OpenOptions::default()
        .with_addresses(args.addr)
        .with_kernel_addresses(args.peer_addr)
        .with_offload(false)
        // Each packet that a process sends is passed on alone.
        .with_batches(false);
    let opened = open(&args.device, &options)?;
    let addresses = output::listed(opened.addresses.iter().map(IpPrefix::address), "");
    let place = opened.place.clone();
    let mut demux = Demultiplexer::new(&args.socket, opened)
        .with_context(|| format!("cannot listen at {}", args.socket.display()))?;
    let told = interrupt::told()?;
    output::line(format_args!(
        "{addresses} on {place}: processes open the device demux:{}",
        args.socket.display()
    ))?;
    let due = loop {
        match told.try_recv() {
            Ok(due) => break due,
            Err(_) => demux.turn(TURN).context("the device has failed")?,
        }
    };
    let DemuxCounters { handed, sent, strange, refused, full, .. } = demux.counters();
    output::line(format_args!(
        "{handed} packets handed over, {sent} sent; {strange} for nobody, {refused} not allowed, {full} lost at a full queue"
    ))?;
    Ok(ExitCode::from(due))
}
