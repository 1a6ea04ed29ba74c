//! A report as picture files.

use std::io;
use std::path::{Path, PathBuf};

use super::block::Block;
use super::data::ReportData;
use super::{plot, png};

/// Writes every drawing and every chart of the report as a PNG file into a directory, replacing what was there, and gives the
/// files. They are called after what they show, such as `flows-goodput.png`.
///
/// # Errors
/// Those of creating and writing the files.
pub fn pictures(directory: &Path, data: &ReportData) -> io::Result<Vec<PathBuf>> {
    let drawings = data.blocks.iter().filter_map(|block| match block {
        Block::Drawing(drawing) => Some((word(&drawing.title), drawing.picture.clone())),
        Block::Table(_) => None,
    });
    let charts = data.sections.iter().flat_map(|section| {
        section.charts.iter().map(|chart| {
            let name = format!("{}-{}", word(&section.title), word(&chart.title));
            (name, plot::plot(section, chart))
        })
    });
    let mut written: Vec<PathBuf> = Vec::new();
    for (name, picture) in drawings.chain(charts) {
        let mut path = directory.join(format!("{name}.png"));
        let mut number = 2;
        while written.contains(&path) {
            path = directory.join(format!("{name}-{number}.png"));
            number += 1;
        }
        transom_device::own_file::write_output(&path, &png::png(&picture)?)?;
        written.push(path);
    }
    Ok(written)
}

/// A text as part of a file's name.
fn word(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let parts = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let mut word = parts.collect::<Vec<_>>().join("-");
    word.truncate(80);
    if word.is_empty() { "picture".into() } else { word }
}
