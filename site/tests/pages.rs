//! Each page of the site in a browser, in a window as wide as that of a telephone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../crates/cli/tests/support/browser.rs"]
mod browser;

use browser::Browser;

/// The width of the window.
const WIDTH: u32 = 400;
/// How long all pages may take together, on a machine that is busy elsewhere.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a page asks other servers for: the files that its elements name, and those that its styles and scripts have asked for.
const ELSEWHERE: &str = "(() => {
    const named = [...document.querySelectorAll('link[href]:not([rel=canonical]), [src]')]
        .map((element) => element.getAttribute('href') ?? element.getAttribute('src'));
    const asked = performance.getEntriesByType('resource').map((entry) => entry.name);
    return [...named, ...asked].filter((what) => /^(https?:)?\\/\\//.test(what)).join(' ');
})()";

/// The innermost elements that are wider than the window, outside of those that scroll by themselves.
const WIDEST: &str = "[...document.body.querySelectorAll('*')].filter((element) => {
    for (let around = element.parentElement; around && around !== document.body; around = around.parentElement)
        if (getComputedStyle(around).overflowX !== 'visible') return false;
    const box = element.getBoundingClientRect();
    return box.left + Math.max(box.width, element.scrollWidth) > innerWidth;
}).slice(-2).map((element) => element.outerHTML.slice(0, 80)).join('; ')";

/// The pages below a directory, in their order. The page for printing has all chapters again, each of which is looked at alone.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "html")
                && !path.ends_with("print.html")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_page_fits_a_telephone_and_asks_nobody_else() {
    let Some(mut browser) = Browser::start() else { return };
    let place = tempfile::tempdir().unwrap();
    let built = Command::new(env!("CARGO_BIN_EXE_transom-site")).arg(place.path()).output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let book = place.path().join("book");
    let pages = pages(&book);
    assert!(pages.len() > 100, "the site has {} pages", pages.len());
    browser.resize(WIDTH, 800);
    let end = Instant::now() + PATIENCE;
    let mut defects = Vec::new();
    for page in &pages {
        assert!(Instant::now() < end, "{PATIENCE:?} were not enough for {} pages", pages.len());
        let name = page.strip_prefix(&book).unwrap().display();
        browser.open(&format!("file://{}", page.display()));
        let width = browser.evaluate("document.documentElement.scrollWidth").as_u64().unwrap();
        if width > u64::from(WIDTH) {
            let widest = browser.evaluate(WIDEST);
            defects.push(format!("{name} is {width} pixels wide: {widest}"));
        }
        let elsewhere = browser.evaluate(ELSEWHERE);
        if elsewhere != "" {
            defects.push(format!("{name} asks elsewhere: {elsewhere}"));
        }
    }
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}
