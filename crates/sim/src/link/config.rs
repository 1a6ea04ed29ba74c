//! A link's parameters, from a configuration file or from the command line.

use core::num::NonZeroU32;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use transom_tcp::time::Duration;

use super::text::{SyntaxError, list};
use super::{
    Bleach, Corrupt, Jitter, JitterOrder, Loss, Opportunities, Policer, RateTrace, Reorder,
};
use super::{QueueConfig, WindowConfig};
use crate::random::Rng;
use crate::units::{Probability, Rate, UnitError, duration_text, parse_duration, probability_text};
use transom_router::window::ControlConfigError;

/// The parameters of one direction of a path. The default is a perfect link: no rate limit, no delay, no
/// damage.
///
/// In a configuration file each is a text, in kebab case (`rate = "10Mbit/s"`); what is left out has its
/// default, and an unknown name is an error. On the command line it is a list: "rate=10Mbit/s,
/// delay=20ms, queue=100 packets, loss=0.5%".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Bits per second; without it, transmission takes no time and the queue stays empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Instead of a constant rate, one that follows a trace in mahimahi's format, or changes in steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_trace: Option<RateTrace>,
    /// The SHA-256 that the trace's file has, in hexadecimal, where that has been noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_trace_sha256: Option<String>,
    /// Drops what is beyond a rate, before the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
    /// The queue before the serialiser, without the packet being transmitted.
    pub queue: QueueConfig,
    /// How the windows in acknowledgements that come back past the queue are rewritten for its sake.
    #[serde(skip_serializing_if = "WindowConfig::is_none")]
    pub window: WindowConfig,
    /// Propagation delay, from the last bit sent to the last bit received.
    #[serde(with = "duration_text")]
    pub delay: Duration,
    /// A random part of the propagation delay, up to this much. It is drawn once for the link, uniformly, and is the same part of it in
    /// both directions.
    #[serde(with = "duration_text", skip_serializing_if = "is_none")]
    pub delay_spread: Duration,
    /// Extra delay for each packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Whether jitter may reorder.
    pub jitter_order: JitterOrder,
    /// Which packets are lost.
    pub loss: Loss,
    /// The probability that a packet is delivered twice.
    #[serde(with = "probability_text")]
    pub duplicate: Probability,
    /// Which ECN codepoints are cleared, after the queue.
    #[serde(skip_serializing_if = "Bleach::is_none")]
    pub bleach: Bleach,
    /// Which packets are damaged.
    pub corrupt: Corrupt,
    /// Which packets are held back.
    pub reorder: Reorder,
    /// The largest packet in bytes; without it, any size passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<NonZeroU32>,
}

/// A spread of nothing is none.
fn is_none(spread: &Duration) -> bool {
    spread.is_zero()
}

/// Why a text is not a link configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkConfigError {
    /// An item is not of the form `name=value`.
    #[error("`{0}` is not a link option: write NAME=VALUE, such as delay=20ms")]
    NotAnOption(String),
    /// There is no option of this name.
    #[error(
        "there is no link option `{0}`: the options are rate, rate-trace, policer, queue, window, delay, delay-spread, jitter, jitter-order, loss, \
         duplicate, bleach, corrupt, reorder, mtu"
    )]
    UnknownOption(String),
    /// An option was given more than once.
    #[error("the link option `{0}` is given twice")]
    Twice(String),
    /// The window policy does not fit the link.
    #[error(transparent)]
    Window(Box<ControlConfigError>),
    /// The rate is constant and follows a trace.
    #[error("a link has either a `rate` or a `rate-trace`")]
    TwoRates,
    /// The file of the rate trace has not been read.
    #[error("the rate trace {0} has not been read")]
    UnreadTrace(String),
    /// An option's value is wrong.
    #[error("link option `{option}`: {error}")]
    Value {
        /// The option.
        option: String,
        /// The defect of its value.
        error: SyntaxError,
    },
}

impl LinkConfig {
    /// Sets one option by its name, as the command line and scenario sweeps do.
    ///
    /// # Errors
    /// [`LinkConfigError`] if there is no such option or the value is not one of its values; the
    /// configuration is then unchanged.
    pub fn set(&mut self, option: &str, value: &str) -> Result<(), LinkConfigError> {
        let outcome = match option {
            "rate" => value.parse().map(|rate| self.rate = Some(rate)).map_err(from_unit),
            "rate-trace" => value.parse().map(|trace| self.rate_trace = Some(trace)),
            "rate-trace-sha256" => {
                self.rate_trace_sha256 = Some(value.into());
                Ok(())
            }
            "policer" => value.parse().map(|policer| self.policer = Some(policer)),
            "queue" => value.parse().map(|queue| self.queue = queue),
            "window" => value.parse().map(|window| self.window = window),
            "delay" => parse_duration(value).map(|delay| self.delay = delay).map_err(from_unit),
            "delay-spread" => {
                parse_duration(value).map(|spread| self.delay_spread = spread).map_err(from_unit)
            }
            "jitter" => value.parse().map(|jitter| self.jitter = Some(jitter)),
            "jitter-order" => value.parse().map(|order| self.jitter_order = order),
            "loss" => value.parse().map(|loss| self.loss = loss),
            "duplicate" => {
                value.parse().map(|duplicate| self.duplicate = duplicate).map_err(from_unit)
            }
            "bleach" => value.parse().map(|bleach| self.bleach = bleach),
            "corrupt" => value.parse().map(|corrupt| self.corrupt = corrupt),
            "reorder" => value.parse().map(|reorder| self.reorder = reorder),
            "mtu" => parse_mtu(value).map(|mtu| self.mtu = Some(mtu)),
            _ => return Err(LinkConfigError::UnknownOption(option.into())),
        };
        outcome.map_err(|error| LinkConfigError::Value { option: option.into(), error })
    }

    /// Whether it can be made a link of.
    pub(crate) fn check(&self) -> Result<(), LinkConfigError> {
        self.check_window().map_err(|error| LinkConfigError::Window(Box::new(error)))?;
        match &self.rate_trace {
            Some(_) if self.rate.is_some() => Err(LinkConfigError::TwoRates),
            Some(trace) if trace.needs_file() => {
                Err(LinkConfigError::UnreadTrace(trace.text().into()))
            }
            _ => Ok(()),
        }
    }

    /// Whether its window policy has what it needs, and fits its queue.
    fn check_window(&self) -> Result<(), ControlConfigError> {
        let Some(policy) = self.window.0 else { return Ok(()) };
        policy.fits(self.queue.0.limit())?;
        // Without a rate nothing ever waits; a policy that needs one says so.
        let rate = self.mean_rate().map_or(0, Rate::bits_per_sec);
        policy.on_link(rate).build().map(drop)
    }

    /// Draws the random part of the delay, and adds it to the delay. A link without one draws nothing.
    pub(crate) fn settle_delay(&mut self, rng: impl FnOnce() -> Rng) {
        let spread = core::mem::take(&mut self.delay_spread);
        if !spread.is_zero() {
            let share = u128::from(rng().next_u64()) * u128::from(spread.as_nanos());
            // Below the spread, which has 64 bits.
            self.delay = self.delay + Duration::from_nanos((share >> 64) as u64);
        }
    }

    /// The rate, or the mean of a trace that has been read; `None` where transmission takes no time.
    pub fn mean_rate(&self) -> Option<Rate> {
        match &self.rate_trace {
            Some(trace) => trace.opportunities().map(Opportunities::mean_rate),
            None => self.rate,
        }
    }
}

fn from_unit(error: UnitError) -> SyntaxError {
    SyntaxError::Unit(error)
}

fn parse_mtu(text: &str) -> Result<NonZeroU32, SyntaxError> {
    let number = text.trim();
    let number =
        number.strip_suffix("bytes").or_else(|| number.strip_suffix('B')).unwrap_or(number);
    number.trim().parse().map_err(|_| SyntaxError::Form {
        what: "MTU",
        text: text.into(),
        forms: "a number of bytes above zero, such as 1500",
    })
}

impl FromStr for LinkConfig {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<LinkConfig, LinkConfigError> {
        let mut config = LinkConfig::default();
        let mut seen = Vec::new();
        for item in list(text).into_iter().filter(|item| !item.is_empty()) {
            let Some((option, value)) = item.split_once('=') else {
                return Err(LinkConfigError::NotAnOption(item.into()));
            };
            let option = option.trim();
            if seen.contains(&option) {
                return Err(LinkConfigError::Twice(option.into()));
            }
            config.set(option, value.trim())?;
            seen.push(option);
        }
        if config.rate.is_some() && config.rate_trace.is_some() {
            return Err(LinkConfigError::TwoRates);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests;
