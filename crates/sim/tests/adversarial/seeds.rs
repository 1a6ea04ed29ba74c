//! With every seed, every byte arrives once and in order, both connections end, and nothing spins.
//!
//! A failing seed is printed: `TRANSOM_SEED=n cargo test -p transom-sim --test adversarial` replays it alone with a trace,
//! and `TRANSOM_SEEDS=n` sets how many are run.

use super::exchange::run;
use super::number;
use transom_sim::Rng;
use transom_tcp::arguments::Fraction;
use transom_tcp::time::Duration;
use transom_tcp::{
    AduConfig, EcnChoice, EcnConfig, FlowChoice, OfferedOptions, OrderingChoice, PacingChoice,
    PathMtuChoice, Profile, ReceiveWindowConfig, RecoveryChoice, ReductionChoice, UndoConfig,
    ValidationChoice,
};

pub(crate) fn profile(seed: u64, rng: &mut Rng) -> Profile {
    let options = OfferedOptions::default()
        .with_window_scale(rng.below(4) > 0)
        .with_timestamps(rng.below(3) > 0)
        .with_sack(rng.below(4) > 0);
    let recovery = match rng.below(8) {
        0 if seed.is_multiple_of(2) => RecoveryChoice::GoBackN,
        0 => RecoveryChoice::Reno,
        1..=3 if options.sack => RecoveryChoice::Sack,
        4..=6 if options.sack => RecoveryChoice::RackTlp,
        _ => RecoveryChoice::NewReno,
    };
    let max = if options.window_scale { 1 << 20 } else { 65_535 };
    let initial = rng.between(2_000, 65_535) as usize;
    let send_buffer = rng.between(1_500, 300_000) as usize;
    let config =
        EcnConfig::default().with_offer(rng.below(2) == 0).with_control_packets(rng.below(2) == 0);
    let undo = UndoConfig::default()
        .with_eifel(rng.below(2) == 0)
        .with_dsack(rng.below(2) == 0)
        .with_f_rto(rng.below(2) == 0);
    // Units are for both ends, or for none.
    let units = AduConfig::default().with_ordered(rng.below(2) == 0);
    let (ordering, initial, send_buffer) = match rng.below(3) {
        _ if seed.is_multiple_of(5) => {
            (OrderingChoice::Units(units), initial.max(40_000), send_buffer.max(20_000))
        }
        0 => (OrderingChoice::Unordered, initial, send_buffer),
        _ => (OrderingChoice::InOrder, initial, send_buffer),
    };
    Profile::classic()
        .with_ordering(ordering)
        .with_options(options)
        .with_recovery(recovery)
        .with_reduction(if rng.below(2) == 0 {
            ReductionChoice::Prr
        } else {
            ReductionChoice::AtOnce
        })
        .with_validation(match rng.below(3) {
            0 => ValidationChoice::Keep,
            1 => ValidationChoice::RestartWindow,
            _ => ValidationChoice::Cwv,
        })
        .with_undo(undo)
        .with_ecn(match rng.below(3) {
            // Of the seed, so that the others keep what they draw.
            _ if seed % 4 == 3 => EcnChoice::Accurate { ecn: config, options: seed % 8 == 3 },
            0 => EcnChoice::Off,
            1 => EcnChoice::Classic(config),
            _ => EcnChoice::PerPacket(config),
        })
        .with_pacing(if rng.below(3) == 0 { PacingChoice::Rate } else { PacingChoice::None })
        .with_flow(match rng.below(4) {
            0 => FlowChoice::Fixed(initial),
            1 => FlowChoice::None { memory: initial },
            _ => FlowChoice::ReceiveWindow(ReceiveWindowConfig::new(initial, max)),
        })
        .with_send_buffer(send_buffer)
        .with_max_send_buffer(send_buffer.max(1 << 20))
        .with_nodelay(rng.below(2) == 0)
        .with_early_retransmit(recovery != RecoveryChoice::RackTlp && rng.below(2) == 0)
        .with_limited_transmit(rng.below(2) == 0)
        .with_path_mtu(match seed % 3 {
            0 => PathMtuChoice::Probing,
            _ => PathMtuChoice::Icmp,
        })
        .with_reordering(Some(Fraction::from_millionths(900_000)).filter(|_| {
            // Of the seed, so that those there are keep what they draw.
            options.sack && recovery != RecoveryChoice::RackTlp && seed % 4 < 2
        }))
        .with_time_wait(Duration::from_secs(2))
}

#[test]
fn every_byte_arrives_once_and_in_order() {
    if let Some(seed) = number("TRANSOM_SEED") {
        run(seed, |rng| profile(seed, rng), true);
        return;
    }
    let seeds = number("TRANSOM_SEEDS").unwrap_or(2_000);
    let failed: Vec<u64> = (0..seeds)
        .filter(|&seed| {
            let failed = std::panic::catch_unwind(|| run(seed, |rng| profile(seed, rng), false)).is_err();
            if failed {
                eprintln!("seed {seed} failed; replay: TRANSOM_SEED={seed} cargo test -p transom-sim --test adversarial");
            }
            failed
        })
        .collect();
    let some = &failed[..failed.len().min(20)];
    assert!(failed.is_empty(), "{} of {seeds} seeds failed, among them {some:?}", failed.len());
}
