//! Metrics in the text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

/// Metrics whose names all begin alike.
#[derive(Debug)]
pub struct MetricsText {
    prefix: &'static str,
    text: String,
}

impl MetricsText {
    /// No metrics yet.
    pub fn new(prefix: &'static str) -> Self {
        MetricsText { prefix, text: String::new() }
    }

    /// Writes a metric: what it means, and its values, each with its [`labels`]. It is a counter if its name ends with `_total`, as names do there.
    pub fn metric<L: AsRef<str>>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) {
        let MetricsText { prefix, text } = self;
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "{prefix}{name}{} {value}", labels.as_ref());
        }
    }

    /// The text.
    pub fn finish(self) -> String {
        self.text
    }
}

/// Labels as they stand behind a metric's name.
pub fn labels(labels: &[(&str, &str)]) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<_> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", labels.join(","))
}
