//! Copies the chapters, and the files that they link to, into one tree for mdBook.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;

/// The style of a page that lists a directory: a path is one long word, and breaks where the window ends.
const LISTING: &str = "body { font-family: sans-serif; overflow-wrap: anywhere; }";

/// Copies all chapters of `summary` from `repository` to `to`, and whatever they link to. Returns links that lead nowhere, and links to Markdown files that are
/// no chapters.
///
/// # Errors
/// A file cannot be read or written.
pub fn stage(repository: &Path, summary: &Path, to: &Path) -> anyhow::Result<Vec<String>> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot clear {}", to.display()))?;
    }
    let text = read(summary)?;
    let chapters: BTreeSet<PathBuf> = targets(&text).map(PathBuf::from).collect();
    write(&to.join("SUMMARY.md"), &text)?;
    let (mut defects, mut copied) = (Vec::new(), BTreeSet::new());
    for chapter in &chapters {
        let text = read(&repository.join(chapter))?;
        // mdBook gives the page of README.md the name index.html.
        let renamed = text.replace("README.md)", "index.md)").replace("README.md#", "index.md#");
        write(&to.join(chapter), &renamed)?;
        for target in targets(&without_code(&text)) {
            let Some(file) = in_repository(chapter, target) else { continue };
            let source = repository.join(&file);
            if !source.exists() {
                defects.push(format!("{}: {target} does not exist", chapter.display()));
            } else if source.is_dir() {
                list_directory(repository, &file, to, &mut copied)?;
            } else if file.extension().is_some_and(|extension| extension == "md") {
                if !chapters.contains(&file) {
                    defects.push(format!(
                        "{}: {target} is no chapter of site/chapters.txt",
                        chapter.display()
                    ));
                }
            } else if copied.insert(file.clone()) {
                copy(&source, &to.join(&file))?;
            }
        }
    }
    for directory in ["docs", "papers/results"] {
        for file in markdown_below(repository, Path::new(directory))? {
            if !chapters.contains(&file) {
                defects.push(format!("{} is no chapter of site/chapters.txt", file.display()));
            }
        }
    }
    Ok(defects)
}

/// A page that lists a directory's files, and the files.
fn list_directory(
    repository: &Path,
    directory: &Path,
    to: &Path,
    copied: &mut BTreeSet<PathBuf>,
) -> anyhow::Result<()> {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{0}</title><style>{LISTING}</style>\n<h1>{0}</h1><ul>\n",
        directory.display()
    );
    let mut names = Vec::new();
    for entry in fs::read_dir(repository.join(directory))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    for name in names.iter().filter(|name| !name.ends_with(".md")) {
        let file = directory.join(name);
        if copied.insert(file.clone()) {
            copy(&repository.join(&file), &to.join(&file))?;
        }
        writeln!(page, "<li><a href=\"{name}\">{name}</a>")?;
    }
    write(&to.join(directory).join("index.html"), &(page + "</ul>\n"))
}

/// The targets of inline links and of definitions.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let end = rest.find([')', ' ', '\n'])?;
        Some(rest[..end].trim_matches(['<', '>']))
    })
}

/// The text without fenced blocks.
fn without_code(text: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Where a link of `chapter` leads, from the root of the repository. `None` for other hosts, and for anchors of the same page.
fn in_repository(chapter: &Path, target: &str) -> Option<PathBuf> {
    let target = target.split('#').next().unwrap_or_default();
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut file = chapter.parent()?.to_owned();
    for component in Path::new(target).components() {
        match component {
            Component::ParentDir => {
                file.pop();
            }
            Component::Normal(name) => file.push(name),
            _ => {}
        }
    }
    Some(file)
}

fn markdown_below(repository: &Path, directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(repository.join(directory))? {
        let entry = entry?;
        let file = directory.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            found.extend(markdown_below(repository, &file)?);
        } else if file.extension().is_some_and(|extension| extension == "md") {
            found.push(file);
        }
    }
    Ok(found)
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    make_parent(file)?;
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    make_parent(to)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn make_parent(file: &Path) -> anyhow::Result<()> {
    let parent = file.parent().context("a file without a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_their_chapter() {
        let from = |target| in_repository(Path::new("docs/howto/program.md"), target);
        assert_eq!(from("../exec.md#limits"), Some("docs/exec.md".into()));
        assert_eq!(from("../../RESULTS.md"), Some("RESULTS.md".into()));
        assert_eq!(from("#here"), None);
        assert_eq!(from("https://example.org/a.md"), None);
    }

    #[test]
    fn a_chapter_that_is_missing_is_a_defect() {
        let place = std::env::temp_dir().join(format!("transom-site-{}", std::process::id()));
        for directory in ["docs", "papers/results"] {
            fs::create_dir_all(place.join(directory)).unwrap();
        }
        fs::write(place.join("SUMMARY.md"), "- [A](docs/a.md)\n").unwrap();
        fs::write(place.join("docs/a.md"), "[b](b.md) [c](c.rs)\n```\n[d](d.md)\n```\n").unwrap();
        fs::write(place.join("docs/b.md"), "").unwrap();
        let defects = stage(&place, &place.join("SUMMARY.md"), &place.join("out")).unwrap();
        let _ = fs::remove_dir_all(&place);
        assert_eq!(
            defects,
            [
                "docs/a.md: b.md is no chapter of site/chapters.txt",
                "docs/a.md: c.rs does not exist",
                "docs/b.md is no chapter of site/chapters.txt",
            ]
        );
    }
}
