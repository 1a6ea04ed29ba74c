//! How long packets were in a queue: recorded one by one, kept as a histogram.
//!
//! A queue's delays are recorded in an HDR histogram of two significant digits: a percentile of it is at most 1 % above the exact one.
//! A span of time keeps the histogram's buckets that are not empty, in a few bytes each. So a queue in which nothing waits costs
//! nothing, and histograms of many spans can be added up.

use hdrhistogram::Histogram;
use transom_tcp::time::Duration;

/// Significant decimal digits of a histogram's values.
const DIGITS: u8 = 2;
/// So many buckets each are as wide as a power of two; two decimal digits need as much.
const PER_OCTAVE: u64 = 128;

/// The delays of the packets that left a queue within some span of time and had waited.
///
/// The greatest is exact, the others are to two significant digits. Packets that did not have to wait are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays(Box<[u8]>);

impl Delays {
    /// Whether nothing waited.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The greatest; `None` if nothing waited.
    pub fn max(&self) -> Option<Duration> {
        take_number(&mut &*self.0).map(Duration::from_nanos)
    }

    /// How many packets had so long a delay, the shortest first. A delay stands for all that are less than 1 % longer.
    pub fn counts(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let mut rest = &*self.0;
        // The greatest comes first.
        let _ = take_number(&mut rest);
        let mut bucket = 0u64;
        std::iter::from_fn(move || {
            bucket = bucket.checked_add(take_number(&mut rest)?)?;
            let count = take_number(&mut rest)?;
            Some((Duration::from_nanos(floor(bucket)), count))
        })
    }

    /// How many packets waited.
    pub fn count(&self) -> u64 {
        self.counts().map(|(_, count)| count).sum()
    }

    /// The same as bytes: the greatest delay in nanoseconds; then, of each bucket, its distance from the one before it and its count,
    /// all as LEB128 numbers. Nothing if nothing waited.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the bytes of [`as_bytes`](Self::as_bytes); `None` if they are not such bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut last = None;
        if !bytes.is_empty() {
            let max = take_number(&mut rest)?;
            while !rest.is_empty() {
                let distance = take_number(&mut rest)?;
                let bucket = match last {
                    Some(last) if distance > 0 => distance.checked_add(last)?,
                    Some(_) => return None,
                    None => distance,
                };
                let count = take_number(&mut rest)?;
                if count == 0 || bucket > bucket_of(max) {
                    return None;
                }
                last = Some(bucket);
            }
            // The greatest is one of them.
            (last == Some(bucket_of(max))).then_some(())?;
        }
        Some(Delays(bytes.into()))
    }
}

/// Records delays.
#[derive(Debug)]
pub(super) struct Waits {
    histogram: Histogram<u32>,
    max: u64,
}

impl Waits {
    pub(super) fn new() -> Option<Box<Self>> {
        // Two digits are possible.
        let histogram = Histogram::new(DIGITS).ok()?;
        Some(Box::new(Waits { histogram, max: 0 }))
    }

    pub(super) fn record(&mut self, delay: Duration) {
        let nanos = delay.as_nanos();
        self.max = self.max.max(nanos);
        // It grows as it must.
        let _ = self.histogram.record(nanos);
    }

    /// The delays recorded since the last call.
    pub(super) fn take(&mut self) -> Delays {
        if self.histogram.is_empty() {
            return Delays::default();
        }
        let mut bytes = Vec::new();
        put_number(&mut bytes, self.max);
        let mut before = 0;
        for step in self.histogram.iter_recorded() {
            let bucket = bucket_of(step.value_iterated_to());
            put_number(&mut bytes, bucket - before);
            put_number(&mut bytes, step.count_at_value().into());
            before = bucket;
        }
        self.histogram.reset();
        self.max = 0;
        Delays(bytes.into_boxed_slice())
    }
}

/// The number of the bucket that a value falls into, as the histogram divides them: up to 255 each value has its own, and from
/// there on each power of two is divided into 128.
fn bucket_of(value: u64) -> u64 {
    let shift = u64::from(value.checked_ilog2().unwrap_or(0)).saturating_sub(7);
    PER_OCTAVE * shift + (value >> shift)
}

/// The least value of a bucket.
fn floor(bucket: u64) -> u64 {
    let shift = (bucket / PER_OCTAVE).saturating_sub(1);
    let value = bucket - PER_OCTAVE * shift;
    // Above the last bucket there are no values.
    u32::try_from(shift).ok().filter(|shift| *shift <= 56).map_or(u64::MAX, |shift| value << shift)
}

/// Appends a number in LEB128.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number in LEB128 off the front; `None` if there is none.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delays(nanos: &[u64]) -> Delays {
        let mut waits = Waits::new().unwrap();
        nanos.iter().for_each(|&nanos| waits.record(Duration::from_nanos(nanos)));
        let delays = waits.take();
        assert!(waits.take().is_empty());
        delays
    }

    #[test]
    fn by_hand() {
        let some = delays(&[255, 3, 256, 257, 3, 1_000_000]);
        let counts: Vec<_> = some.counts().map(|(delay, n)| (delay.as_nanos(), n)).collect();
        // 1,000,000 = 2^19 · 1.907: its octave is divided into steps of 4096, and 244 · 4096 = 999,424.
        assert_eq!(counts, [(3, 2), (255, 1), (256, 2), (999_424, 1)]);
        assert_eq!((some.count(), some.max()), (6, Some(Duration::from_millis(1))));
        let none = delays(&[]);
        assert!(none.is_empty() && none.as_bytes().is_empty());
        assert_eq!((none.count(), none.max()), (0, None));
        // Two packets after 3 ns, 255 − 3 buckets further one, in the next two, and 128 · 12 + 244 − 256 further one.
        assert_eq!(
            some.as_bytes(),
            [0xc0, 0x84, 0x3d, 3, 2, 0xfc, 0x01, 1, 1, 2, 0xf4, 0x0b, 1],
            "{:x?}",
            some.as_bytes()
        );
    }

    #[test]
    fn a_wrong_histogram_is_refused() {
        for bytes in [
            &[0x80][..],
            // A greatest and nothing else, a bucket without a count, a count of zero.
            &[5],
            &[5, 5],
            &[5, 5, 0],
            // A bucket twice, and one that is not the greatest's.
            &[5, 5, 1, 0, 1],
            &[5, 4, 1],
            &[5, 6, 1],
            // Numbers beyond 64 bits.
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 1, 1],
            &[0xff; 12],
        ] {
            assert_eq!(Delays::from_bytes(bytes), None, "{bytes:?}");
        }
        assert_eq!(Delays::from_bytes(&[]), Some(Delays::default()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn buckets_are_those_of_the_histogram(value in 0u64.., shift in 0u32..64) {
            let value = value >> shift;
            let histogram = Histogram::<u64>::new(DIGITS).unwrap();
            prop_assert_eq!(floor(bucket_of(value)), histogram.lowest_equivalent(value));
            let least = floor(bucket_of(value));
            prop_assert!(value - least <= least / 128, "{} {}", value, least);
        }

        #[test]
        fn recorded_delays_are_kept(nanos in prop::collection::vec((0u64..u64::MAX, 0u32..64), 0..50)) {
            let nanos: Vec<u64> = nanos.into_iter().map(|(value, shift)| value >> shift).collect();
            let kept = delays(&nanos);
            prop_assert_eq!(kept.max().map(Duration::as_nanos), nanos.iter().max().copied());
            prop_assert_eq!(kept.count(), nanos.len() as u64);
            let mut floors: Vec<u64> = nanos.iter().map(|value| floor(bucket_of(*value))).collect();
            floors.sort_unstable();
            let again: Vec<u64> = kept
                .counts()
                .flat_map(|(delay, count)| (0..count).map(move |_| delay.as_nanos()))
                .collect();
            prop_assert_eq!(again, floors);
            prop_assert_eq!(Delays::from_bytes(kept.as_bytes()), Some(kept));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(0u8.., 0..40)) {
            if let Some(delays) = Delays::from_bytes(&bytes) {
                let _ = (delays.count(), delays.max());
            }
        }
    }
}
