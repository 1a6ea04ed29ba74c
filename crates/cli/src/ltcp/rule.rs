//! The choice of layers: the paper's, its alternate, or your own.

use anyhow::Context;
use clap::ValueEnum;
use serde_json::{Value, json};
use transom_lab::scenario::Number;
use transom_tcp::arguments::Fraction;
use transom_tcp::congestion::ltcp::{Layers, Rule};

/// How the thresholds follow from each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Series {
    /// W_K = K(K+1)(K-1)/6 · W_T, the paper's design
    #[default]
    Paper,
    /// W_K = 2 · W_(K-1), the alternate that the paper mentions
    Double,
}

/// The layers.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct RuleArgs {
    /// How the thresholds follow from each other
    #[arg(long, value_enum, default_value_t)]
    rule: Series,
    /// W_T: the window in packets up to which LTCP is Reno
    #[arg(long, value_name = "PACKETS", default_value_t = Layers::default().threshold(2))]
    wt: u64,
    /// How many layers there are
    #[arg(long, value_name = "K", default_value_t = Layers::default().count())]
    layers: u32,
    /// The thresholds themselves, in packets: W_2, W_3 and so on
    #[arg(long, value_name = "W2,W3,…", value_delimiter = ',', conflicts_with_all = ["rule", "wt", "layers"])]
    thresholds: Vec<u64>,
    /// β: the share of the window that a loss takes
    #[arg(long, value_name = "SHARE", default_value_t = share(Layers::default().beta()))]
    beta: Number,
}

fn share(fraction: Fraction) -> Number {
    Number { billionths: fraction.millionths() * 1000 }
}

impl RuleArgs {
    /// The layers, if flows converge with them.
    pub(super) fn layers(&self) -> anyhow::Result<Layers> {
        let rule = match self.rule {
            _ if !self.thresholds.is_empty() => Rule::Thresholds(self.thresholds.clone()),
            Series::Paper => Rule::Paper { wt: self.wt, layers: self.layers },
            Series::Double => Rule::Double { wt: self.wt, layers: self.layers },
        };
        let beta = Fraction::from_millionths(self.beta.billionths / 1000);
        Layers::new(rule, beta).context("these layers cannot be used")
    }
}

/// The layers for programs.
pub(super) fn described(layers: &Layers) -> Value {
    let thresholds: Vec<u64> = (2..=layers.count()).map(|layer| layers.threshold(layer)).collect();
    json!({ "beta": decimal(layers.beta()), "thresholds": thresholds, "converges": true })
}

/// A fraction as a number.
pub(super) fn decimal(fraction: Fraction) -> f64 {
    fraction.millionths() as f64 / 1e6
}
