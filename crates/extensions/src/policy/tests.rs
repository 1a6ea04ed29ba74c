//! Policies: hostile files, and decisions that are known.

use super::*;
use crate::stack;
use proptest::prelude::*;

/// The shift, the weights of each output, and the biases.
type Layer = (u8, Vec<Vec<i16>>, Vec<i32>);

/// A policy with these layers: the shift, the weights output by output, the biases.
fn file(period: u8, layers: &[Layer]) -> Vec<u8> {
    let mut bytes = b"TRPOLICY\x01\0\x01\0".to_vec();
    bytes.extend([layers.len() as u8, period, 0, 0]);
    for (shift, weights, biases) in layers {
        bytes.extend((weights[0].len() as u16).to_le_bytes());
        bytes.extend((biases.len() as u16).to_le_bytes());
        bytes.extend([*shift, 0, 0, 0]);
        weights.iter().flatten().for_each(|weight| bytes.extend(weight.to_le_bytes()));
        biases.iter().for_each(|bias| bytes.extend(bias.to_le_bytes()));
    }
    bytes
}

fn row(at: usize, weight: i16) -> Vec<i16> {
    let mut row = vec![0; INPUTS];
    row[at] = weight;
    row
}

#[test]
fn a_network_by_hand() {
    // Half of the first input for the factor; a quarter less than nothing, rounded down, for the sum.
    let bytes = file(1, &[(10, vec![row(1, 512), row(2, -256)], vec![0, -1])]);
    let network = Network::read(&bytes).unwrap();
    assert_eq!(network.period(), Period::Ack);
    let mut observation = [0; INPUTS];
    (observation[1], observation[2]) = (600, 3);
    assert_eq!(network.decide(&observation), Action { factor: 300, sum: -1 });
    // A hidden layer has nothing below zero.
    let hidden = (0, vec![row(1, -1)], vec![0]);
    let bytes = file(0, &[hidden, (0, vec![vec![1], vec![-1]], vec![5, 7])]);
    let action = Network::read(&bytes).unwrap().decide(&observation);
    assert_eq!(action, Action { factor: 5, sum: 7 });
}

#[test]
fn windows_by_hand() {
    let apply = |factor, sum| Action { factor, sum }.apply(10_000, 1000);
    assert_eq!(apply(0, 0), 10_000);
    assert_eq!(apply(1024, 0), 20_000);
    assert_eq!(apply(i32::MAX, 0), 20_000);
    assert_eq!(apply(i32::MIN, 0), 2500);
    assert_eq!(apply(0, 1024), 11_000);
    assert_eq!(apply(0, i32::MIN), 6000);
    assert_eq!(apply(-768, -4096), 1000, "one segment always is left");
    assert_eq!(Action::default().apply(u64::MAX, u64::MAX), 1 << 40);
}

#[test]
fn a_file_that_is_no_policy_is_refused() {
    let good = file(0, &[(0, vec![row(0, 1), row(0, 1)], vec![0, 0])]);
    assert!(Network::read(&good).is_ok());
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Network::read(&bytes).unwrap_err()
    };
    assert_eq!(with(0, b'X'), NetworkError::Magic);
    assert_eq!(with(8, 2), NetworkError::Version(2));
    assert_eq!(with(10, 9), NetworkError::Observation(9));
    assert_eq!(with(12, 0), NetworkError::Shape("number of layers"));
    assert_eq!(with(12, 5), NetworkError::Shape("number of layers"));
    assert_eq!(with(12, 2), NetworkError::Length);
    assert_eq!(with(13, 2), NetworkError::Shape("period"));
    assert_eq!(with(14, 1), NetworkError::Shape("reserved part"));
    assert_eq!(with(16, 15), NetworkError::Shape("number of inputs"));
    assert_eq!(with(18, 0), NetworkError::Shape("number of outputs"));
    assert_eq!(with(19, 255), NetworkError::Shape("number of outputs"));
    assert_eq!(with(18, 1), NetworkError::Shape("number of outputs"));
    assert_eq!(with(20, 32), NetworkError::Shape("shift"));
    assert_eq!(Network::read(&[good.clone(), vec![0]].concat()), Err(NetworkError::Length));
    for length in 0..good.len() {
        assert!(Network::read(&good[..length]).is_err(), "{length}");
    }
    assert_eq!(Network::read(&vec![0; network::MOST_BYTES + 1]), Err(NetworkError::Length));
}

#[test]
fn files_are_ordinary_and_are_the_ones_that_are_meant() {
    let directory = std::env::temp_dir().join(format!("transom-policy-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (path, text) = (directory.join("a.policy"), |more: &str| {
        format!("nice + policy(file={}{more})", directory.join("a.policy").display())
    });
    assert!(stack(&text("")).unwrap_err().to_string().contains("cannot be read"));
    std::fs::write(&path, file(0, &[(0, vec![row(0, 1), row(0, 1)], vec![0, 0])])).unwrap();
    let pinned = pinned(&text(""));
    assert!(pinned.starts_with("nice + policy(file=") && pinned.contains(", sha256="), "{pinned}");
    assert_eq!(super::pinned(&pinned), pinned);
    assert_eq!(stack(&pinned).unwrap().len(), 2);
    // Another file under the same name.
    std::fs::write(&path, file(1, &[(0, vec![row(0, 1), row(0, 1)], vec![0, 0])])).unwrap();
    assert!(stack(&pinned).unwrap_err().to_string().contains("another policy"));
    std::fs::write(&path, b"root:x:0:0").unwrap();
    let error = stack(&text("")).unwrap_err().to_string();
    assert!(error.contains("no policy") && !error.contains("root"), "{error}");
    let device = stack("policy(file=/dev/zero)").unwrap_err().to_string();
    assert!(device.contains("no ordinary file"), "{device}");
    assert!(stack("policy(name=low-latency)").is_ok());
    assert!(stack("policy(name=other)").unwrap_err().to_string().contains("low-latency"));
    assert!(stack("policy(name=background, file=x)").is_err());
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Decisions that Python's own arithmetic has made (python/tests/test_gym.py): each line has a file in hexadecimal, an observation, the outputs, a window, a
/// segment and the next window.
#[test]
fn decisions_are_those_of_python() {
    let mut lines = 0;
    for line in include_str!("../../tests/policy/golden.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let digits = words[0].as_bytes().chunks_exact(2);
        let bytes: Vec<u8> = digits
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect();
        let network = Network::read(&bytes).unwrap();
        let numbers: Vec<i64> = words[1..].iter().map(|word| word.parse().unwrap()).collect();
        let observation: Observation =
            std::array::from_fn(|at| i16::try_from(numbers[at]).unwrap());
        let [factor, sum, window, mss, next] = numbers[INPUTS..] else { panic!("{line}") };
        let action = network.decide(&observation);
        assert_eq!((i64::from(action.factor), i64::from(action.sum)), (factor, sum), "{line}");
        assert_eq!(action.apply(window as u64, mss as u64), next as u64, "{line}");
        lines += 1;
    }
    assert!(lines >= 100, "{lines}");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Network::read(&bytes);
        let _ = Network::read(&[b"TRPOLICY\x01\0\x01\0\x01\0\0\0".to_vec(), bytes].concat());
    }

    /// The largest numbers there are: nothing overflows, in a build that would notice.
    #[test]
    fn extremes_stay_within_bounds(
        weight in prop_oneof![Just(i16::MIN), Just(i16::MAX), any::<i16>()],
        bias in prop_oneof![Just(i32::MIN), Just(i32::MAX), any::<i32>()],
        input in prop_oneof![Just(i16::MIN), Just(i16::MAX), any::<i16>()],
        shift in 0_u8..=31,
        window: u64,
        mss: u64,
    ) {
        let hidden = (shift, vec![vec![weight; INPUTS]; 64], vec![bias; 64]);
        let wide = (shift, vec![vec![weight; 64]; 64], vec![bias; 64]);
        let last = (shift, vec![vec![weight; 64]; 2], vec![bias; 2]);
        let network = Network::read(&file(0, &[hidden, wide, last])).unwrap();
        let action = network.decide(&[input; INPUTS]);
        prop_assert!(action.factor.abs() <= 32_767 && action.sum.abs() <= 32_767);
        let next = action.apply(window, mss);
        prop_assert!((1..=1 << 40).contains(&next));
    }

    #[test]
    fn observations_of_anything_do_not_panic(
        acks in proptest::collection::vec((any::<Option<u64>>(), any::<u64>(), any::<bool>()), 0..20),
        numbers in proptest::collection::vec(any::<u64>(), 16),
    ) {
        let seen = |from: usize| Seen {
            now: transom_tcp::time::Instant::from_nanos(numbers[from]),
            mss: numbers[from + 1],
            window: numbers[from + 2],
            in_flight: numbers[from + 3],
            delivered: numbers[from + 4],
            lost: numbers[from + 5],
            base: Some(transom_tcp::time::Duration::from_nanos(numbers[from + 6])),
            reductions: numbers[from + 7],
        };
        let mut observer = Observer::begin(&seen(0));
        for (rtt, bytes, marked) in acks {
            observer.ack(rtt.map(transom_tcp::time::Duration::from_nanos), bytes, marked);
        }
        let first = observer.observe(&seen(8));
        let second = observer.observe(&seen(0));
        prop_assert!(first.iter().chain(&second).all(|value| *value >= -32_767));
    }
}
