//! Reports: the results of an experiment or a transfer, as a page, as pictures, and as messages to an open page.
//!
//! Everything is a [`ReportData`] first: a verdict, pictures, tables, charts. The code that makes one does not depend on its presentation:
//!
//! | what | made by |
//! |---|---|
//! | a run, while it goes on and after | [`Page`], and of a stored one [`stored_run()`] |
//! | all runs of a results directory, with means over the seeds | [`sweep()`] |
//! | an event log | [`plot_log()`] |
//! | a packet capture | [`plot_capture()`] |
//! | two transfers, one each way, from samples of their senders | [`transfer::Transfers`] |
//!
//! [`render()`] turns it into a page that needs no network, no server and no other file. The text is HTML
//! from the start, so a reader without scripts still gets the results. The charts are drawn by uPlot,
//! embedded, from points embedded as JSON. Points are thinned here, before they are written
//! ([`decimate()`]), so that a long run does not make a page that a browser cannot open.
//!
//! The same [`ReportData`] becomes PNG files ([`pictures()`], with the feature `png`), drawn here as SVG ([`plot()`]) and then rasterised.
//! It also becomes messages to a page that is open in a browser ([`live_page()`], [`message()`]). `drawing()` draws a scenario's
//! network; [`labels`] has the texts that tables and terminals share.
//!
//! Everything that comes from outside is escaped twice over: as HTML where it is text, as JSON without `<`
//! where it is data. A content security policy in the page forbids it to load anything.
//!
//! ```
//! use transom_report::{Chart, Hue, ReportData, Section, Style, render};
//!
//! let rate = Chart::new("Goodput", "rate", "Mbit/s")
//!     .series("flow", Style::Line, Hue::Blue, vec![(0.0, 8.2), (0.1, 9.6), (0.2, 9.7)]);
//! let page = render(&ReportData {
//!     title: "A transfer".into(),
//!     lead: "It took 0.2 s.".into(),
//!     sections: vec![Section { title: "Flows".into(), charts: vec![rate], ..Section::default() }],
//!     ..ReportData::default()
//! });
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! ```
#![forbid(unsafe_code)]

mod block;
mod capture;
mod connections;
mod dash;
mod data;
mod decimate;
mod drawing;
mod emulation;
mod encode;
mod event_log;
mod flent;
mod html;
pub mod labels;
mod live;
mod number;
mod overview;
mod page;
#[cfg(feature = "png")]
mod pictures;
mod play;
mod plot;
#[cfg(feature = "png")]
mod png;
mod run;
mod statistics;
mod svg;
mod table;
mod ticks;
mod transfer;

use std::io;
use std::path::Path;

pub use block::{Block, Cell, Drawing, Table, Verdict};
pub use capture::plot_capture;
pub use connections::{Connections, Seen};
pub use dash::dash_page;
pub(crate) use data::Points;
pub use data::{Chart, HorizontalAxis, Hue, ReportData, Row, Section, Series, Shape, Style};
pub use decimate::{MOST_POINTS, decimate};
pub use event_log::plot_log;
pub use flent::{FlentTest, compared_tests};
pub use html::escape;
pub use live::{live_page, message};
pub use number::short;
pub(crate) use number::short_as;
pub use overview::{main_numbers, sweep, two_sweeps};
pub use page::render;
#[cfg(feature = "png")]
pub use pictures::pictures;
pub use play::play_page;
pub use plot::plot;
#[cfg(feature = "png")]
pub use png::png;
pub use run::{Page, RunInfo, run_command, stored_run};
pub use svg::Svg;
pub(crate) use svg::{Anchor, text_width};
pub(crate) use ticks::logarithmic_ticks;
pub use ticks::ticks;
pub use transfer::{ByteTraces, Outcome, QueueTrace, Trace, Transfers};

/// The connections of a file: as a page, and the one that carried most data as a picture.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plotted {
    /// The page's contents.
    pub data: ReportData,
    /// The charts of one connection in one picture; `None` without any connection.
    pub picture: Option<Svg>,
    /// How many connections there are.
    pub count: usize,
    /// The number of the connection in the picture, if its file numbers them from the first packet on.
    pub shown: Option<usize>,
}

/// The page of a run, in the run's directory.
pub const REPORT: &str = "report.html";
/// The page of all runs, in their results directory.
pub const INDEX: &str = "index.html";

/// Writes the page to `path`, replacing what was there.
///
/// # Errors
/// Those of [`transom_device::own_file::output`].
pub fn write(path: &Path, data: &ReportData) -> io::Result<()> {
    transom_device::own_file::write_output(path, render(data).as_bytes())
}

#[cfg(test)]
mod test_sample;
#[cfg(test)]
mod tests;
