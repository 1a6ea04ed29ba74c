//! A page that is filled during a run.
//!
//! The page is sent empty, with an additional script. The script listens to a stream of events, each of which has the whole
//! page at that moment. So a late browser, or one that missed some, needs only the next.

use serde_json::json;

use super::data::ReportData;
use super::{encode, page};

const SCRIPT: &str = include_str!("../assets/live.js");

/// Requests only to where the page comes from.
pub(super) const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";

/// A page without contents that listens for them at `events`, an address on the same server.
pub fn live_page(title: &str, events: &str) -> String {
    let mut html = String::new();
    page::head(&mut html, title, POLICY);
    html += &format!(
        "<main data-events=\"{}\">\n<p id=\"state\" class=\"state\" role=\"status\">Waiting for the run …</p>\n\
         <div id=\"above\"></div>\n<div id=\"plots\"></div>\n<div id=\"below\"></div>\n\
         <noscript><p>Following a run needs JavaScript; the written report's tables do not.</p></noscript>\n</main>\n",
        crate::html::escape(events)
    );
    page::scripts(&mut html, &json!([]), SCRIPT);
    html
}

/// The present contents of the page. `state` is its progress; `most` is the largest number of points of a curve.
pub fn message(data: &ReportData, state: &str, done: bool, most: usize) -> String {
    let message = json!({
        "title": data.title,
        "state": state,
        "done": done,
        "above": page::above(data),
        "plots": page::sections(data),
        "below": page::below(data),
        "sections": encode::charts(&data.sections, most),
    });
    message.to_string()
}
