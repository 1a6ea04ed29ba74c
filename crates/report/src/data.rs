//! The contents of a report.

use super::block::{Block, Verdict};
use super::number::short;

/// Points as (seconds, value), or as (value of the horizontal axis, value). A value that is not finite is a gap in
/// the line. A point whose place on the horizontal axis is not finite is left out.
pub(crate) type Points = Vec<(f64, f64)>;

/// The contents of a report.
#[derive(Clone, Debug, Default)]
pub struct ReportData {
    /// The page's title.
    pub title: String,
    /// A sentence or two below the title.
    pub lead: String,
    /// The overall result, if there is one.
    pub verdict: Option<Verdict>,
    /// Headings of the result columns, such as the two directions; none for a single, obvious one.
    pub columns: Vec<String>,
    /// The results.
    pub summary: Vec<Row>,
    /// The parts before the charts: pictures and tables.
    pub blocks: Vec<Block>,
    /// The charts, in groups that share a time axis.
    pub sections: Vec<Section>,
    /// The parts after the charts.
    pub after: Vec<Block>,
    /// Notes for the reader, as free text.
    pub notes: Vec<String>,
    /// The command that produces this run again.
    pub command: String,
    /// A note on that command.
    pub command_note: String,
}

/// One line of the results.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The measured quantity.
    pub(crate) label: String,
    /// The result in each column, with its unit.
    pub(crate) values: Vec<String>,
    /// Whether it is as it must be, where that is a question.
    pub(crate) verdict: Option<bool>,
}

impl Row {
    /// A line with one result for each column.
    pub(crate) fn new<V: Into<String>>(
        label: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Row {
        let values = values.into_iter().map(Into::into).collect();
        Row { label: label.into(), values, verdict: None }
    }

    /// Marks the line as passed or failed.
    pub(crate) fn verdict(self, passed: bool) -> Row {
        Row { verdict: Some(passed), ..self }
    }
}

/// Charts that share a horizontal axis: zooming into one zooms all.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// The horizontal axis.
    pub across: HorizontalAxis,
    /// The charts, from top to bottom.
    pub charts: Vec<Chart>,
}

/// The horizontal axis of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum HorizontalAxis {
    /// Seconds.
    #[default]
    Time,
    /// A number.
    Number {
        /// Its label, with its unit.
        label: String,
        /// Whether equal distances are equal factors. Every place on the axis is above zero then.
        logarithmic: bool,
    },
    /// One of these, at 0, 1, 2 and so on.
    Names {
        /// Their label.
        label: String,
        /// The names.
        names: Vec<String>,
    },
}

impl Section {
    /// The places on the horizontal axis, if there are so few that each can have a mark.
    pub(crate) fn places(&self) -> Vec<f64> {
        let series = self.charts.iter().flat_map(|chart| &chart.series).map(|one| &one.points);
        let markers = self.charts.iter().flat_map(|chart| &chart.markers).map(|one| &one.points);
        let mut places: Vec<f64> = series.chain(markers).flatten().map(|(x, _)| *x).collect();
        places.retain(|x| x.is_finite());
        places.sort_by(f64::total_cmp);
        places.dedup();
        if places.len() > MOST_MARKS { Vec::new() } else { places }
    }
}

/// As many marks have room at an axis.
const MOST_MARKS: usize = 12;

/// One chart.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Chart {
    /// The heading.
    pub title: String,
    /// A sentence on how to read it; may be empty.
    pub caption: String,
    /// The label of the vertical axis.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// Whether its zero is always visible. Sequence numbers fill the chart instead.
    pub from_zero: bool,
    /// Whether equal distances on it are equal factors. Values that are not above zero have no place then. Only pictures show it
    /// ([`plot`](crate::plot)).
    pub logarithmic: bool,
    /// Curves.
    pub series: Vec<Series>,
    /// Events.
    pub(crate) markers: Vec<Markers>,
    /// Width and height of its picture, in pixels. Each row of the legend after the first adds to the height.
    pub size: (f64, f64),
}

/// A curve.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How its points are joined.
    pub style: Style,
    /// Its colour.
    pub hue: Hue,
    /// Its points, in the order of time.
    pub points: Points,
    /// The range of the values of a point, down and up: drawn as a band around a line over numbers, and as error bars otherwise. Empty, or one
    /// for each point.
    pub spread: Points,
    /// The file that a click on a point leads to, relative to the page. Empty, or one for each point; an empty text leads nowhere.
    pub links: Vec<String>,
}

/// Events at a time and a height.
#[derive(Clone, Debug)]
pub(crate) struct Markers {
    /// Their name in the legend.
    pub(crate) name: String,
    /// The shape of each point.
    pub(crate) shape: Shape,
    /// Their colour.
    pub(crate) hue: Hue,
    /// The points, in the order of time.
    pub(crate) points: Points,
}

/// How the points of a curve are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// By straight lines.
    Line,
    /// By steps: a value holds until the next.
    Step,
    /// Dashed steps, for a curve that belongs to another one of the same colour.
    Dashed,
    /// By dashed straight lines: a formula or a bound beside what was measured. Only pictures have them; a page shows dashed steps.
    Formula,
    /// Not at all.
    Dots,
    /// Not at all: each is a bar from the axis, beside those of other curves with bars. Only pictures have bars; a page shows dots.
    Bars,
}

/// The shape of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An ×.
    Cross,
    /// A triangle.
    Triangle,
    /// A ring.
    Ring,
}

/// A colour that differs from the others on light and on dark ground and for colour-blind readers (after Okabe and
/// Ito).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    /// Blue.
    Blue,
    /// Orange.
    Orange,
    /// Green.
    Green,
    /// Pink.
    Pink,
    /// Grey.
    Grey,
    /// Red.
    Red,
}

impl Hue {
    /// All of them, in the order in which curves are given theirs.
    pub const ALL: [Hue; 6] = [Hue::Blue, Hue::Orange, Hue::Green, Hue::Pink, Hue::Red, Hue::Grey];

    /// Its name in style sheets.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Hue::Blue => "blue",
            Hue::Orange => "orange",
            Hue::Green => "green",
            Hue::Pink => "pink",
            Hue::Grey => "grey",
            Hue::Red => "red",
        }
    }
}

impl Chart {
    /// A chart without curves, whose axis begins at zero.
    pub fn new(
        title: impl Into<String>,
        label: impl Into<String>,
        unit: impl Into<String>,
    ) -> Chart {
        Chart {
            title: title.into(),
            caption: String::new(),
            label: label.into(),
            unit: unit.into(),
            from_zero: true,
            logarithmic: false,
            series: Vec::new(),
            markers: Vec::new(),
            size: (1000.0, 400.0),
        }
    }

    /// Explains how to read the chart.
    pub(crate) fn caption(mut self, caption: impl Into<String>) -> Chart {
        self.caption = caption.into();
        self
    }

    /// Lets the axis begin where the values do.
    pub(crate) fn floating(mut self) -> Chart {
        self.from_zero = false;
        self
    }

    /// Adds a curve.
    pub fn series(
        mut self,
        name: impl Into<String>,
        style: Style,
        hue: Hue,
        points: Points,
    ) -> Chart {
        let (spread, links) = (Points::new(), Vec::new());
        self.series.push(Series { name: name.into(), style, hue, points, spread, links });
        self
    }

    /// Adds error bars to the curve added last: how far the values reach, down and up.
    pub fn spread(mut self, spread: Points) -> Chart {
        if let Some(last) = self.series.last_mut() {
            last.spread = spread;
        }
        self
    }

    /// Whether there is nothing to be seen in it.
    pub(crate) fn is_empty(&self) -> bool {
        let curves = self.series.iter().map(|series| &series.points);
        let events = self.markers.iter().map(|markers| &markers.points);
        let seen = |points: &Points| points.iter().any(|(_, y)| y.is_finite());
        !curves.chain(events).any(seen)
    }

    /// The chart as text: each curve with its least, its mean and its greatest value.
    pub fn alt_text(&self) -> String {
        let unit = &self.unit;
        let curves = self.series.iter().filter_map(|series| {
            let values = || series.points.iter().map(|(_, y)| *y).filter(|y| y.is_finite());
            let count = values().count();
            let (low, high) =
                (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
            let mean = values().sum::<f64>() / count as f64;
            let words = || {
                let [low, mean, high] = [low, mean, high].map(short);
                let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
                format!("{} from {low} to {high}{unit}, on average {mean}", series.name)
            };
            (count > 0).then(words)
        });
        let events = self.markers.iter().map(|one| format!("{}: {}", one.name, one.points.len()));
        let all: Vec<String> = curves.chain(events).collect();
        format!("{}. {}.", self.title, all.join("; "))
    }

    /// Adds events.
    pub fn markers(
        mut self,
        name: impl Into<String>,
        shape: Shape,
        hue: Hue,
        points: Points,
    ) -> Chart {
        self.markers.push(Markers { name: name.into(), shape, hue, points });
        self
    }
}
