//! `transom log plot`: the connections of an event log or of a packet capture, as a page or a picture.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use transom_device::own_file;
use transom_report::{Plotted, Svg, plot_capture, plot_log};

use super::{Opened, open};
use crate::features::Feature;
use crate::output::{self, note};

/// Draw sequence, windows and round-trip time of an event log or a packet capture
///
/// A capture (pcap or pcapng) may be of any program's TCP. Its picture is that of tcptrace: segments, what was sent again, acknowledgements,
/// SACK blocks and the receive window; then bytes in flight, round-trip times and throughput.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  transom log plot get.tlog -o get.html
  tcpdump -i eth0 -s 100 -w seen.pcap tcp
  transom log seen.pcap                       lists the connections
  transom log plot seen.pcap -o seen.svg --connection 2")]
pub(super) struct PlotArgs {
    /// The log, as --log writes it, or a capture
    file: PathBuf,

    /// The output: a picture of one connection (.svg, .png), or a page of all (.html)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Draw this connection only, by the number that it has in the file [default of a picture: the one with most data]
    #[arg(long, value_name = "NUMBER")]
    connection: Option<u64>,
}

/// The forms of the output.
enum Form {
    Page,
    Svg,
    Png,
}

/// Draws it.
pub(super) fn plot(args: &PlotArgs) -> anyhow::Result<ExitCode> {
    let (name, place) = (args.file.display(), args.output.display());
    let extension = args.output.extension().and_then(|extension| extension.to_str());
    let form = match extension {
        Some("html") => Form::Page,
        Some("svg") => Form::Svg,
        Some("png") => {
            Feature::PNG.need()?;
            Form::Png
        }
        _ => bail!("{place}: the name must end in .svg, .png or .html"),
    };
    own_file::check_output(&args.output)?;
    let named = name.to_string();
    let plotted = match open(&args.file)? {
        Opened::Log(entries) => plot_log(&entries, &named, args.connection),
        Opened::Capture(capture) => {
            capture.notes().iter().for_each(|text| note(format_args!("{name}: {text}")));
            plot_capture(capture, &named, args.connection)
        }
    };
    let Plotted { data, picture, count, shown, .. } = plotted;
    match (count, args.connection) {
        (0, Some(number)) => bail!("{name} has no connection {number}"),
        (0, None) => bail!("{name} has no TCP connection"),
        _ => {}
    }
    if count > 1 && !matches!(form, Form::Page) {
        let shown = shown.map_or("one".into(), |shown| {
            format!("connection {shown}, which has most data (`transom log {name}` lists them)")
        });
        note(format_args!("{name} has {count} connections; {place} shows {shown}"));
    }
    let picture = || picture.as_ref().with_context(|| format!("{name} has no connection"));
    let contents = match form {
        Form::Page => transom_report::render(&data).into_bytes(),
        Form::Svg => picture()?.to_string().into_bytes(),
        Form::Png => png(picture()?)?,
    };
    output::file(&args.output, contents)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "png")]
fn png(picture: &Svg) -> anyhow::Result<Vec<u8>> {
    transom_report::png(picture).context("cannot make the PNG file")
}

#[cfg(not(feature = "png"))]
fn png(_: &Svg) -> anyhow::Result<Vec<u8>> {
    Err(Feature::PNG.missing())
}
