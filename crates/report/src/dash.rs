//! The page of all connections (`transom dash`).
//!
//! It is sent empty. Its script listens to a stream of events, draws the lines of the table that are in sight, and the courses of the chosen
//! connection.

use super::live::POLICY;
use super::page;

const STYLE: &str = include_str!("../assets/dash.css");
const SCRIPT: &str = include_str!("../assets/dash.js");
const BODY: &str = include_str!("../assets/dash.html");

/// A page that shows connections. It listens for them at `/events?filter=FILTER`, on the server that it comes from.
pub fn dash_page() -> String {
    let mut html = String::new();
    page::head(&mut html, "Connections", POLICY);
    html += &format!("<style>\n{STYLE}</style>\n{BODY}");
    page::uplot(&mut html);
    html += &format!("<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_and_asks_nobody_else() {
        let page = dash_page();
        assert!(page.contains("connect-src 'self'") && page.contains("var uPlot="));
        assert!(page.contains("Permission is hereby granted"), "the library's licence");
        for elsewhere in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
        assert!(page.trim_end().ends_with("</html>"));
    }
}
