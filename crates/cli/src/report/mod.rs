//! The report: one HTML page that holds everything it shows.
//!
//! A run fills in a [`ReportData`]; [`write()`] turns it into a page that needs no network, no server and no
//! other file. The text is HTML from the start, so a reader without scripts still gets the results; the
//! charts are drawn by uPlot, embedded, from points embedded as JSON. Points are thinned here, before
//! they are written ([`decimate()`]), so that a long run does not make a page that a browser cannot open.
//!
//! The same [`ReportData`] becomes PNG files ([`pictures()`]), drawn here as SVG ([`mod@plot`]) and then rasterised (`png`, a feature of the build),
//! and messages to a page that is already open in a browser ([`live`]): three ways to see one set of numbers.
//!
//! Everything that comes from outside is escaped twice over: as HTML where it is text, as JSON without `<`
//! where it is data. A content security policy in the page forbids it to load anything.

mod block;
mod data;
mod decimate;
mod encode;
mod live;
mod number;
mod page;
mod pictures;
mod plot;
#[cfg(feature = "png")]
mod png;
#[cfg(not(feature = "png"))]
#[path = "no_png.rs"]
mod png;
mod svg;
mod table;
mod ticks;

use std::io;
use std::path::Path;

pub(crate) use block::{Block, Cell, Drawing, Heading, Table, Verdict};
pub(crate) use data::{Across, Chart, Hue, ReportData, Row, Section, Shape, Style};
pub(crate) use decimate::{MOST_POINTS, decimate};
#[cfg(any(test, feature = "web"))]
pub(crate) use live::live_page;
pub(crate) use live::message;
pub(crate) use number::{short, short_as};
pub(crate) use pictures::pictures;
pub(crate) use svg::{Anchor, Svg, text_width};
pub(crate) use ticks::{logarithmic_ticks, ticks};

/// Writes the page to `path`, replacing what was there.
///
/// # Errors
/// Those of creating and writing the file.
pub(crate) fn write(path: &Path, data: &ReportData) -> io::Result<()> {
    std::fs::write(path, render(data))
}

/// The page.
pub(crate) fn render(data: &ReportData) -> String {
    page::render(data)
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
