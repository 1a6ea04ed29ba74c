//! Moments against closed forms over 10^6 draws. The seeds are fixed, so a tolerance of four standard
//! errors is a judgement on the generator, not a chance.

use super::*;

const DRAWS: u32 = 1_000_000;

/// Mean, variance, skewness and excess kurtosis of a sample.
fn moments(mut draw: impl FnMut() -> f64) -> [f64; 4] {
    let sample: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
    let n = f64::from(DRAWS);
    let mean = sample.iter().sum::<f64>() / n;
    let central = |power: i32| sample.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
    let variance = central(2);
    [mean, variance, central(3) / variance.powf(1.5), central(4) / variance.powi(2) - 3.0]
}

#[track_caller]
fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{what}: {value}, not {expected} ± {tolerance}");
}

fn rng(purpose: u64) -> Rng {
    Streams::new(0x7261_6e73_6f6d).rng(1, purpose)
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let draw = |seed, entity, purpose| -> [u64; 4] {
        let mut rng = Streams::new(seed).rng(entity, purpose);
        core::array::from_fn(|_| rng.next_u64())
    };
    assert_eq!(draw(1, 2, 3), draw(1, 2, 3));
    // Every coordinate matters, and swapping two of them is another stream.
    let all = [draw(1, 2, 3), draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4), draw(2, 1, 3)];
    for (i, one) in all.iter().enumerate() {
        assert!(all[i + 1..].iter().all(|other| other != one), "stream {i} is repeated");
    }
}

#[test]
fn the_derivation_is_chacha8_of_seed_and_entity() {
    // The key as the documentation has it, given to the cipher directly.
    let mut key = [0u8; 32];
    key[0] = 5;
    key[8] = 9;
    key[16..].copy_from_slice(b"transom-sim rng1");
    let mut cipher = ChaCha8Rng::from_seed(key);
    cipher.set_stream(4);
    assert_eq!(Streams::new(5).rng(9, 4).next_u64(), cipher.next_u64());
}

#[test]
fn skipped_numbers_are_consumed() {
    let (mut drawing, mut skipping) = (rng(7), rng(7));
    let mut choices = rng(8);
    for _ in 0..5_000 {
        match choices.below(4) {
            0 => {
                let numbers = choices.below(40);
                skipping.skip(numbers);
                (0..numbers).for_each(|_| _ = drawing.next_u64());
            }
            1 => {
                assert!(!skipping.bernoulli(Probability::ZERO));
                drawing.next_u64();
            }
            2 => {
                let mut bytes = [[0; 13]; 2];
                drawing.fill(&mut bytes[0]);
                skipping.fill(&mut bytes[1]);
                assert_eq!(bytes[0], bytes[1]);
            }
            _ => assert_eq!(drawing.next_u64(), skipping.next_u64()),
        }
    }
}

#[test]
fn the_cipher_is_chacha8() {
    // draft-strombergson-chacha-test-vectors, TC1 (all-zero key and nonce), 256-bit key, 8 rounds.
    let mut rng = Rng { cipher: ChaCha8Rng::from_seed([0; 32]), skipped: 0 };
    let mut bytes = [0; 32];
    rng.fill(&mut bytes);
    let expected = "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e";
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected);
}

#[test]
fn streams_of_different_entities_are_uncorrelated() {
    let (mut a, mut b) = (Streams::new(1).rng(1, 0), Streams::new(1).rng(2, 0));
    let equal_bits: u32 = (0..10_000).map(|_| (a.next_u64() ^ b.next_u64()).count_zeros()).sum();
    // 640,000 fair coins: standard deviation 400.
    assert_near("equal bits", f64::from(equal_bits), 320_000.0, 1600.0);
}

#[test]
fn bernoulli_frequency() {
    for text in ["0.1%", "3%", "50%", "99.9%"] {
        let probability: Probability = text.parse().unwrap();
        let p = probability.parts() as f64 / Probability::PARTS as f64;
        let mut rng = rng(1);
        let hits = (0..DRAWS).filter(|_| rng.bernoulli(probability)).count();
        let n = f64::from(DRAWS);
        assert_near(text, hits as f64, n * p, 4.0 * (n * p * (1.0 - p)).sqrt());
    }
    let mut rng = rng(2);
    assert!((0..DRAWS).all(|_| !rng.bernoulli(Probability::ZERO)));
    assert!((0..DRAWS).all(|_| rng.bernoulli(Probability::ONE)));
}

#[test]
fn uniform_moments_and_range() {
    // Discrete uniform on 0..b: mean (b−1)/2, variance (b²−1)/12, kurtosis about −1.2.
    let bound = 1_000_003u64;
    let mut rng = rng(3);
    let [mean, variance, skewness, kurtosis] = moments(|| {
        let x = rng.below(bound);
        assert!(x < bound);
        x as f64
    });
    let b = bound as f64;
    let expected = (b * b - 1.0) / 12.0;
    assert_near("mean", mean, (b - 1.0) / 2.0, 4.0 * (expected / 1e6).sqrt());
    assert_near("variance", variance / expected, 1.0, 4.0 * (0.8f64 / 1e6).sqrt());
    assert_near("skewness", skewness, 0.0, 0.01);
    assert_near("kurtosis", kurtosis, -1.2, 0.01);
}

#[test]
fn a_bound_that_does_not_divide_the_range_is_not_biased() {
    // With 2^64 mod b = 2^62, taking bits without rejection would give the lower thirds 3/8, 3/8, 1/4.
    let bound = 3u64 << 62;
    let mut rng = rng(4);
    let mut thirds = [0u32; 3];
    for _ in 0..DRAWS {
        thirds[(rng.below(bound) >> 62) as usize] += 1;
    }
    for count in thirds {
        assert_near("third", f64::from(count), 1e6 / 3.0, 4.0 * (1e6f64 * 2.0 / 9.0).sqrt());
    }
}

#[test]
fn between_includes_both_ends() {
    let mut rng = rng(5);
    let mut seen = [0u32; 3];
    for _ in 0..300 {
        seen[(rng.between(9, 7) - 7) as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
    assert_eq!(rng.between(5, 5), 5);
    assert_ne!(rng.between(0, u64::MAX), rng.between(0, u64::MAX));
    assert_eq!(rng.below(0), 0);
}

#[test]
fn normal_moments_and_tails() {
    let mut rng = rng(6);
    let mut beyond = [0u32; 5];
    let [mean, variance, skewness, kurtosis] = moments(|| {
        let z = rng.standard_normal() as f64 / 4_294_967_296.0;
        for (sigma, count) in beyond.iter_mut().enumerate() {
            *count += u32::from(z.abs() > sigma as f64);
        }
        z
    });
    // Standard errors: 1/√n, √(2/n), √(6/n), √(24/n).
    assert_near("mean", mean, 0.0, 4.0e-3);
    assert_near("variance", variance, 1.0, 5.7e-3);
    assert_near("skewness", skewness, 0.0, 9.8e-3);
    assert_near("kurtosis", kurtosis, 0.0, 1.96e-2);
    // P(|z| > kσ), from the normal distribution function.
    for (sigma, p) in [
        (1, 0.317_310_507_863f64),
        (2, 0.045_500_263_896),
        (3, 0.002_699_796_063),
        (4, 6.334_248e-5),
    ] {
        let tolerance = 4.0 * (1e6f64 * p * (1.0 - p)).sqrt();
        assert_near(&format!("beyond {sigma}σ"), f64::from(beyond[sigma]), 1e6 * p, tolerance);
    }
}

#[test]
fn normal_scales_shifts_and_saturates() {
    let (mut scaled, mut standard) = (rng(7), rng(7));
    for _ in 0..1000 {
        let z = standard.standard_normal();
        assert_eq!(scaled.normal(1_000_000, 2 << 32), 1_000_000 + 2 * z);
    }
    let extremes: Vec<i64> = (0..1000).map(|_| scaled.normal(0, u64::MAX)).collect();
    assert!(extremes.contains(&i64::MAX) && extremes.contains(&i64::MIN));
}

#[test]
fn pareto_moments_and_tail() {
    // α = 6, x_m = 10^6: mean αx/(α−1), variance αx²/((α−1)²(α−2)).
    let (scale, shape) = (1_000_000u64, Shape::from_thousandths(6000).unwrap());
    let mut rng = rng(8);
    let mut beyond_twice = 0u32;
    let [mean, variance, ..] = moments(|| {
        let x = rng.pareto(scale, shape);
        assert!(x >= scale);
        beyond_twice += u32::from(x > 2 * scale);
        x as f64 / scale as f64
    });
    let expected: f64 = 6.0 / (25.0 * 4.0);
    assert_near("mean", mean, 1.2, 4.0 * (expected / 1e6).sqrt());
    // The fourth moment is finite for α = 6: the kurtosis is 6(α³+α²−6α−2)/(α(α−3)(α−4)) = 35.67.
    assert_near("variance", variance / expected, 1.0, 4.0 * (37.7f64 / 1e6).sqrt());
    // P(X > 2x_m) = 2^-6.
    let p = 1.0 / 64.0;
    assert_near("tail", f64::from(beyond_twice), 1e6 * p, 4.0 * (1e6f64 * p * (1.0 - p)).sqrt());
}

#[test]
fn heavy_pareto_tail_follows_the_power_law() {
    let shape: Shape = "1.5".parse().unwrap();
    let mut rng = rng(9);
    let mut beyond = [0u32; 3];
    for _ in 0..DRAWS {
        let x = rng.pareto(1000, shape);
        for (i, multiple) in [4, 25, 100].into_iter().enumerate() {
            beyond[i] += u32::from(x > 1000 * multiple);
        }
    }
    // multiple^-1.5.
    for (count, p) in beyond.into_iter().zip([1.0 / 8.0, 1.0 / 125.0, 1.0 / 1000.0]) {
        assert_near("tail", f64::from(count), 1e6 * p, 4.0 * (1e6f64 * p * (1.0 - p)).sqrt());
    }
}

#[test]
fn shapes() {
    assert_eq!("1.5".parse::<Shape>().unwrap().thousandths(), 1500);
    assert_eq!("1.5".parse::<Shape>().unwrap().to_string(), "1.500");
    assert!("0".parse::<Shape>().is_err());
    assert!("1.5ms".parse::<Shape>().is_err());
    assert!("".parse::<Shape>().is_err());
}
