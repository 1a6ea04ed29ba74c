//! Pictures as SVG, for the page and for PNG files.
//!
//! A picture has no colours of its own. Its parts have classes. Their colours come from the page's style sheet (light or dark,
//! as the reader's system is set) or, in a separate file, from the light palette below. All numbers have one digit after the
//! point, so the same picture has the same bytes everywhere.

use std::fmt::{self, Write as _};

use super::Hue;
use crate::html::escape;

/// A picture, for a page or a separate file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Svg {
    /// In pixels.
    pub(crate) width: f64,
    /// In pixels.
    pub(crate) height: f64,
    body: String,
}

/// The alignment of a text at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// `write!` to a string, which cannot fail.
macro_rules! put {
    ($svg:expr, $($piece:tt)*) => {
        let _ = write!($svg.body, $($piece)*);
    };
}

impl Svg {
    /// An empty picture of this size in pixels.
    pub(crate) fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new() }
    }

    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        put!(
            self,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A rectangle with rounded corners.
    pub(crate) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), round: f64) {
        let ((x, y), (width, height)) = (at, size);
        put!(
            self,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"{round:.1}\"/>"
        );
    }

    /// A rectangle whose colour is as strong as `shade`, from 0 to 1.
    pub(crate) fn shaded(&mut self, class: &str, at: (f64, f64), size: (f64, f64), shade: f64) {
        let ((x, y), (width, height)) = (at, size);
        put!(
            self,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill-opacity=\"{shade:.2}\"/>"
        );
    }

    /// What follows, until [`Svg::end_link`], leads to a file beside the page or below it.
    pub(crate) fn link(&mut self, path: &str) {
        put!(self, "<a href=\"{}\">", escape(path));
    }

    /// Ends what [`Svg::link`] began.
    pub(crate) fn end_link(&mut self) {
        self.body.push_str("</a>");
    }

    /// A circle.
    pub(crate) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64) {
        let (x, y) = at;
        put!(self, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"/>");
    }

    /// A path in SVG's own language, which the caller has written from numbers alone.
    pub(crate) fn path(&mut self, class: &str, path: &str) {
        put!(self, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// A line of text.
    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let (x, y) = at;
        put!(
            self,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{}\">{}</text>",
            anchor.word(),
            escape(text)
        );
    }

    /// A line of text from below to above, in the middle of its point.
    pub(crate) fn upright(&mut self, class: &str, at: (f64, f64), text: &str) {
        let (x, y) = at;
        put!(
            self,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 {x:.1} {y:.1})\">{}</text>",
            escape(text)
        );
    }

    /// Clips everything until [`Svg::end`] at this rectangle. `name` must be unique in the picture.
    pub(crate) fn clip(&mut self, name: &str, at: (f64, f64), size: (f64, f64)) {
        let ((x, y), (width, height)) = (at, size);
        put!(
            self,
            "<clipPath id=\"{name}\"><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/></clipPath><g clip-path=\"url(#{name})\">"
        );
    }

    /// Ends what [`Svg::clip`] began.
    pub(crate) fn end(&mut self) {
        self.body.push_str("</g>");
    }

    /// Several pictures below each other, with a title above.
    pub(crate) fn stack(title: &str, pictures: &[Svg]) -> Svg {
        const TITLE: f64 = 36.0;
        let width = pictures.iter().map(|one| one.width).fold(0.0, f64::max);
        let mut stacked = Svg::new(width, TITLE);
        stacked.text("title", (16.0, 24.0), Anchor::Start, title);
        for (number, Svg { height, body, .. }) in pictures.iter().enumerate() {
            // Each picture has one clip path of this name.
            let own = format!("area-{number}");
            let body = body.replace("id=\"area\"", &format!("id=\"{own}\""));
            let body = body.replace("url(#area)", &format!("url(#{own})"));
            put!(stacked, "<g transform=\"translate(0 {:.1})\">{body}</g>", stacked.height);
            stacked.height += height;
        }
        stacked
    }

    /// As a part of a page: `alternative` is what it shows, in words.
    pub(crate) fn inline(&self, alternative: &str) -> String {
        let Svg { width, height, body } = self;
        format!(
            "<svg class=\"drawing\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             role=\"img\" aria-label=\"{}\">{body}</svg>",
            escape(alternative)
        )
    }
}

/// As a separate file, on white ground.
impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Svg { width, height, body } = self;
        let mut hues = String::new();
        for (hue, colour) in LIGHT {
            let name = hue.name();
            let _ = write!(hues, ".s-{name}{{stroke:{colour}}}.f-{name}{{fill:{colour}}}");
        }
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\"><style>{COLOURS}{SHAPES}{hues}</style>\
             <rect width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#fff\"/>{body}</svg>"
        )
    }
}

impl Anchor {
    fn word(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// How wide a text is at most, in pixels, at this size of letters; no font on the way is wider on average.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.62
}

/// The style sheet's light colours of curves.
const LIGHT: [(Hue, &str); 6] = [
    (Hue::Blue, "#0067a8"),
    (Hue::Orange, "#c75b00"),
    (Hue::Green, "#00805d"),
    (Hue::Pink, "#a6508a"),
    (Hue::Grey, "#6b7480"),
    (Hue::Red, "#cc2222"),
];

/// The light colours of everything else.
const COLOURS: &str = ".band{fill-opacity:.16;stroke:none}text{fill:#1b1f24}.halo{stroke:#fff}.muted{fill:#5a6472}.wire{stroke:#9aa5b3}.node{fill:#f6f7f9;stroke:#5a6472}\
    .router{fill:#5a6472;stroke:#5a6472}.grid{stroke:#e8ebef}.axis{stroke:#d9dee5}.s-text{stroke:#5a6472}.f-text{fill:#5a6472}";

/// The style that light and dark share; the page's style sheet has it too.
pub(super) const SHAPES: &str = include_str!("../assets/drawing.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_numbers_are_rounded() {
        let mut svg = Svg::new(10.0, 20.0);
        svg.text("name", (1.0 / 3.0, 2.0), Anchor::Middle, "<a & b>");
        let inline = svg.inline("\"quoted\"");
        assert!(inline.contains("x=\"0.3\" y=\"2.0\" text-anchor=\"middle\">&lt;a &amp; b&gt;"));
        assert!(inline.contains("aria-label=\"&quot;quoted&quot;\""));
        assert!(svg.to_string().contains(".s-blue{stroke:#0067a8}"));
    }

    #[test]
    fn a_file_has_the_light_colours_of_the_page() {
        let (light, _) = include_str!("../assets/page.css").split_once("@media").unwrap();
        for (hue, colour) in LIGHT {
            assert!(light.contains(&format!("--{}: {colour};", hue.name())), "{hue:?}");
        }
    }
}
