//! Partial reliability over a path that loses: what is lost is a hole, what is not is not, and nothing else is different.

use crate::common;

use common::world::{Path, lossy, transfer};
use common::{Setup, ms, secs};
use std::ops::Range;
use transom_tcp::{HoleChoice, Persistence, Profile, RecoveryChoice};

fn setup(recovery: RecoveryChoice, persistence: Option<Persistence>, holes: HoleChoice) -> Setup {
    let mut setup = Setup { profile: Profile::classic(), ..Setup::default() };
    setup.profile.recovery = recovery;
    setup.profile.persistence = persistence;
    setup.profile.holes = holes;
    setup.profile.time_wait = secs(3600);
    setup.profile.r2 = Some(40);
    setup.profile.syn_r2 = 20;
    setup.path.max_super_segment = Some(20_000);
    setup.receive_buffers(60_000, 65_535)
}

const ALL: [RecoveryChoice; 6] = [
    RecoveryChoice::GoBackN,
    RecoveryChoice::WholeWindow,
    RecoveryChoice::Reno,
    RecoveryChoice::NewReno,
    RecoveryChoice::Sack,
    RecoveryChoice::RackTlp,
];

/// Packets take the same time, so that none overtakes another.
fn path(loss: u64) -> Path {
    Path { loss, duplicate: 0, late: 0, delay: 10_000, jitter: 0 }
}

fn length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Both ends send with this persistence. Returns how much of what one of them sent was lost, and how much of it was a hole.
fn run(setup: &Setup, loss: u64, seed: u64) -> (u64, u64) {
    let mut world = lossy([setup, setup], path(loss), seed);
    let holes = transfer(&mut world, [300_000, 50_000], seed);
    let (mut lost_bytes, mut hole_bytes) = (0, 0);
    for end in 0..2 {
        let (lost, holes) = (&world.path.lost[end], &holes[1 - end]);
        for hole in holes {
            let mut at = hole.start;
            while at < hole.end {
                let next = lost.iter().find(|lost| lost.contains(&at)).map(|lost| lost.end);
                at =
                    next.unwrap_or_else(|| panic!("seed {seed}: byte {at} was not lost: {hole:?}"));
            }
        }
        lost_bytes += length(lost);
        hole_bytes += length(holes);
    }
    (lost_bytes, hole_bytes)
}

#[test]
fn without_loss_there_is_no_hole() {
    for recovery in ALL {
        for holes in [HoleChoice::Accept, HoleChoice::Skip(ms(1))] {
            let setup = setup(recovery, Some(Persistence::NONE), holes);
            for seed in 0..20 {
                assert_eq!(run(&setup, 0, seed), (0, 0), "{recovery:?} seed {seed}");
            }
        }
    }
}

#[test]
fn only_lost_data_is_a_hole() {
    for recovery in ALL {
        let setup = setup(recovery, Some(Persistence::NONE), HoleChoice::Wait);
        let (mut lost, mut holes) = (0, 0);
        for seed in 0..100 {
            let run = run(&setup, 30, seed);
            assert!(run.1 <= run.0, "{recovery:?} seed {seed}: {run:?}");
            (lost, holes) = (lost + run.0, holes + run.1);
        }
        // All of it, but for what three lost announcements in a row let be sent again.
        assert!(holes * 100 > lost * 99 && lost > 500_000, "{recovery:?}: {holes} of {lost}");
    }
}

#[test]
fn the_more_often_it_is_sent_again_the_less_is_missing() {
    let holes = |persistence| {
        let setup = setup(RecoveryChoice::Sack, Some(persistence), HoleChoice::Wait);
        (0..60).map(|seed| run(&setup, 100, seed).1).sum::<u64>()
    };
    let times = |times| Persistence::new(Some(times), None);
    let [none, one, two] = [holes(times(0)), holes(times(1)), holes(times(2))];
    // A tenth of what is sent is lost: of that a tenth again, and so on. With some room for luck.
    assert!(one < none / 5 && two < one / 5, "{none} {one} {two}");
    // A lifetime of three round trips is enough for one repair, and seldom for two.
    let brief = Persistence::new(None, Some(ms(60)));
    let in_time = holes(brief);
    assert!(two < in_time && in_time < none, "{in_time}");
}

#[test]
fn a_plain_peer_gets_everything_and_gives_everything() {
    let plain = setup(RecoveryChoice::Sack, None, HoleChoice::Wait);
    let partial = setup(RecoveryChoice::Sack, Some(Persistence::NONE), HoleChoice::Accept);
    for seed in 0..40 {
        let mut world = lossy([&plain, &partial], path(50), seed);
        let holes = transfer(&mut world, [200_000, 200_000], seed);
        assert_eq!(holes, [vec![], vec![]], "seed {seed}");
        assert!(length(&world.path.lost[0]) > 0 && length(&world.path.lost[1]) > 0);
    }
}

#[test]
fn an_impatient_receiver_skips_what_a_plain_sender_takes_too_long_to_repair() {
    let plain = setup(RecoveryChoice::Sack, None, HoleChoice::Wait);
    let skipped = |after| {
        let hasty = setup(RecoveryChoice::Sack, None, HoleChoice::Skip(after));
        let (mut lost, mut holes) = (0, 0);
        for seed in 0..60 {
            let mut world = lossy([&plain, &hasty], path(50), seed);
            let told = transfer(&mut world, [300_000, 50_000], seed);
            assert_eq!(told[0], [], "the other direction is as ever");
            for hole in &told[1] {
                let is_lost = world.path.lost[0].iter().any(|lost| lost.contains(&hole.start));
                assert!(is_lost, "seed {seed}: {hole:?} was not lost");
            }
            // The sender has seen the losses all the same.
            let counters = world.ends[0].info().counters;
            let reductions = counters.fast_recoveries + counters.timeouts;
            assert!(reductions > 0 || length(&world.path.lost[0]) == 0, "seed {seed}");
            lost += length(&world.path.lost[0]);
            holes += length(&told[1]);
        }
        (holes, lost)
    };
    // In two round trips most of what is lost can be repaired, in ten nearly all.
    let [two, ten] = [skipped(ms(40)), skipped(ms(200))];
    assert!(two.0 > 0 && two.0 < two.1 / 2, "{two:?}");
    assert!(ten.0 < ten.1 / 10, "{ten:?}");
}
