//! Checks the links of the pages that were built.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Follows each link of each page below `book`. Returns the number of pages, and the links that lead nowhere.
///
/// # Errors
/// A page cannot be read.
pub fn check(book: &Path) -> anyhow::Result<(usize, Vec<String>)> {
    let mut pages = BTreeMap::new();
    collect(book, &mut pages)?;
    let anchors: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(page, text)| (page, values(text, "id=\"").collect())).collect();
    let mut broken = BTreeSet::new();
    for (page, text) in &pages {
        // The page for printing holds the chapters' links again, from another place. The page for a wrong address has links from the root.
        if page.ends_with("print.html") || page.ends_with("404.html") {
            continue;
        }
        let name = page.strip_prefix(book).unwrap_or(page).display();
        broken.extend(requests(text).map(|what| format!("{name}: {what} is asked for elsewhere")));
        for link in values(text, "href=\"").chain(values(text, "src=\"")) {
            if link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { resolve(page, file) };
            if !target.exists() {
                broken.insert(format!("{name}: {link} does not exist"));
            } else if let Some(ids) = anchors.get(&target)
                && !anchor.is_empty()
                && !ids.contains(anchor)
            {
                broken.insert(format!("{name}: {link}: the page has no such heading"));
            }
        }
    }
    Ok((pages.len(), broken.into_iter().collect()))
}

/// What a browser would ask other servers for when it opens a page: files that are no links, and the server for Rust that its script asks.
fn requests(text: &str) -> impl Iterator<Item = &str> {
    let sources = values(text, "src=\"").filter(|source| is_elsewhere(source));
    let sheets = text.split("<link ").skip(1).filter_map(|tag| {
        let tag = tag.split('>').next()?;
        values(tag, "href=\"").find(|target| is_elsewhere(target))
    });
    let playground = text.contains("class=\"playground\"").then_some("a server for Rust");
    sources.chain(sheets).chain(playground)
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("//")
}

fn collect(directory: &Path, pages: &mut BTreeMap<PathBuf, String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(path, text);
        }
    }
    Ok(())
}

/// The values of an attribute.
fn values<'a>(text: &'a str, attribute: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next())
}

fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut target = page.parent().unwrap_or(page).to_owned();
    for part in link.split('/') {
        match part {
            ".." => {
                target.pop();
            }
            "." | "" => {}
            name => target.push(name),
        }
    }
    if target.is_dir() { target.join("index.html") } else { target }
}
