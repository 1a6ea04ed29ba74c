//! The analysis of LTCP's section IV-A: how fast it claims bandwidth, how fast it recovers, and its throughput for a given loss rate.
//!
//! Everything is an integer or a [`Fraction`] (six decimals, rounded down). A loss rate p is given by its inverse, the packets sent for
//! each loss: 1/p. Windows are packets.

use transom_tcp::arguments::Fraction;
use transom_tcp::congestion::ltcp::Layers;
use transom_tcp::time::Duration;

#[cfg(test)]
mod tests;

/// One line of the paper's figure 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// K.
    pub(crate) layer: u32,
    /// W_K in packets: where the layer begins.
    pub(crate) window: u64,
    /// δ_K in packets; the last layer has none.
    pub(crate) step: Option<u64>,
    /// Round trips from the end of slow start at W_T until W_K.
    pub(crate) claim: Fraction,
    /// How many times faster than Reno, which needs W_K − W_T round trips.
    pub(crate) claim_speedup: Fraction,
    /// Round trips until a loss at W_K is recovered from.
    pub(crate) recovery: Fraction,
    /// How many times faster than Reno, which needs W_K/2 round trips.
    pub(crate) recovery_speedup: Fraction,
}

/// The paper's figure 2: all layers from the second on, where LTCP and Reno part.
pub(crate) fn table(layers: &Layers) -> impl Iterator<Item = Row> + '_ {
    (2..=layers.count()).map(|layer| row(layers, layer))
}

fn row(layers: &Layers, layer: u32) -> Row {
    let window = layers.threshold(layer);
    let claim = claim_time(layers, layer);
    let whole = window.saturating_sub(layers.threshold(2));
    let reno = Fraction::from_millionths(whole.saturating_mul(1_000_000));
    Row {
        layer,
        window,
        step: layers.step(layer),
        claim,
        claim_speedup: if layer == 2 { Fraction::ONE } else { ratio(reno, claim) },
        recovery: recovery_time(layers, layer, window),
        recovery_speedup: recovery_speedup(layers, layer),
    }
}

/// `value · numerator / denominator`, rounded down; saturating. A denominator of zero counts as one.
fn mul_div(value: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

fn ratio(a: Fraction, b: Fraction) -> Fraction {
    Fraction::from_millionths(mul_div(a.millionths(), 1_000_000, b.millionths()))
}

/// Round trips from W_T to W_K: the sum of δ_k/k over the layers on the way, which for the paper's thresholds is
/// (K−2)(K+3)/4 · W_T (equation 14).
fn claim_time(layers: &Layers, layer: u32) -> Fraction {
    let spent = (2..layer)
        .map(|k| layers.step(k).map_or(u64::MAX, |step| mul_div(step, 1_000_000, u64::from(k))));
    Fraction::from_millionths(spent.fold(0, u64::saturating_add))
}

/// Round trips until a loss at `window` in layer K is recovered from, if it cost a layer: β·W/(K−1). In the first layer, Reno's W/2.
pub(crate) fn recovery_time(layers: &Layers, layer: u32, window: u64) -> Fraction {
    if layer <= 1 {
        return Fraction::from_millionths(window.saturating_mul(500_000));
    }
    Fraction::from_millionths(mul_div(window, layers.beta().millionths(), u64::from(layer - 1)))
}

/// How many times faster than Reno LTCP recovers in layer K: (K−1)/(2β).
fn recovery_speedup(layers: &Layers, layer: u32) -> Fraction {
    if layer <= 1 {
        return Fraction::ONE;
    }
    let flows = u64::from(layer - 1).saturating_mul(1_000_000_000_000);
    Fraction::from_millionths(flows / (2 * layers.beta().millionths()).max(1))
}

/// Packets sent for each loss by a flow that loses `beta` of its `window` and regains it at `slope` packets a round trip: equation 15,
/// β·W²/K'·(1 − β/2), the inverse of the loss rate for such a window. Rounded down.
pub(crate) fn packets_per_loss(beta: Fraction, slope: u32, window: u64) -> u64 {
    let beta = beta.millionths().min(1_000_000);
    let square = u128::from(window) * u128::from(window);
    // β·(2 − β)/2 in units of 5·10⁻¹³.
    let share = u128::from(beta) * u128::from(2_000_000 - beta);
    let packets = square.saturating_mul(share) / (u128::from(slope.max(1)) * 2_000_000_000_000);
    u64::try_from(packets).unwrap_or(u64::MAX)
}

/// The window just before a loss when there is one for every `packets` sent: equation 17. Rounded down.
pub(crate) fn window_at_loss(beta: Fraction, slope: u32, packets: u64) -> u64 {
    let beta = beta.millionths().clamp(1, 1_000_000);
    let share = u128::from(beta) * u128::from(2_000_000 - beta);
    let square = u128::from(packets) * u128::from(slope.max(1)) * 2_000_000_000_000 / share;
    u64::try_from(square.isqrt()).unwrap_or(u64::MAX)
}

/// Throughput in packets per second: equation 18, √(K'·(1 − β/2)/β) / (RTT·√p). Reno's is that with β = 0.5 and a slope of one.
/// Rounded down; `u64::MAX` for a round trip of no time.
fn throughput(beta: Fraction, slope: u32, packets: u64, rtt: Duration) -> u64 {
    let beta = beta.millionths().clamp(1, 1_000_000);
    let above = u128::from(packets) * u128::from(slope.max(1)) * u128::from(2_000_000 - beta);
    // The root with six decimals: its square has twelve.
    let square = (above / u128::from(2 * beta)).saturating_mul(1_000_000_000_000);
    let millionths = square.isqrt();
    let per_second = millionths.saturating_mul(1000) / u128::from(rtt.as_nanos().max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

/// Reno's share of the window that a loss takes.
pub(crate) const RENO_BETA: Fraction = Fraction::from_millionths(500_000);

/// The equilibrium of a flow with one loss for a given number of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SteadyState {
    /// K' of the paper: the layer it recovers in.
    pub(crate) layer: u32,
    /// The window before a loss, in packets.
    pub(crate) before: u64,
    /// The window after it.
    pub(crate) after: u64,
    /// Throughput in packets per second.
    pub(crate) throughput: u64,
    /// Reno's at the same loss rate.
    pub(crate) reno: u64,
    /// How many times Reno's that is.
    pub(crate) gain: Fraction,
}

/// The layer in which LTCP settles at one loss for every `packets`, and its throughput there (equations 17 and 18): the lowest layer K'
/// whose own window does not lead further up.
pub(crate) fn steady_state(layers: &Layers, packets: u64, rtt: Duration) -> SteadyState {
    let reno = throughput(RENO_BETA, 1, packets, rtt);
    let at = |layer: u32| {
        let beta = if layer == 1 { RENO_BETA } else { layers.beta() };
        let before = window_at_loss(beta, layer, packets);
        let after = before - beta.of(before);
        let throughput = throughput(beta, layer, packets, rtt);
        let gain = Fraction::from_millionths(mul_div(throughput, 1_000_000, reno));
        SteadyState { layer, before, after, throughput, reno, gain }
    };
    (1..layers.count())
        .map(at)
        .find(|state| {
            let reached = layers.of(state.before);
            let kept = state.after >= layers.threshold(reached) || reached == 1;
            reached - u32::from(!kept) <= state.layer
        })
        .unwrap_or_else(|| at(layers.count()))
}
