//! `transom papers pages`: a page for each figure of the papers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use transom_device::own_file;

use super::page;
use crate::output;

/// Write a page for each figure and table of the papers, with pictures
///
/// Each page has the paper's claim, the figure with the paper's points, the two set-ups side by side, what was found, and all values. It is made from
/// the experiments, from texts and from summaries, which `transom papers run --keep` writes. Nothing is run. Pages and pictures in the directory that no
/// experiment has any more are removed.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers pages --to docs/papers
      from the summaries in papers/results
  transom papers pages --from /tmp/summaries --to /tmp/pages
      from others, to another place")]
pub(crate) struct Args {
    /// The directory of the summaries
    #[arg(long, value_name = "DIR", default_value = "papers/results")]
    from: PathBuf,
    /// The directory for the pages
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

/// Writes them.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    super::check_summaries(&args.from)?;
    own_file::check_output_directory(&args.to)?;
    let files = files(&args.from)?;
    fs::create_dir_all(&args.to).with_context(|| format!("cannot write {}", args.to.display()))?;
    for (name, text) in &files {
        output::file(&args.to.join(name), text)?;
    }
    for entry in fs::read_dir(&args.to)? {
        let path = entry?.path();
        let is_ours = path.extension().is_some_and(|kind| kind == "md" || kind == "svg");
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if is_ours && !files.contains_key(name) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    let pages = files.keys().filter(|name| name.ends_with(".md")).count();
    output::line(format_args!("{pages} pages are in {}.", args.to.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The pages and their pictures, by the name of the file.
fn files(summaries: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for page in page::all(summaries)? {
        let name = page.name();
        let mut drawn = Vec::new();
        for (number, figure) in (1..).zip(page.drawn()) {
            let picture = figure.map(|figure| (format!("{name}-{number}.svg"), figure));
            files.extend(picture.iter().map(|(file, figure)| (file.clone(), figure.svg.clone())));
            drawn.push(picture);
        }
        files.insert(format!("{name}.md"), page.markdown(&drawn));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_without_values_have_pages() {
        let nothing = tempfile::tempdir().unwrap();
        let files = files(nothing.path()).unwrap();
        assert!(files["ltcp-fig8.md"].starts_with("# ltcp/fig8"));
    }
}
