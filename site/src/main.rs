//! Builds the site of the documents with mdBook, and checks its links.
//!
//! `cargo run --manifest-path site/Cargo.toml` writes target/site/book, or `book` in the directory that its argument names. The chapters are the
//! Markdown files of the repository, in the order of site/chapters.txt. They stay where they are, so that their links work in the repository too.

mod links;
mod stage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

const CONFIG: &str = r#"
[book]
title = "Transom"
description = "A TCP you can see into and safely change, from user space"
language = "en"

[build]
build-dir = "book"

[output.html]
no-section-label = true
additional-css = ["transom.css"]
additional-js = ["tables.js"]

# Otherwise pages with Rust ask a server elsewhere what it could run.
[output.html.playground]
runnable = false

[output.html.fold]
enable = true
"#;

fn main() -> ExitCode {
    match build() {
        Ok(defects) if defects.is_empty() => ExitCode::SUCCESS,
        Ok(defects) => {
            for defect in &defects {
                eprintln!("{defect}");
            }
            eprintln!("site: {} defects", defects.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("site: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the site, and returns what is wrong with it.
fn build() -> anyhow::Result<Vec<String>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no repository")?;
    let place =
        std::env::args_os().nth(1).map_or_else(|| repository.join("target/site"), PathBuf::from);
    let summary = repository.join("site/chapters.txt");
    let mut defects = stage::stage(repository, &summary, &place.join("src"))?;
    for file in ["transom.css", "tables.js"] {
        let from = repository.join("site").join(file);
        std::fs::copy(&from, place.join(file))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let config: Config = CONFIG.parse()?;
    MDBook::load_with_config(&place, config)?.build()?;
    let (pages, broken) = links::check(&place.join("book"))?;
    defects.extend(broken);
    println!("site: {pages} pages in {}", place.join("book").display());
    Ok(defects)
}
