//! Finds the markers: ids in brackets, within comments, and the item each belongs to.
//!
//! A comment belongs to the item that follows it, else to the one it stands within; behind code on
//! the same line, to what that code is part of. What counts as a test: files under a crate's
//! `tests`, files named `tests.rs` or under a directory of that name, modules declared
//! `#[cfg(test)]` wherever their file is, and test functions.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use crate::lex::{Comment, Doc, Token, lex};
use crate::outline::{Item, outline};

/// A requirement's id in brackets, in a comment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Marker {
    pub(crate) id: String,
    /// The file, below `crates/`, with forward slashes.
    pub(crate) file: String,
    /// The item it belongs to, unless it is the file's own.
    pub(crate) item: Option<String>,
    /// Whether that is a function or within one.
    pub(crate) in_fn: bool,
    /// Whether it marks a test, or else the code.
    pub(crate) test: bool,
    /// Whether that test is skipped by default.
    pub(crate) ignored: bool,
    pub(crate) line: usize,
}

/// What is in a file, or in all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) markers: Vec<Marker>,
    /// Things that look like markers and are none, as messages.
    pub(crate) malformed: Vec<String>,
    /// How many files were read.
    pub(crate) files: usize,
}

/// Scans `crates/*/src` and `crates/*/tests` below the root.
pub(crate) fn workspace(root: &Path) -> io::Result<Found> {
    let crates = root.join("crates");
    let mut paths = vec![];
    for entry in fs::read_dir(&crates)? {
        let package = entry?.path();
        sources(&package.join("src"), &mut paths)?;
        sources(&package.join("tests"), &mut paths)?;
    }
    paths.sort();
    let mut files = vec![];
    for path in paths {
        let below = path.strip_prefix(&crates).unwrap_or(&path).to_owned();
        files.push((below, fs::read_to_string(&path)?));
    }
    Ok(scan(&files))
}

/// Collects the Rust files of a folder that need not exist.
fn sources(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Scans files given by their path below `crates/` and their content.
pub(crate) fn scan(files: &[(PathBuf, String)]) -> Found {
    let read: Vec<_> = files
        .iter()
        .map(|(path, source)| {
            let (tokens, comments) = lex(source);
            let outline = outline(&tokens);
            (path, tokens, comments, outline)
        })
        .collect();
    // A module compiled for tests only takes its file, and all below it, along.
    let test_modules: BTreeSet<PathBuf> = read
        .iter()
        .flat_map(|(path, _, _, outline)| {
            outline.test_modules.iter().map(|name| children(path).join(name))
        })
        .collect();

    let mut found = Found { files: files.len(), ..Found::default() };
    for (path, tokens, comments, outline) in &read {
        let test_file = is_test_path(path)
            || outline.test
            || path.with_extension("").ancestors().any(|module| test_modules.contains(module));
        let file = display(path);
        for comment in comments {
            let item = outline.at(owner(comment, tokens));
            for id in ids(comment, &file, &mut found.malformed) {
                found.markers.push(marker(id, &file, comment.line, item, test_file));
            }
        }
    }
    found
}

fn marker(id: String, file: &str, line: usize, item: Option<&Item>, test_file: bool) -> Marker {
    Marker {
        id,
        file: file.to_owned(),
        item: item.and_then(|item| item.path.clone()),
        in_fn: item.is_some_and(|item| item.in_fn),
        test: test_file || item.is_some_and(|item| item.test),
        ignored: item.is_some_and(|item| item.ignored),
        line,
    }
}

/// The token that stands for the place of a comment: of the items that hold it, the innermost owns
/// the comment.
fn owner(comment: &Comment, tokens: &[Token]) -> usize {
    let next = comment.before;
    let Some(previous) = next.checked_sub(1) else {
        // At the head of a file, `//!` belongs to no item.
        return if comment.doc == Doc::Inner { usize::MAX } else { next };
    };
    let behind_code = tokens[previous].line == comment.line;
    match comment.doc {
        Doc::Inner => previous,
        Doc::No if behind_code => previous,
        Doc::No | Doc::Outer => next,
    }
}

/// The ids a comment marks; what looks like a marker and is none goes to `malformed`.
fn ids(comment: &Comment, file: &str, malformed: &mut Vec<String>) -> Vec<String> {
    let mut ids = vec![];
    for rest in comment.text.split('[').skip(1) {
        let Some(id) = label(rest).or_else(|| section(rest)) else { continue };
        if rest[id.len()..].starts_with(']') {
            ids.push(id.to_owned());
        } else {
            let line = comment.line;
            malformed
                .push(format!("crates/{file}:{line}: `[{id}` is not closed: one id in each [ ]"));
        }
    }
    ids
}

/// The label at the start of a text, as RFC 9293 has them: `MUST-12`.
fn label(text: &str) -> Option<&str> {
    const PREFIXES: [&str; 6] = ["MUST-", "SHLD-", "MAY-", "REC-", "SHOULD-", "RECOMMENDED-"];
    let prefix = PREFIXES.into_iter().find(|prefix| text.starts_with(prefix))?;
    number(text, prefix.len())
}

/// The id at the start of a text, of a requirement that is named after its section: `RFC8200-4.5-12`.
fn section(text: &str) -> Option<&str> {
    let document = number(text, "RFC".len()).filter(|_| text.starts_with("RFC"))?;
    let rest = text.get(document.len()..)?.strip_prefix('-')?;
    let section = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).filter(|len| *len > 0)?;
    rest.get(section..)?.strip_prefix('-')?;
    number(text, document.len() + 1 + section + 1)
}

/// The start of a text up to the end of the number at `at`.
fn number(text: &str, at: usize) -> Option<&str> {
    let digits = text.get(at..)?.chars().take_while(char::is_ascii_digit).count();
    text.get(..at + digits).filter(|_| digits > 0)
}

fn is_test_path(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
        || path.components().any(|part| part == Component::Normal("tests".as_ref()))
}

/// The folder that holds the modules a file declares.
fn children(path: &Path) -> PathBuf {
    let root = ["lib.rs", "main.rs", "mod.rs"];
    if path.file_name().is_some_and(|name| root.iter().any(|root| name == *root)) {
        path.parent().map(Path::to_owned).unwrap_or_default()
    } else {
        path.with_extension("")
    }
}

fn display(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests;
