//! Presets: combinations of words for a purpose.
//!
//! A preset for programs names what its purpose needs; the rest keeps its default. A preset for experiments names every unit, so that no
//! new default changes a result. A text's own words win over a preset.

/// The words of [`Profile::classic`](crate::profile::Profile::classic) for every unit that the experiments of "TCP without congestion
/// control" leave alone.
macro_rules! others {
    () => {
        "initial-window + count-bytes + slow-start + full-retransmission + wait-for-holes + no-early-retransmit + no-rr + limited-transmit + no-prr + restart-window \
         + no-undo + rfc6298 + no-pacing + delayed-ack + in-order + nagle + icmp-pmtud"
    };
}

/// A named combination of words.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The words that it represents.
    pub text: &'static str,
    /// Its purpose.
    pub summary: &'static str,
}

/// The presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "modern",
        text: "cubic + hystart + rack-tlp + prr + undo + ecn + quick-ack + plpmtud",
        summary: "the default, close to the large stacks of today: fast on any path, robust against reordering",
    },
    Preset {
        name: "classic",
        text: concat!(
            "reno + sack + sack-option + timestamps + window-scale + receive-window + passive-ecn + ",
            others!()
        ),
        summary: "the core RFCs and nothing later: the baseline of experiments",
    },
    Preset {
        name: "interactive",
        text: "cubic + hystart + rack-tlp + prr + undo + ecn + nodelay + delayed-ack(delay=10ms)",
        summary: "modern without waiting for small segments: for requests, shells and games",
    },
    Preset {
        name: "background",
        text: "ledbat++ + rack-tlp + prr + undo + ecn + pacing",
        summary: "uses only spare capacity: yields as soon as the queue reaches 60 ms",
    },
    Preset {
        name: "datacentre",
        text: "dctcp + ecn-per-packet + rack-tlp + prr + undo + rfc6298(min=10ms) + delayed-ack(delay=1ms)",
        summary: "short queues where switches mark early (RFC 8257), and timeouts that fit round trips of microseconds; for both ends",
    },
    Preset {
        name: "l4s",
        text: "prague + accecn + rack-tlp + prr + undo + pacing + quick-ack",
        summary: "scalable for the public internet (RFC 9331): queues below a millisecond where the bottleneck has a dual queue, classic elsewhere",
    },
    Preset {
        name: "model-based",
        text: "bbr + pacing + rack-tlp + undo + no-ecn",
        summary: "paces at the measured rate of the path, and does not treat losses as congestion; without ECN, because it ignores marks",
    },
    Preset {
        name: "long-fat",
        text: "ltcp + limited-slow-start + rack-tlp + prr + undo + ecn + pacing",
        summary: "fills and recovers a path of gigabits and 100 ms in seconds instead of minutes, without bursts of its whole window",
    },
    Preset {
        name: "wireless",
        text: "westwood + rack-tlp + prr + undo + ecn",
        summary: "continues at the measured rate after a loss: for links with random loss and reordering",
    },
    Preset {
        name: "minimal",
        text: concat!(
            "reno + newreno + no-sack + no-timestamps + no-window-scale + no-ecn + receive-window + ",
            others!()
        ),
        summary: "the requirements of RFC 9293, and no option but MSS: for middleboxes that break options",
    },
    Preset {
        name: "base",
        text: concat!(
            "reno + newreno + no-sack + timestamps + window-scale + passive-ecn + receive-window + ",
            others!()
        ),
        summary: "BASE of \"TCP without congestion control\"",
    },
    Preset {
        name: "sackbase",
        text: concat!(
            "reno + sack + sack-option + timestamps + window-scale + passive-ecn + receive-window + ",
            others!()
        ),
        summary: "the same with SACK",
    },
    Preset {
        name: "exp",
        text: concat!(
            "no-congestion-control + newreno + no-sack + timestamps + window-scale + passive-ecn + receive-window + ",
            others!()
        ),
        summary: "the same without congestion control",
    },
    Preset {
        name: "sackexp",
        text: concat!(
            "no-congestion-control + sack + sack-option + timestamps + window-scale + passive-ecn + receive-window + ",
            others!()
        ),
        summary: "without congestion control, with SACK",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::compose;
    use crate::profile::{EcnChoice, RecoveryChoice};

    #[test]
    fn a_preset_is_its_words_and_says_why() {
        for preset in PRESETS {
            assert_eq!(compose(preset.name), compose(preset.text), "{}", preset.name);
            assert!(compose(preset.name).is_ok(), "{}", preset.name);
            assert!(preset.summary.len() > 10, "{}", preset.name);
        }
    }

    #[test]
    fn inseparable_units_come_together() {
        for preset in PRESETS {
            let profile = compose(preset.name).unwrap();
            // A controller that does not react to marks must not ask for them (RFC 3168 section 5). A controller that needs pacing has it.
            if profile.congestion.name() == "bbr" {
                assert_eq!(profile.ecn, EcnChoice::Off, "{}", preset.name);
            }
            if profile.congestion.needs_pacing() {
                assert_ne!(profile.pacing, crate::profile::PacingChoice::None, "{}", preset.name);
            }
            // RFC 9331 section 4.2: a scalable controller needs accurate feedback.
            if profile.congestion.name() == "prague" {
                assert!(matches!(profile.ecn, EcnChoice::Accurate { .. }), "{}", preset.name);
            }
            // RFC 8257 section 3: DCTCP's sender needs DCTCP's receiver.
            if profile.congestion.name() == "dctcp" {
                assert!(matches!(profile.ecn, EcnChoice::PerPacket(_)), "{}", preset.name);
            }
        }
        assert_eq!(compose("modern").unwrap().recovery, RecoveryChoice::RackTlp);
    }
}
