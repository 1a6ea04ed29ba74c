//! What a report shows.

/// Points as (seconds, value). A value that is not finite is a gap in the line; a point whose time is not
/// finite is left out.
pub(crate) type Points = Vec<(f64, f64)>;

/// The contents of a report.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportData {
    /// The page's title.
    pub(crate) title: String,
    /// A sentence or two below the title.
    pub(crate) lead: String,
    /// Headings of the result columns, such as the two directions; none for a single, obvious one.
    pub(crate) columns: Vec<String>,
    /// The results.
    pub(crate) summary: Vec<Row>,
    /// The charts, in groups that share a time axis.
    pub(crate) sections: Vec<Section>,
    /// What the reader should know, in free words.
    pub(crate) notes: Vec<String>,
    /// The command that produces this run again.
    pub(crate) command: String,
}

/// One line of the results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// What was measured.
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

/// Charts that share a time axis: zooming into one zooms all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// The heading.
    pub(crate) title: String,
    /// The charts, from top to bottom.
    pub(crate) charts: Vec<Chart>,
}

/// One chart over time.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The heading.
    pub(crate) title: String,
    /// A sentence on how to read it; may be empty.
    pub(crate) caption: String,
    /// The vertical axis.
    pub(crate) axis: Axis,
    /// Curves.
    pub(crate) series: Vec<Series>,
    /// Events.
    pub(crate) markers: Vec<Markers>,
}

/// The vertical axis of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it shows.
    pub(crate) label: String,
    /// In what unit.
    pub(crate) unit: String,
    /// Whether zero is always in sight. Sequence numbers want to fill the chart instead.
    pub(crate) from_zero: bool,
}

/// A curve.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Its name in the legend.
    pub(crate) name: String,
    /// How its points are joined.
    pub(crate) style: Style,
    /// Its colour.
    pub(crate) hue: Hue,
    /// Its points, in the order of time.
    pub(crate) points: Points,
}

/// Events at a time and a height.
#[derive(Clone, Debug)]
pub(crate) struct Markers {
    /// Their name in the legend.
    pub(crate) name: String,
    /// What each is drawn as.
    pub(crate) shape: Shape,
    /// Their colour.
    pub(crate) hue: Hue,
    /// Where they are, in the order of time.
    pub(crate) points: Points,
}

/// How the points of a curve are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// By straight lines.
    Line,
    /// By steps: a value holds until the next.
    Step,
    /// Not at all.
    Dots,
}

/// What an event is drawn as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An ×.
    Cross,
    /// A triangle.
    Triangle,
    /// A ring.
    Ring,
}

/// A colour, chosen to be told apart from the others on light and on dark ground and by colour-blind
/// readers (after Okabe and Ito).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hue {
    Blue,
    Orange,
    Green,
    Pink,
    Grey,
    Red,
}

impl Chart {
    /// A chart without curves, whose axis begins at zero.
    pub(crate) fn new(
        title: impl Into<String>,
        label: impl Into<String>,
        unit: impl Into<String>,
    ) -> Chart {
        Chart {
            title: title.into(),
            caption: String::new(),
            axis: Axis { label: label.into(), unit: unit.into(), from_zero: true },
            series: Vec::new(),
            markers: Vec::new(),
        }
    }

    /// Explains how to read the chart.
    pub(crate) fn caption(mut self, caption: impl Into<String>) -> Chart {
        self.caption = caption.into();
        self
    }

    /// Lets the axis begin where the values do.
    pub(crate) fn floating(mut self) -> Chart {
        self.axis.from_zero = false;
        self
    }

    /// Adds a curve.
    pub(crate) fn series(
        mut self,
        name: impl Into<String>,
        style: Style,
        hue: Hue,
        points: Points,
    ) -> Chart {
        self.series.push(Series { name: name.into(), style, hue, points });
        self
    }

    /// Adds events.
    pub(crate) fn markers(
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
