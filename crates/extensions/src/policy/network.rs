//! A network of integers, and its file.
//!
//! Theory of operation. A layer computes for each output `(bias + sum of weight * input) >> shift`. The outputs of all layers but the last are cut to
//! 0 to 32,767, those of the last one to -32,767 to 32,767. Inputs have 16 bits, weights 16, biases 32. A layer has at most 64 inputs, so a
//! sum has at most 38 bits and cannot overflow. The shift is that of two's complement: it rounds down.
//!
//! The file, in which all numbers are little-endian:
//!
//! | bytes | |
//! |---|---|
//! | 0 to 7 | `TRPOLICY` |
//! | 8, 9 | the version of this format: 1 |
//! | 10, 11 | the version of the observation: `OBSERVATION` |
//! | 12 | the number of layers: 1 to 4 |
//! | 13 | when it decides: 0 once each round trip, 1 for each acknowledgement |
//! | 14, 15 | zero |
//!
//! and then each layer: its inputs and its outputs (16 bits each), the shift (8 bits, at most 31), three bytes of zero, the weights output by output, the
//! biases. Nothing follows. The first layer has [`INPUTS`] inputs, and the last one two outputs.

use super::observation::{INPUTS, OBSERVATION, Observation};
use super::{Action, Period};

/// A larger file is none.
pub(crate) const MOST_BYTES: usize = 64 * 1024;
const MAGIC: &[u8; 8] = b"TRPOLICY";
const VERSION: u16 = 1;
const MOST_LAYERS: u8 = 4;
/// Inputs and outputs of a layer.
const MOST_UNITS: usize = 64;
const OUTPUTS: usize = 2;
const LARGEST: i64 = 32_767;

/// Why some bytes are no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// Another kind of file.
    #[error("it is no policy: it does not begin with TRPOLICY")]
    Magic,
    /// A policy of another version.
    #[error("it has version {0} of the format, and this program reads version {VERSION}")]
    Version(u16),
    /// It was learned with another observation.
    #[error(
        "it was learned with version {0} of the observation, and this program has version {OBSERVATION}"
    )]
    Observation(u16),
    /// It ends too early, goes on too long or is larger than `MOST_BYTES`.
    #[error("its length is not that of its layers")]
    Length,
    /// A number is beyond what the format allows, or layers do not fit together.
    #[error("its {0} is impossible")]
    Shape(&'static str),
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layer {
    /// The number of inputs.
    pub inputs: usize,
    /// How far sums are shifted to the right.
    pub shift: u8,
    /// The weights, output by output.
    pub weights: Vec<i16>,
    /// A number that is added to each sum; as many as there are outputs.
    pub biases: Vec<i32>,
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    period: Period,
    layers: Vec<Layer>,
}

/// Takes numbers off a file.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], NetworkError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(NetworkError::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], NetworkError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| NetworkError::Length)
    }

    fn u16(&mut self) -> Result<u16, NetworkError> {
        Ok(u16::from_le_bytes(self.bytes()?))
    }
}

impl Network {
    /// Reads a policy.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn read(bytes: &[u8]) -> Result<Network, NetworkError> {
        if bytes.len() > MOST_BYTES {
            return Err(NetworkError::Length);
        }
        let mut reader = Reader(bytes);
        if reader.bytes::<8>().map_err(|_| NetworkError::Magic)? != *MAGIC {
            return Err(NetworkError::Magic);
        }
        let (version, observation) = (reader.u16()?, reader.u16()?);
        if version != VERSION {
            return Err(NetworkError::Version(version));
        }
        if observation != OBSERVATION {
            return Err(NetworkError::Observation(observation));
        }
        let [count, period, zero, also_zero] = reader.bytes()?;
        if !(1..=MOST_LAYERS).contains(&count) {
            return Err(NetworkError::Shape("number of layers"));
        }
        let period = match period {
            0 => Period::Round,
            1 => Period::Ack,
            _ => return Err(NetworkError::Shape("period")),
        };
        if (zero, also_zero) != (0, 0) {
            return Err(NetworkError::Shape("reserved part"));
        }
        let mut layers = Vec::new();
        let mut inputs = INPUTS;
        for _ in 0..count {
            let layer = Layer::read(&mut reader, inputs)?;
            inputs = layer.biases.len();
            layers.push(layer);
        }
        if inputs != OUTPUTS {
            return Err(NetworkError::Shape("number of outputs"));
        }
        if !reader.0.is_empty() {
            return Err(NetworkError::Length);
        }
        Ok(Network { period, layers })
    }

    /// When it decides.
    pub fn period(&self) -> Period {
        self.period
    }

    /// Its layers, from the observation to the outputs, for places that do the arithmetic themselves.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Its two outputs for an observation.
    pub fn decide(&self, observation: &Observation) -> Action {
        let mut values = [0_i64; MOST_UNITS];
        for (value, input) in values.iter_mut().zip(observation) {
            *value = i64::from(*input);
        }
        let last = self.layers.len().saturating_sub(1);
        for (number, layer) in self.layers.iter().enumerate() {
            let least = if number == last { -LARGEST } else { 0 };
            let mut next = [0_i64; MOST_UNITS];
            let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.biases);
            for (output, (weights, bias)) in next.iter_mut().zip(rows) {
                let products =
                    weights.iter().zip(&values).map(|(weight, value)| i64::from(*weight) * value);
                let sum = i64::from(*bias) + products.sum::<i64>();
                *output = (sum >> layer.shift).clamp(least, LARGEST);
            }
            values = next;
        }
        let [factor, sum, ..] = values;
        Action { factor: factor as i32, sum: sum as i32 }
    }
}

impl Layer {
    fn read(reader: &mut Reader<'_>, before: usize) -> Result<Layer, NetworkError> {
        let (inputs, outputs) = (usize::from(reader.u16()?), usize::from(reader.u16()?));
        let [shift, zeros @ ..] = reader.bytes::<4>()?;
        if inputs != before {
            return Err(NetworkError::Shape("number of inputs"));
        }
        if !(1..=MOST_UNITS).contains(&outputs) {
            return Err(NetworkError::Shape("number of outputs"));
        }
        if shift > 31 || zeros != [0; 3] {
            return Err(NetworkError::Shape("shift"));
        }
        let weights = reader.take(2 * inputs * outputs)?;
        let biases = reader.take(4 * outputs)?;
        Ok(Layer {
            inputs,
            shift,
            weights: weights
                .chunks_exact(2)
                .map(|two| i16::from_le_bytes([two[0], two[1]]))
                .collect(),
            biases: biases
                .chunks_exact(4)
                .map(|four| i32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                .collect(),
        })
    }
}
