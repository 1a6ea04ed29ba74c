//! The page itself.

use std::fmt::Write as _;

use super::block::{Block, Drawing};
use super::data::{ReportData, Section};
use super::svg::SHAPES;
use super::{MOST_POINTS, encode, table};
use crate::html::{escape, put};

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const UPLOT_STYLE: &str = include_str!("../assets/uplot/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const UPLOT_LICENCE: &str = include_str!("../assets/uplot/LICENSE");

/// No requests of any kind; styles and scripts only from within the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The page, as HTML.
pub fn render(data: &ReportData) -> String {
    let mut page = String::with_capacity(256 * 1024);
    head(&mut page, &data.title, POLICY);
    put!(
        page,
        "<main>\n<div id=\"above\">\n{}</div>\n<div id=\"plots\">\n{}</div>\n<div id=\"below\">\n{}</div>\n</main>\n",
        above(data),
        sections(data),
        below(data)
    );
    scripts(&mut page, &encode::charts(&data.sections, MOST_POINTS), "");
    page
}

/// Everything before the contents.
pub(super) fn head(page: &mut String, title: &str, policy: &str) {
    put!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{UPLOT_STYLE}\n{STYLE}{SHAPES}</style>\n</head>\n<body>\n",
        escape(title)
    );
}

/// The part above the charts.
pub(super) fn above(data: &ReportData) -> String {
    let mut page = String::new();
    put!(page, "<h1>{}</h1>\n", escape(&data.title));
    if !data.lead.is_empty() {
        put!(page, "<p class=\"lead\">{}</p>\n", escape(&data.lead));
    }
    if let Some(verdict) = &data.verdict {
        let class = if verdict.passed { "pass" } else { "fail" };
        put!(page, "<p class=\"verdict {class}\">{}</p>\n", escape(&verdict.text));
    }
    table::summary(&mut page, data);
    data.blocks.iter().for_each(|block| put_block(&mut page, block));
    page
}

fn put_block(page: &mut String, block: &Block) {
    match block {
        Block::Drawing(drawing) => draw(page, drawing),
        Block::Table(table) => table::table(page, table),
    }
}

fn draw(page: &mut String, drawing: &Drawing) {
    let Drawing { title, caption, alternative, picture } = drawing;
    put!(page, "<section>\n<h2>{}</h2>\n", escape(title));
    if !caption.is_empty() {
        put!(page, "<p class=\"caption\">{}</p>\n", escape(caption));
    }
    // Content that is wider than the page can be scrolled, with the keyboard too.
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</div>\n</section>\n",
        escape(title),
        picture.inline(alternative)
    );
}

/// The places of the charts.
pub(super) fn sections(data: &ReportData) -> String {
    let mut page = String::new();
    if data.sections.is_empty() {
        return page;
    }
    page.push_str(
        "<p class=\"hint\">Drag across a chart to zoom in, double-click to see all again; the charts of a \
         section move together. Click a name in a legend to hide its curve.</p>\n\
         <noscript><p class=\"hint\">The charts need JavaScript; it is all inside this page.</p></noscript>\n",
    );
    for (number, section) in data.sections.iter().enumerate() {
        put_section(&mut page, number, section);
    }
    page
}

fn put_section(page: &mut String, number: usize, section: &Section) {
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

/// The part below the charts.
pub(super) fn below(data: &ReportData) -> String {
    let mut page = String::new();
    data.after.iter().for_each(|block| put_block(&mut page, block));
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
    if !data.command_note.is_empty() {
        put!(page, "<p class=\"caption\">{}</p>\n", escape(&data.command_note));
    }
    page
}

/// The charts' data and the scripts, `more` last, and the end of the page.
pub(super) fn scripts(page: &mut String, charts: &serde_json::Value, more: &str) {
    put!(
        page,
        "<script type=\"application/json\" id=\"charts\">{}</script>\n",
        script_data(charts)
    );
    uplot(page);
    put!(page, "<script>\n{SCRIPT}</script>\n");
    if !more.is_empty() {
        put!(page, "<script>\n{more}</script>\n");
    }
    page.push_str("</body>\n</html>\n");
}

/// The library of charts.
pub(super) fn uplot(page: &mut String) {
    // The first line of uPlot's file is a comment with its address; its licence says more.
    let (_, uplot) = UPLOT_SCRIPT.split_once('\n').unwrap_or(("", UPLOT_SCRIPT));
    put!(page, "<script>\n/*! uPlot\n\n{UPLOT_LICENCE}*/\n{uplot}</script>\n");
}

/// JSON that cannot end the script element it is in. These characters occur only inside strings, where the
/// escapes mean the same.
fn script_data(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
