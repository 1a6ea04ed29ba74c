//! A link's parameters, from a configuration file or from the command line.

use core::num::NonZeroU32;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use transom_tcp::time::Duration;

use super::bleach::Bleach;
use super::corruption::Corrupt;
use super::jitter::{Jitter, JitterOrder};
use super::policer::Policer;
use super::rate_trace::Opportunities;
use super::reorder::Reorder;
use super::text::list;
use super::{LinkConfigError, Loss, QueueConfig, RateTrace, window_text};
use crate::random::Rng;
use crate::units::{Probability, Rate, duration_text, parse_duration, probability_text};
use transom_router::window::{ControlConfigError, PolicyConfig};

/// The parameters of one direction of a path. The default is a perfect link: no rate limit, no delay, no
/// damage.
///
/// In a configuration file each is a text, in kebab case (`rate = "10Mbit/s"`); what is left out has its
/// default, and an unknown name is an error. On the command line it is a list: "rate=10Mbit/s,
/// delay=20ms, queue=100 packets, loss=0.5%". A program sets what is no field here as text, with [`set`](Self::set).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
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
    pub(crate) policer: Option<Policer>,
    /// The queue before the serialiser, without the packet being transmitted.
    pub queue: QueueConfig,
    /// How the windows in acknowledgements that come back past the queue are rewritten for its sake.
    #[serde(with = "window_text", skip_serializing_if = "Option::is_none")]
    pub window: Option<PolicyConfig>,
    /// Propagation delay, from the last bit sent to the last bit received.
    #[serde(with = "duration_text")]
    pub delay: Duration,
    /// A random part of the propagation delay, up to this much. It is drawn once for the link, uniformly, and is the same part of it in
    /// both directions.
    #[serde(with = "duration_text", skip_serializing_if = "is_none")]
    pub delay_spread: Duration,
    /// Extra delay for each packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jitter: Option<Jitter>,
    /// Whether jitter may reorder.
    pub(crate) jitter_order: JitterOrder,
    /// Which packets are lost.
    pub loss: Loss,
    /// The probability that a packet is delivered twice.
    #[serde(with = "probability_text")]
    pub(crate) duplicate: Probability,
    /// Which ECN codepoints are cleared, after the queue.
    #[serde(skip_serializing_if = "Bleach::is_none")]
    pub(crate) bleach: Bleach,
    /// Which packets are damaged.
    pub(crate) corrupt: Corrupt,
    /// Which packets are held back.
    pub(crate) reorder: Reorder,
    /// The largest packet in bytes; without it, any size passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<NonZeroU32>,
}

/// A spread of nothing is none.
fn is_none(spread: &Duration) -> bool {
    spread.is_zero()
}

impl LinkConfig {
    /// Sets one option by its name, as the command line and scenario sweeps do.
    ///
    /// # Errors
    /// [`LinkConfigError`] if there is no such option or the value is not one of its values; the
    /// configuration is then unchanged.
    pub fn set(&mut self, option: &str, value: &str) -> Result<(), LinkConfigError> {
        self.set_to(option, value).map_err(|error| match error {
            LinkConfigError::UnknownOption(_) => error,
            error => LinkConfigError::Value { option: option.into(), error: Box::new(error) },
        })
    }

    fn set_to(&mut self, option: &str, value: &str) -> Result<(), LinkConfigError> {
        match option {
            "rate" => self.rate = Some(value.parse()?),
            "rate-trace" => self.rate_trace = Some(value.parse()?),
            "rate-trace-sha256" => self.rate_trace_sha256 = Some(value.into()),
            "policer" => self.policer = Some(value.parse()?),
            "queue" => self.queue = value.parse()?,
            "window" => self.window = window_text::parse(value)?,
            "delay" => self.delay = parse_duration(value)?,
            "delay-spread" => self.delay_spread = parse_duration(value)?,
            "jitter" => self.jitter = Some(value.parse()?),
            "jitter-order" => self.jitter_order = value.parse()?,
            "loss" => self.loss = value.parse()?,
            "duplicate" => self.duplicate = value.parse()?,
            "bleach" => self.bleach = value.parse()?,
            "corrupt" => self.corrupt = value.parse()?,
            "reorder" => self.reorder = value.parse()?,
            "mtu" => self.mtu = Some(parse_mtu(value)?),
            _ => return Err(LinkConfigError::UnknownOption(option.into())),
        }
        Ok(())
    }

    /// Whether it can be made a link of.
    pub(crate) fn check(&self) -> Result<(), LinkConfigError> {
        self.check_window()?;
        match self.rate_trace.as_ref().map(RateTrace::unread) {
            Some(_) if self.rate.is_some() => Err(LinkConfigError::TwoRates),
            Some(Some(file)) => Err(LinkConfigError::UnreadTrace(file.into())),
            _ => Ok(()),
        }
    }

    /// Whether its window policy has what it needs, and fits its queue.
    fn check_window(&self) -> Result<(), ControlConfigError> {
        let Some(policy) = self.window else { return Ok(()) };
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

fn parse_mtu(text: &str) -> Result<NonZeroU32, LinkConfigError> {
    let number = text.trim();
    let number =
        number.strip_suffix("bytes").or_else(|| number.strip_suffix('B')).unwrap_or(number);
    number.trim().parse().map_err(|_| LinkConfigError::Form {
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
