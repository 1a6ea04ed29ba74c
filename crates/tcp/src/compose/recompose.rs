//! Texts that change what a live connection is made of.

use super::{ComposeError, Composer, Unit, preset, split};
use crate::connection::{Connection, Setting, UnitChoice};
use crate::profile::Profile;
use crate::time::Instant;
use alloc::vec::Vec;

impl Unit {
    /// Whether the unit can be exchanged on a live connection.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn exchangeable(self) -> Result<(), &'static str> {
        match self {
            Unit::Congestion
            | Unit::Counting
            | Unit::SlowStart
            | Unit::EarlyRetransmit
            | Unit::Reordering
            | Unit::LimitedTransmit
            | Unit::Reduction
            | Unit::Undo
            | Unit::Pacing
            | Unit::Acknowledgements
            | Unit::Nagle => Ok(()),
            Unit::Persistence
            | Unit::Holes
            | Unit::Ecn
            | Unit::SackOption
            | Unit::TimestampsOption
            | Unit::WindowScaleOption => Err("it was agreed upon with the peer in the handshake"),
            Unit::InitialWindow => Err("the connection has begun with it"),
            Unit::Recovery => Err("it holds what is known of the data in flight"),
            Unit::Validation => Err("it holds what was used of the window"),
            Unit::Ordering => Err("it holds what has arrived"),
            Unit::FlowControl => Err("a window has been offered by it"),
            Unit::Timer | Unit::PathMtu => Err("it holds what was measured of the path"),
        }
    }
}

impl Composer {
    /// Exchanges units of a live connection by name, such as `vegas + pacing`. The other units stay.
    ///
    /// # Errors
    /// [`ComposeError`]; [`ComposeError::Fixed`] for a unit that cannot be exchanged on a live connection. Nothing has been exchanged then.
    pub fn exchange(
        &self,
        connection: &mut Connection,
        now: Instant,
        text: &str,
    ) -> Result<(), ComposeError> {
        let nodelay = connection.settings().nodelay;
        let current = Profile { nodelay, ..connection.profile().clone() };
        let profile = self.recompose(&current, text)?;
        let Profile { early_retransmit, limited_transmit, nodelay, .. } = profile;
        for choice in [
            UnitChoice::Acknowledgements(profile.ack),
            // Before pacing, which the one that leaves may count on.
            UnitChoice::Congestion(profile.congestion),
            UnitChoice::Pacing(profile.pacing),
            UnitChoice::Counting(profile.counting),
            UnitChoice::SlowStart(profile.slow_start),
            UnitChoice::Duplicates { early_retransmit, limited_transmit },
            UnitChoice::Reordering(profile.reordering),
            UnitChoice::Reduction(profile.reduction),
            UnitChoice::Undo(profile.undo),
        ] {
            connection.exchange(now, choice)?;
        }
        connection.set(Setting::NoDelay(nodelay));
        Ok(())
    }

    /// The profile that `text` makes of `current`, which is in use: only units that can be exchanged may differ. To name what is there
    /// already is no exchange.
    fn recompose(&self, current: &Profile, text: &str) -> Result<Profile, ComposeError> {
        let wanted = self.compose(current.clone(), text)?;
        if keeps_what_is_fixed(current, &wanted) {
            return Ok(wanted);
        }
        Err(self.first_offender(current, text))
    }

    /// The first word of a text that exchanges what cannot be exchanged.
    fn first_offender(&self, current: &Profile, text: &str) -> ComposeError {
        let words = split(text).into_iter().flat_map(|word| match preset(word) {
            Some(preset) => split(preset.text),
            None => Vec::from([word]),
        });
        for word in words {
            let mut profile = current.clone();
            let chosen = match self.word(word, 0) {
                Ok(chosen) => chosen,
                Err(error) => return error,
            };
            if let Err(error) = self.apply(&mut profile, &chosen) {
                return error;
            }
            if let Err(reason) = chosen.unit.exchangeable()
                && !keeps_what_is_fixed(current, &profile)
            {
                let (word, unit) = (chosen.name.into(), chosen.unit);
                return ComposeError::Fixed { word, unit, reason };
            }
        }
        // Without SACK's option only one recovery is left, which no word has named.
        let unit = Unit::Recovery;
        let reason = unit.exchangeable().err().unwrap_or_default();
        ComposeError::Fixed { word: text.into(), unit, reason }
    }
}

/// Whether two profiles differ in nothing but units that can be exchanged.
fn keeps_what_is_fixed(current: &Profile, wanted: &Profile) -> bool {
    let exchanged = Profile {
        congestion: wanted.congestion.clone(),
        counting: wanted.counting,
        slow_start: wanted.slow_start,
        early_retransmit: wanted.early_retransmit,
        reordering: wanted.reordering,
        limited_transmit: wanted.limited_transmit,
        reduction: wanted.reduction,
        undo: wanted.undo,
        pacing: wanted.pacing,
        ack: wanted.ack,
        nodelay: wanted.nodelay,
        ..current.clone()
    };
    exchanged == *wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::compose_classic as compose;
    use crate::congestion::CongestionChoice;
    use crate::profile::PacingChoice;
    use std::string::{String, ToString};

    fn recompose(from: &str, text: &str) -> Result<Profile, String> {
        let current = compose(from).unwrap();
        Composer::default().recompose(&current, text).map_err(|error| error.to_string())
    }

    #[test]
    fn units_not_named_stay() {
        let profile = recompose("newreno + no-sack + prr", "no-congestion-control + pacing");
        let profile = profile.unwrap();
        assert_eq!(profile.congestion, CongestionChoice::none());
        assert_eq!(profile.pacing, PacingChoice::Rate);
        let same = Profile {
            congestion: CongestionChoice::reno(),
            pacing: PacingChoice::None,
            ..profile.clone()
        };
        assert_eq!(Ok(same), compose("newreno + no-sack + prr"));
        assert_eq!(
            recompose("rack-tlp + cubic", "").unwrap(),
            compose("rack-tlp + cubic").unwrap()
        );
    }

    #[test]
    fn units_that_cannot_be_exchanged_are_refused_with_the_reason() {
        assert_eq!(
            recompose("sack", "vegas + rack-tlp").unwrap_err(),
            "`rack-tlp` would exchange loss recovery of a live connection: it holds what is known of the data in flight"
        );
        assert_eq!(
            recompose("sack", "no-timestamps").unwrap_err(),
            "`no-timestamps` would exchange the timestamps option of a live connection: it was agreed upon with the peer in the \
             handshake"
        );
        assert_eq!(
            recompose("sack", "eifel-timer").unwrap_err(),
            "`eifel-timer` would exchange the retransmission timer of a live connection: it holds what was measured of the path"
        );
        // A preset is its words.
        assert!(recompose("rack-tlp", "sackbase").unwrap_err().starts_with("`sack` would"));
        assert!(recompose("sack", "no-sack").unwrap_err().starts_with("`no-sack` would"));
        assert_eq!(recompose("sack", "xyz").unwrap_err(), "there is no unit called `xyz`");
    }

    #[test]
    fn present_units_may_be_named() {
        let profile = recompose("sack", "sackexp").unwrap();
        assert_eq!(profile, compose("sackexp").unwrap());
    }
}
