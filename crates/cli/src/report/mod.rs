//! The report: one HTML page that holds everything it shows.
//!
//! A run fills in a [`ReportData`]; [`write()`] turns it into a page that needs no network, no server and no
//! other file. The text is HTML from the start, so a reader without scripts still gets the results; the
//! charts are drawn by uPlot, embedded, from points embedded as JSON. Points are thinned here, before
//! they are written ([`decimate`]), so that a long run does not make a page that a browser cannot open.
//!
//! Everything that comes from outside is escaped twice over: as HTML where it is text, as JSON without `<`
//! where it is data. A content security policy in the page forbids it to load anything.

mod data;
mod decimate;
mod encode;
mod page;

use std::io;
use std::path::Path;

pub(crate) use data::{Chart, Hue, ReportData, Row, Section, Shape, Style};

/// Writes the page to `path`, replacing what was there.
///
/// # Errors
/// Those of creating and writing the file.
pub(crate) fn write(path: &Path, data: &ReportData) -> io::Result<()> {
    std::fs::write(path, page::render(data))
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
