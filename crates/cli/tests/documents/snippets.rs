//! The code of a Markdown page: its fences, and its spans of inline code.
//!
//! The words behind the backticks of a fence say what is done with it:
//!
//! | fence | what is done |
//! |---|---|
//! | `console` | the commands behind `$` run in this order, and print the lines below them |
//! | `sh` | each line runs |
//! | `sh not run: REASON` | only the words of the command lines are checked |
//! | `toml NAME` | becomes the file NAME before commands of the page run |
//! | `rust`, `c`, `python` | compiled, or run, by tests of the crates that have what they need |
//! | `text` | holds no command: output, drawings, records |

use std::fs;
use std::path::{Path, PathBuf};

/// What stands before the reason why a fence is not run.
pub const NOT_RUN: &str = "not run: ";

/// A block of code.
#[derive(Debug)]
pub struct Fence {
    /// The number of its first line, from one.
    pub line: usize,
    /// The first word behind the backticks.
    pub language: String,
    /// What follows it.
    pub note: String,
    pub lines: Vec<String>,
}

impl Fence {
    /// Why it is not run, if it says so.
    pub fn reason(&self) -> Option<&str> {
        self.note.strip_prefix(NOT_RUN)
    }

    /// Its command lines with their numbers. A line that ends with a backslash goes on in the next.
    pub fn commands(&self) -> Vec<(usize, String)> {
        let mut commands = Vec::<(usize, String)>::new();
        let mut goes_on = false;
        for (number, line) in self.lines.iter().enumerate() {
            let text = line.strip_suffix('\\').unwrap_or(line);
            if goes_on {
                commands.last_mut().expect("a line went on").1.push_str(text.trim_start());
            } else if !text.trim().is_empty() && !text.starts_with('#') {
                commands.push((self.line + number, text.to_owned()));
            }
            goes_on = text.len() < line.len();
        }
        commands
    }
}

/// The fences of a page.
pub fn fences(page: &str) -> Vec<Fence> {
    let (mut fences, mut open) = (Vec::new(), None::<Fence>);
    for (number, line) in page.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => fences.extend(open.take()),
            (Some(information), None) => {
                let (language, note) = information.split_once(' ').unwrap_or((information, ""));
                let (language, note) = (language.to_owned(), note.trim().to_owned());
                open = Some(Fence { line: number + 2, language, note, lines: Vec::new() });
            }
            (None, Some(fence)) => fence.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    fences
}

/// The spans of inline code, with the numbers of their lines.
pub fn spans(page: &str) -> Vec<(usize, String)> {
    let (mut spans, mut inside) = (Vec::new(), false);
    for (number, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            let code = line.split('`').skip(1).step_by(2);
            spans.extend(code.map(|code| (number + 1, code.to_owned())));
        }
    }
    spans
}

/// The documents for readers, by their paths below the repository. What a command writes is made of what is tested elsewhere.
pub fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        ["README.md", "SECURITY.md", "CONTRIBUTING.md", "python/README.md"].map(Into::into).into();
    let mut directories = vec![PathBuf::from("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory)).unwrap() {
            let path = directory.join(entry.unwrap().file_name());
            let generated =
                ["papers", "conformance", "reference"].map(|name| Path::new("docs").join(name));
            if root.join(&path).is_dir() {
                if !generated.contains(&path) {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let path = Path::new("crates").join(entry.unwrap().file_name()).join("README.md");
        if root.join(&path).exists() {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// The examples in the help of a command, without the explanations behind or below them.
pub fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    let commands = lines.filter(|line| !line.starts_with("   "));
    commands.map(|line| line.trim().split("   ").next().unwrap_or_default().to_owned()).collect()
}
