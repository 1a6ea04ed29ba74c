//! Scripts without a fuzzer: from seeds, and from a corpus.

/// SplitMix64 (Steele, Lea and Flood, 2014): a stream of numbers from a seed.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A script of 100 to 1500 bytes.
fn script(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let len = 100 + next(&mut state) % 1_400;
    (0..len).map(|_| (next(&mut state) >> 32) as u8).collect()
}

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}

/// Plays the scripts of `seeds` seeds; names those that fail. Returns the sum of what `play` returned.
pub(crate) fn play_all(seeds: u64, play: fn(&[u8]) -> u64) -> u64 {
    if let Some(seed) = number("TRANSOM_SEED") {
        return seeds.max(play(&script(seed))) + 1;
    }
    let seeds = number("TRANSOM_SEEDS").unwrap_or(seeds);
    let (mut sum, mut failed) = (0, Vec::new());
    for seed in 0..seeds {
        match std::panic::catch_unwind(|| play(&script(seed))) {
            Ok(result) => sum += result,
            Err(_) => failed.push(seed),
        }
    }
    let some = &failed[..failed.len().min(20)];
    assert!(failed.is_empty(), "{} of {seeds} seeds failed, among them {some:?}", failed.len());
    sum
}

/// Plays every script of a corpus: a file with one per line, in hexadecimal.
pub(crate) fn play_corpus(file: &str, play: fn(&[u8]) -> u64) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert!(!text.is_empty(), "{file} has no scripts");
    for (line, text) in text.lines().enumerate() {
        let script = from_hex(text).unwrap_or_else(|| panic!("{file}:{}: not hex", line + 1));
        if std::panic::catch_unwind(|| play(&script)).is_err() {
            panic!("{file}:{}: this script fails", line + 1);
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(high)? << 4 | digit(low)?).ok();
    pairs.iter().map(byte).collect::<Option<_>>().filter(|_| rest.is_empty())
}
