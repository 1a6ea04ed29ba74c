//! Tables, as HTML.

use std::fmt::Write as _;

use super::block::{Cell, Table};
use super::data::{ReportData, Row};
use crate::html::{escape, put};

/// A text of more letters may be put into several lines.
const LONG: usize = 28;

/// The results, a line for each.
pub(super) fn summary(page: &mut String, data: &ReportData) {
    if data.summary.is_empty() {
        return;
    }
    page.push_str("<div class=\"scroll\"><table class=\"summary\">\n");
    if !data.columns.is_empty() {
        page.push_str("<thead><tr><td></td>");
        for column in &data.columns {
            put!(page, "<th scope=\"col\">{}</th>", escape(column));
        }
        page.push_str("</tr></thead>\n");
    }
    page.push_str("<tbody>\n");
    for Row { label, values, verdict } in &data.summary {
        put!(page, "<tr><th scope=\"row\">{}</th>", escape(label));
        for (column, value) in values.iter().enumerate() {
            // A line with fewer results than columns has one that is about all the rest.
            let last = column + 1 == values.len();
            let span = if last { data.columns.len().saturating_sub(column).max(1) } else { 1 };
            put!(page, "<td colspan=\"{span}\">{}", escape(value));
            if let (true, Some(passed)) = (last, verdict) {
                put!(page, " {}", word(*passed));
            }
            page.push_str("</td>");
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn word(passed: bool) -> &'static str {
    if passed { "<span class=\"pass\">passed</span>" } else { "<span class=\"fail\">failed</span>" }
}

/// A table with its heading.
pub(super) fn table(page: &mut String, table: &Table) {
    let Table { title, caption, head, rows } = table;
    put!(page, "<section>\n<h2>{}</h2>\n", escape(title));
    if !caption.is_empty() {
        put!(page, "<p class=\"caption\">{}</p>\n", escape(caption));
    }
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table class=\"table\">\n<thead><tr>",
        escape(title)
    );
    for heading in head {
        let class = if heading.number { " class=\"number\"" } else { "" };
        put!(page, "<th scope=\"col\"{class}>{}</th>", escape(&heading.text));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let number = head.get(column).is_some_and(|heading| heading.number);
            // Sentences have several lines, and everything else has one.
            let class = match number {
                true => " class=\"number\"",
                false if cell.text.chars().count() > LONG => " class=\"long\"",
                false => "",
            };
            let element = if column == 0 { "th scope=\"row\"" } else { "td" };
            let end = if column == 0 { "th" } else { "td" };
            put!(page, "<{element}{class}>{}</{end}>", contents(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n</section>\n");
}

fn contents(cell: &Cell) -> String {
    let Cell { text, hue, verdict, link } = cell;
    let mut html = String::new();
    if let Some(hue) = hue {
        put!(html, "<span class=\"chip b-{}\"></span>", hue.name());
    }
    let mut inner = escape(text);
    if let Some(passed) = verdict {
        if !inner.is_empty() {
            inner.push(' ');
        }
        inner += word(*passed);
    }
    match link {
        Some(link) => {
            put!(html, "<a href=\"{}\">{inner}</a>", escape(link));
        }
        None => html += &inner,
    }
    html
}
