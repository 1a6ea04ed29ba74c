//! A policy in the kernel program beside the extension: the same events, the same decisions.

use transom_extensions::policy::{Network, extension};
use transom_tcp::extension::ExtensionChoice;

use super::nice::{InUserSpace, life, programs};
use super::*;
use crate::layout::{RECORD, RawEvent, policy_bytes};

/// Bytes of `struct policy`, and where the other members of `struct policy_trial` are.
const POLICY: usize = 17 * 8 + 4 * 4 + 8 + 2 * 16 * 4;
const ASKED: usize = POLICY + RECORD;
const BEGINS: usize = ASKED + 8;
const TRIAL: usize = BEGINS + 8;

/// A policy of two layers of weights that look random, and as a file.
fn network(seed: u64, period: u8) -> Network {
    let mut state = seed;
    let mut number = |most: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        i64::try_from((state >> 33) % (2 * most)).unwrap() - i64::try_from(most).unwrap()
    };
    let mut file = b"TRPOLICY\x01\0\x01\0".to_vec();
    file.extend([2, period, 0, 0]);
    for (inputs, outputs) in [(14_u16, 12_u16), (12, 2)] {
        file.extend(inputs.to_le_bytes());
        file.extend(outputs.to_le_bytes());
        file.extend([10, 0, 0, 0]);
        (0..inputs * outputs).for_each(|_| file.extend((number(1500) as i16).to_le_bytes()));
        (0..outputs).for_each(|_| file.extend((number(200_000) as i32).to_le_bytes()));
    }
    Network::read(&file).unwrap()
}

/// Feeds both, and returns how many different windows they asked for.
fn compare(network: &Network, programs: &Programs, trace: &[RawEvent]) -> usize {
    let network = std::sync::Arc::new(network.clone());
    let choice = ExtensionChoice::new("policy", move || {
        extension(network.period(), Box::new(network.clone()))
    });
    let (first, rest) = trace.split_first().unwrap();
    let mut in_user_space = InUserSpace::new(first, &choice);
    let mut trial = [0; TRIAL];
    let mut take = |event: &RawEvent, begins: u64| {
        trial[POLICY..ASKED].copy_from_slice(&event.bytes());
        trial[BEGINS..].copy_from_slice(&begins.to_ne_bytes());
        programs.try_one("narrow_try_policy", "policy_trials", &mut trial);
        u64::from_ne_bytes(*trial[ASKED..].first_chunk().unwrap())
    };
    assert_eq!(take(first, 1), in_user_space.asked(), "at the beginning");
    let mut windows = std::collections::BTreeSet::new();
    for (index, event) in rest.iter().enumerate() {
        let expected = in_user_space.take(event);
        let decided = take(event, 0);
        assert_eq!(decided, expected, "event {index} of {}: {event:?}", rest.len());
        windows.insert(decided);
    }
    windows.len()
}

#[test]
fn the_kernel_program_decides_as_the_policy_does() {
    let mut different = 0;
    for seed in 0..10 {
        let network = network(seed, u8::from(seed % 2 == 0));
        let decides = InKernel::Policy(policy_bytes(&network).unwrap());
        let name = format!("transom-policy-{seed}");
        let Some((cgroup, programs)) = programs(&name, decides) else { return };
        for trace in 0..4 {
            different += compare(&network, &programs, &life(100 * seed + trace, 400));
        }
        drop(programs);
        cgroup.remove(std::time::Duration::from_secs(5)).unwrap();
    }
    println!("{different} windows");
    assert!(different > 400, "{different}");
}

#[test]
fn a_policy_that_is_too_large_for_the_kernel_is_none_there() {
    let mut file = b"TRPOLICY\x01\0\x01\0\x02\0\0\0".to_vec();
    for (inputs, outputs) in [(14_u16, 17_u16), (17, 2)] {
        file.extend(inputs.to_le_bytes());
        file.extend(outputs.to_le_bytes());
        file.extend([10, 0, 0, 0]);
        file.extend(vec![0; usize::from(outputs) * (2 * usize::from(inputs) + 4)]);
    }
    assert_eq!(policy_bytes(&Network::read(&file).unwrap()), None);
}
