//! The page on which a scenario is played with (`transom lab play`).
//!
//! It is sent empty. Its script asks the server for scenarios, makes a control of each value, and listens to a stream of pictures for each side.

use serde_json::json;

use super::live::POLICY;
use super::page;

const STYLE: &str = include_str!("../assets/play.css");
const SCRIPT: &str = include_str!("../assets/play.js");
const CONTROLS: &str = include_str!("../assets/play-controls.js");
const BODY: &str = include_str!("../assets/play.html");

/// A page that plays with scenarios. It asks for them at `/bases`, `/base`, `/words`, `/run`, `/moment`, `/scenario` and `/page`, on the server
/// that it comes from.
pub fn play_page() -> String {
    let mut html = String::new();
    page::head(&mut html, "Play with TCP", POLICY);
    html += &format!("<style>\n{STYLE}</style>\n{BODY}");
    page::scripts(&mut html, &json!([]), &format!("{CONTROLS}{SCRIPT}"));
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_and_asks_nobody_else() {
        let page = play_page();
        assert!(page.contains("connect-src 'self'") && page.contains("var uPlot="));
        for elsewhere in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
        assert!(page.trim_end().ends_with("</html>"));
    }
}
