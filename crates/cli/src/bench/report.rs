//! The results of a measurement, for people and for programs.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::protocol::{Purpose, Receipt};
use crate::output;
use crate::socket::Socket;
use crate::units::{BitRate, Bytes};

/// The state of the sending side, over all connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    retransmitted: u64,
    /// The sum of the congestion windows.
    windows: u64,
    /// The longest smoothed round-trip time.
    longest_rtt: Option<Duration>,
}

impl Sender {
    /// The states of Transom's connections, added up; the round-trip time is the longest. The kernel's connections are left out.
    pub(super) fn of<'a>(sockets: impl IntoIterator<Item = &'a Arc<Socket>>) -> Option<Sender> {
        let states = sockets.into_iter().filter_map(|socket| socket.info());
        let each = states.map(|state| Sender {
            retransmitted: state.counters.retransmitted_segments,
            windows: state.cwnd,
            longest_rtt: state.srtt.map(Duration::from),
        });
        each.reduce(|one, other| Sender {
            retransmitted: one.retransmitted + other.retransmitted,
            windows: one.windows + other.windows,
            longest_rtt: one.longest_rtt.max(other.longest_rtt),
        })
    }
}

/// The results so far.
pub(super) struct Report {
    purpose: Purpose,
    host: String,
    side: &'static str,
    parallel: u32,
    intervals: Vec<Value>,
    /// The end of the last interval, and what was done until then.
    last: (Duration, u64),
    retransmitted: u64,
    done: u64,
    span: Duration,
    received: Option<Receipt>,
    latency: Option<Histogram<u64>>,
}

impl Report {
    pub(super) fn new(purpose: Purpose, host: &str, side: &'static str, parallel: u32) -> Self {
        Report {
            purpose,
            host: host.to_owned(),
            side,
            parallel,
            intervals: Vec::new(),
            last: (Duration::ZERO, 0),
            retransmitted: 0,
            done: 0,
            span: Duration::ZERO,
            received: None,
            latency: None,
        }
    }

    fn is_bulk(&self) -> bool {
        matches!(self.purpose, Purpose::Upload | Purpose::Download)
    }

    fn name(&self) -> &'static str {
        match self.purpose {
            Purpose::Upload => "upload",
            Purpose::Download => "download",
            Purpose::Exchange => "round trips",
            Purpose::Connect => "connections",
        }
    }

    /// Notes an interval that ends now. `done` counts all bytes, round trips or connections until now. Prints it, unless one object at the end has everything.
    pub(super) fn sample(
        &mut self,
        to: Duration,
        done: u64,
        sender: Option<Sender>,
        json: bool,
    ) -> anyhow::Result<()> {
        let (from, before) = std::mem::replace(&mut self.last, (to, done));
        let done = done - before;
        let span = to.saturating_sub(from);
        let retransmitted = sender.map_or(0, |sender| sender.retransmitted);
        let new = retransmitted.saturating_sub(self.retransmitted);
        self.retransmitted = self.retransmitted.max(retransmitted);
        if json {
            self.intervals.push(self.numbers(from, to, done));
            return Ok(());
        }
        let mut line = format!("{:>7.2} - {:>7.2} s  ", from.as_secs_f64(), to.as_secs_f64());
        if self.is_bulk() {
            let (size, rate) = (Bytes(done).to_string(), BitRate::of(done, span).to_string());
            line.push_str(&format!("{size:>12}  {rate:>15}"));
        } else {
            line.push_str(&format!("{done:>9}  {:>12.0} /s", per_second(done, span)));
        }
        if let Some(Sender { windows, longest_rtt, .. }) =
            sender.filter(|_| self.purpose == Purpose::Upload)
        {
            let cwnd = Bytes(windows).to_string();
            let rtt = longest_rtt.map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3);
            line.push_str(&format!("  retransmits {new:>4}  cwnd {cwnd:>10}  RTT {rtt:.3} ms"));
        }
        output::line(line)
    }

    /// Adds what one thread has measured.
    pub(super) fn add(&mut self, done: u64, received: Option<Receipt>, latency: &Histogram<u64>) {
        self.done += done;
        if let Some(one) = received {
            let sum = self.received.get_or_insert(Receipt { bytes: 0, time: Duration::ZERO });
            sum.bytes += one.bytes;
            sum.time = sum.time.max(one.time);
        }
        match &mut self.latency {
            Some(all) => *all += latency,
            None => self.latency = Some(latency.clone()),
        }
    }

    /// The measurement has ended.
    pub(super) fn finish(&mut self, span: Duration, sender: Option<Sender>) {
        self.span = span;
        self.retransmitted =
            self.retransmitted.max(sender.map_or(0, |sender| sender.retransmitted));
    }

    /// The time the bytes took: as the receiver saw it, where that is known.
    fn transfer_time(&self) -> Duration {
        self.received.map_or(self.span, |receipt| receipt.time)
    }

    /// Prints the totals.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return output::json(&self.to_json());
        }
        let seconds = self.span.as_secs_f64();
        let with = format!("{} with {} ({} TCP here)", self.name(), self.host, self.side);
        if self.is_bulk() {
            let rate = BitRate::of(self.done, self.transfer_time());
            let mut line = format!("{with}: {} in {seconds:.2} s, {rate}", Bytes(self.done));
            if self.side == "transom" && self.purpose == Purpose::Upload {
                line.push_str(&format!(", {} retransmits", self.retransmitted));
            }
            return output::line(line);
        }
        let rate = per_second(self.done, self.span);
        output::line(format!("{with}: {} in {seconds:.2} s, {rate:.0} /s", self.done))?;
        let Some(latency) = &self.latency else { return Ok(()) };
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let mut line = format!("latency in µs: mean {:.1}", latency.mean() / 1e3);
        for (name, quantile) in [("50%", 0.5), ("90%", 0.9), ("99%", 0.99), ("99.9%", 0.999)] {
            let value = micros(latency.value_at_quantile(quantile));
            line.push_str(&format!(", {name} {value:.1}"));
        }
        output::line(format!("{line}, max {:.1}", micros(latency.max())))
    }

    fn numbers(&self, from: Duration, to: Duration, done: u64) -> Value {
        let span = to.saturating_sub(from);
        let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
        if self.is_bulk() {
            let rate = BitRate::of(done, span).0;
            json!({ "from": from, "to": to, "bytes": done, "bits_per_second": rate })
        } else {
            json!({ "from": from, "to": to, "count": done, "per_second": per_second(done, span) })
        }
    }

    fn to_json(&self) -> Value {
        let mut value = json!({
            "measured": self.name(),
            "host": self.host,
            "side": self.side,
            "parallel": self.parallel,
            "seconds": self.span.as_secs_f64(),
            "intervals": self.intervals,
        });
        let mut set = |name: &str, number: Value| value[name] = number;
        if self.is_bulk() {
            set("bytes", self.done.into());
            set("bits_per_second", BitRate::of(self.done, self.transfer_time()).0.into());
            if self.side == "transom" {
                set("retransmitted_segments", self.retransmitted.into());
            }
        } else {
            set("count", self.done.into());
            set("per_second", per_second(self.done, self.span).into());
        }
        if let Some(latency) = self.latency.as_ref().filter(|_| !self.is_bulk()) {
            let quantile = |q: f64| latency.value_at_quantile(q);
            set(
                "latency_ns",
                json!({
                    "mean": latency.mean(),
                    "p50": quantile(0.5),
                    "p90": quantile(0.9),
                    "p99": quantile(0.99),
                    "p99_9": quantile(0.999),
                    "max": latency.max(),
                }),
            );
        }
        value
    }
}

fn per_second(count: u64, span: Duration) -> f64 {
    let seconds = span.as_secs_f64();
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
