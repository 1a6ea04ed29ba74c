//! Texts for bands and their results, and quantities.

use transom_lab::results::Manifest;
use transom_lab::run::Judgement;
use transom_lab::scenario::{Band, Measure, Statistic, Unit};

/// As many flows are called by their names.
const MOST_NAMES: usize = 6;

/// The subject of a band: "goodput of bulk1, bulk2".
pub fn quantity(band: &Band) -> String {
    format!("{} of {}", measure(band), subject(band))
}

/// The measure of a band and its statistic, without whose: "goodput (sum)".
pub(crate) fn measure(band: &Band) -> String {
    let quantity = &band.quantity;
    let statistic = quantity.statistic.filter(|statistic| *statistic != Statistic::Each);
    let statistic = statistic.map(|statistic| format!(" ({statistic})")).unwrap_or_default();
    let until = match (quantity.reaches, quantity.stays_above) {
        (Some(level), _) => format!("time until {level} of "),
        (None, Some(level)) => format!("time until lasting {level} of "),
        (None, None) => String::new(),
    };
    format!("{until}{}{statistic}", quantity.measure)
}

/// The link or the flows that a band is about: "bulk1, bulk2".
pub(crate) fn subject(band: &Band) -> String {
    let quantity = &band.quantity;
    match (&quantity.link, &quantity.flows[..]) {
        (Some(link), _) => link.to_string(),
        (None, [first, .., last]) if quantity.flows.len() > MOST_NAMES => {
            format!("{first} … {last} ({} flows)", quantity.flows.len())
        }
        (None, flows) => flows.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The measured value, with its unit.
pub fn seen(judgement: &Judgement) -> String {
    let band = &judgement.band;
    let unit = band.unit();
    let whole = matches!(
        band.quantity.measure,
        Measure::Timeouts
            | Measure::FastRecoveries
            | Measure::Retransmissions
            | Measure::Drops
            | Measure::Marks
            | Measure::WindowsRewritten
            | Measure::AcksSeen
            | Measure::AcksUnknown
            | Measure::AcksImplausible
            | Measure::AcksHeld
            | Measure::FlowsOpened
    );
    let values = judgement.values.iter().map(|&value| match unit {
        Unit::Rate => format!("{:.3} Mbit/s", value / 1e6),
        Unit::Time => format!("{:.3} ms", value / 1e6),
        Unit::Size => format!("{value:.0} B"),
        Unit::Number if whole && value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Number => format!("{value:.4}"),
    });
    let values: Vec<String> = values.collect();
    if values.is_empty() { "nothing seen".into() } else { values.join(", ") }
}

/// The bounds of a band: "(at least 0.9)".
pub fn bounds(band: &Band) -> String {
    match (band.min, band.max) {
        (Some(min), Some(max)) => format!("(from {min} to {max})"),
        (Some(min), None) => format!("(at least {min})"),
        (None, Some(max)) => format!("(at most {max})"),
        (None, None) => String::new(),
    }
}

/// Which extensions connections did not have, or not to the end, and why: a line for each flow.
pub fn departures(manifest: &Manifest) -> Vec<String> {
    let each = manifest.departures.iter();
    each.map(|(flow, reasons)| format!("EXTENSION GONE from {flow}: {}", reasons.join("; ")))
        .collect()
}

/// A quantity with a space before its unit.
pub fn spaced(quantity: impl ToString) -> String {
    let text = quantity.to_string();
    match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) if at > 0 => {
            let (number, unit) = text.split_at(at);
            format!("{} {unit}", number.trim_end())
        }
        _ => text,
    }
}
