//! A page that is filled while a run goes on.
//!
//! The page comes empty, with one script more than a written one has. It listens to a stream of events, each of which holds
//! the whole page as it is then: whoever joins late, or has missed some, needs only the next.

use serde_json::json;

use super::data::ReportData;
use super::{encode, page};

const SCRIPT: &str = include_str!("../assets/live.js");

/// Requests only to where the page comes from.
const POLICY: &str =
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

/// What the page is to show now. `state` says how far it is; `most` is how many points a curve may have.
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
