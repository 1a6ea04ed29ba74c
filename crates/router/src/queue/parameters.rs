//! Why a queue cannot be built.

/// Refuses the first parameter that is zero.
pub(super) fn above_zero(parameters: &[(&'static str, bool)]) -> Result<(), ParameterError> {
    match parameters.iter().find(|(_, is_zero)| *is_zero) {
        Some((parameter, _)) => Err(ParameterError::Zero { parameter }),
        None => Ok(()),
    }
}

/// Parameters that make no sense, alone or together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// A parameter must be above zero.
    #[error("`{parameter}` must be above zero")]
    Zero {
        /// Its name in a queue's text form.
        parameter: &'static str,
    },
    /// A parameter is too large to be computed with.
    #[error("`{parameter}` must be at most {most}")]
    TooLarge {
        /// Its name in a queue's text form.
        parameter: &'static str,
        /// The largest value there is.
        most: u64,
    },
    /// RED's thresholds do not count the same.
    #[error("red's `min` and `max` must both count packets, or both bytes")]
    MixedUnits,
    /// RED's lower threshold is not below its upper one.
    #[error("red's `min` ({min}) must be below its `max` ({max})")]
    Thresholds {
        /// The lower threshold.
        min: u64,
        /// The upper threshold.
        max: u64,
    },
    /// RED's lower threshold lies beyond the queue's capacity.
    #[error(
        "a queue limited to {limit} never exceeds red's `min` ({min}), so RED would do nothing; lower `min`"
    )]
    NeverReached {
        /// The lower threshold.
        min: u64,
        /// The capacity, in the same unit.
        limit: u64,
    },
    /// CoDel's target is longer than its interval.
    #[error("codel's `target` must be shorter than its `interval`; 5 to 10 % of it is usual")]
    TargetAboveInterval,
}
