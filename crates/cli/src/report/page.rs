//! The page itself.

use std::fmt::Write as _;

use super::data::{ReportData, Row};
use super::encode;
use crate::html::escape;

const STYLE: &str = include_str!("../../assets/report/page.css");
const SCRIPT: &str = include_str!("../../assets/report/page.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const UPLOT_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");

/// No requests of any kind; styles and scripts only from within the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The whole page.
pub(crate) fn render(data: &ReportData) -> String {
    let mut page = String::with_capacity(256 * 1024);
    head(&mut page, data);
    summary(&mut page, data);
    sections(&mut page, data);
    notes(&mut page, data);
    scripts(&mut page, data);
    page
}

/// `write!` to a string, which cannot fail.
macro_rules! put {
    ($page:expr, $($piece:tt)*) => {
        let _ = write!($page, $($piece)*);
    };
}

fn head(page: &mut String, data: &ReportData) {
    let title = escape(&data.title);
    put!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{UPLOT_STYLE}\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n"
    );
    if !data.lead.is_empty() {
        put!(page, "<p class=\"lead\">{}</p>\n", escape(&data.lead));
    }
}

fn summary(page: &mut String, data: &ReportData) {
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
                let (class, word) = if *passed { ("pass", "passed") } else { ("fail", "failed") };
                put!(page, " <span class=\"{class}\">{word}</span>");
            }
            page.push_str("</td>");
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn sections(page: &mut String, data: &ReportData) {
    if data.sections.is_empty() {
        return;
    }
    page.push_str(
        "<p class=\"hint\">Drag across a chart to zoom in, double-click to see all again; the charts of a \
         section move together. Click a name in a legend to hide its curve.</p>\n\
         <noscript><p class=\"hint\">The charts need JavaScript; it is all inside this page.</p></noscript>\n",
    );
    for (number, section) in data.sections.iter().enumerate() {
        put!(page, "<section>\n<h2>{}</h2>\n", escape(&section.title));
        for (index, chart) in section.charts.iter().enumerate() {
            put!(page, "<figure>\n<figcaption><h3>{}</h3>", escape(&chart.title));
            if !chart.caption.is_empty() {
                put!(page, "<p>{}</p>", escape(&chart.caption));
            }
            put!(
                page,
                "</figcaption>\n<div class=\"chart\" data-section=\"{number}\" data-chart=\"{index}\" \
                 role=\"img\" aria-label=\"{}\"></div>\n</figure>\n",
                escape(&chart.title)
            );
        }
        page.push_str("</section>\n");
    }
}

fn notes(page: &mut String, data: &ReportData) {
    if !data.notes.is_empty() {
        page.push_str("<h2>Notes</h2>\n<ul>\n");
        for note in &data.notes {
            put!(page, "<li>{}</li>\n", escape(note));
        }
        page.push_str("</ul>\n");
    }
    if !data.command.is_empty() {
        put!(page, "<h2>Run it again</h2>\n<pre><code>{}</code></pre>\n", escape(&data.command));
    }
    page.push_str("</main>\n");
}

fn scripts(page: &mut String, data: &ReportData) {
    // The first line of uPlot's file is a comment with its address; its licence says more.
    let (_, uplot) = UPLOT_SCRIPT.split_once('\n').unwrap_or(("", UPLOT_SCRIPT));
    put!(
        page,
        "<script type=\"application/json\" id=\"charts\">{}</script>\n\
         <script>\n/*! uPlot\n\n{UPLOT_LICENCE}*/\n{uplot}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        script_data(&encode::charts(&data.sections))
    );
}

/// JSON that cannot end the script element it is in. These characters occur only inside strings, where the
/// escapes mean the same.
fn script_data(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
