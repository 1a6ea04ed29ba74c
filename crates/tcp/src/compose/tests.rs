use super::*;
use crate::adu::AduConfig;
use crate::arguments::Fraction;
use crate::congestion::{CongestionChoice, Counting, InitialWindow};
use crate::flow::receive_window::ReceiveWindowConfig;
use crate::profile::{
    AckChoice, EcnChoice, FlowChoice, OrderingChoice, PacingChoice, RecoveryChoice, SlowStartChoice,
};
use crate::slow_start::limited::Limited;
use crate::slow_start::standard::Standard;
use crate::time::Duration;
use crate::undo::UndoConfig;
use std::format;
use std::string::ToString;

fn error(text: &str) -> String {
    compose(text).unwrap_err().to_string()
}

#[test]
fn words_choose_units() {
    assert_eq!(compose(""), Ok(Profile::default()));
    let profile = compose("limited-slow-start(max=50) + newreno+  ecn++ + delayed-ack(delay=5ms)");
    // Without spaces around it a plus is part of a word, and `newreno+` is none.
    assert!(matches!(profile, Err(ComposeError::Argument(_) | ComposeError::Unknown { .. })));
    let profile =
        compose("limited-slow-start(max=50) + newreno + ecn++ + delayed-ack(delay=5ms)").unwrap();
    assert_eq!(profile.slow_start, SlowStartChoice::Limited(Limited { max_ssthresh: 50 }));
    assert_eq!(profile.recovery, RecoveryChoice::NewReno);
    assert!(profile.ecn.config().unwrap().control_packets);
    assert_eq!(profile.ack, AckChoice::Delayed(Duration::from_millis(5)));
    assert_eq!(compose("no-congestion-control").unwrap().congestion, CongestionChoice::none());
    assert_eq!(compose("no-ecn").unwrap().ecn, EcnChoice::Off);
    assert_eq!(
        compose("abc").unwrap().slow_start,
        compose("slow-start(limit=2)").unwrap().slow_start
    );
    assert!(compose("early-retransmit").unwrap().early_retransmit);
    let cap = |text| compose(text).unwrap().reordering.map(Fraction::millionths);
    assert_eq!(
        ["rr", "rr(cap=0.5)", "no-rr", ""].map(cap),
        [Some(900_000), Some(500_000), None, None]
    );
    assert!(!compose("no-limited-transmit").unwrap().limited_transmit);
    let undo = compose("eifel + dsack").unwrap().undo;
    assert!(undo.eifel && undo.dsack && !undo.f_rto);
}

#[test]
fn every_word_and_preset_can_be_used() {
    for word in WORDS {
        assert!(compose(word.name).is_ok(), "{}: {:?}", word.name, compose(word.name));
    }
    for preset in PRESETS {
        assert!(compose(preset.name).is_ok(), "{}", preset.name);
    }
    for entry in ALGORITHMS.iter().filter(|entry| entry.name != "none") {
        let profile = compose(entry.name).unwrap();
        assert_eq!(profile.congestion.to_string(), entry.name);
    }
}

#[test]
fn names_are_used_once() {
    let words = WORDS.iter().map(|word| word.name);
    let presets = PRESETS.iter().map(|preset| preset.name);
    let mut all: Vec<&str> =
        words.chain(presets).chain(ALGORITHMS.iter().map(|entry| entry.name)).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

/// The default is the preset `modern`, and the base of experiments the preset `classic`; both name all that makes them up.
#[test]
fn the_two_bases_are_presets() {
    for base in [Profile::default(), Profile::classic()] {
        let made = |text: &str| Composer::default().compose(base.clone(), text);
        assert_eq!(made("modern"), Ok(Profile::default()));
        assert_eq!(made("classic"), Ok(Profile::classic()));
    }
}

/// A new default changes no experiment: its presets name every unit.
#[test]
fn presets_of_experiments_name_every_unit() {
    for preset in ["classic", "minimal", "base", "sackbase", "exp", "sackexp"] {
        let composer = Composer::default();
        let named: Vec<Unit> =
            composer.choose(&[preset]).unwrap().iter().map(|word| word.unit).collect();
        for unit in Unit::ALL {
            assert!(named.contains(&unit), "{preset}: {unit}");
        }
        assert_eq!(compose(preset), compose_classic(preset), "{preset}");
    }
}

/// A unit that counts duplicates cannot have the default's RACK-TLP beside it.
#[test]
fn recovery_comes_with_what_needs_another_than_the_default() {
    for (text, recovery) in [
        ("", RecoveryChoice::RackTlp),
        ("rr", RecoveryChoice::Sack),
        ("early-retransmit", RecoveryChoice::Sack),
        ("modern + rr", RecoveryChoice::Sack),
        ("no-sack", RecoveryChoice::NewReno),
        ("modern + no-sack", RecoveryChoice::NewReno),
        ("no-early-retransmit", RecoveryChoice::RackTlp),
    ] {
        assert_eq!(compose(text).unwrap().recovery, recovery, "{text}");
    }
}

/// Linux' Reno has no HyStart: its slow start lasts until the first loss.
#[test]
fn reno_has_plain_slow_start_unless_a_word_says_otherwise() {
    let plain = SlowStartChoice::Standard(Standard::default());
    for text in ["reno", "modern + reno", "interactive + reno"] {
        assert_eq!(compose(text).unwrap().slow_start, plain, "{text}");
    }
    for text in ["modern", "cubic", "reno + hystart", "modern + reno + hystart"] {
        assert_eq!(compose(text).unwrap().slow_start, SlowStartChoice::HyStart, "{text}");
    }
    let classic = compose("classic + hystart").unwrap();
    assert_eq!((classic.congestion.name(), classic.slow_start), ("reno", SlowStartChoice::HyStart));
    let search = compose("modern + reno + search").unwrap();
    assert_eq!(search.slow_start, SlowStartChoice::Search);
    let composer = Composer::default();
    let over = composer.over("modern", "reno").unwrap();
    assert_eq!(compose(&over).unwrap().slow_start, plain, "{over}");
    // What is named once more stays as it is.
    let current = compose("reno + hystart").unwrap();
    assert_eq!(composer.compose(current.clone(), "reno"), Ok(current));
}

#[test]
fn the_text_wins_over_its_presets() {
    // Without the option that base leaves out there is no SACK recovery: the text offers it.
    let profile = compose("sack + base").unwrap();
    assert!(profile.options.sack);
    assert_eq!(profile.recovery, RecoveryChoice::Sack);
    // Words of the text itself do not give way to each other.
    let error = compose("sack + no-sack").unwrap_err();
    assert_eq!(error, ComposeError::Profile(ProfileError::SackWithoutOption));
    let profile = compose("no-congestion-control + sackbase").unwrap();
    assert_eq!(profile.congestion, CongestionChoice::none());
    assert_eq!(profile.recovery, RecoveryChoice::Sack);
    assert_eq!(compose("sackexp"), Ok(profile));
}

#[test]
fn wrong_words_are_named() {
    assert_eq!(error("sack + newreno"), "`sack` and `newreno` are both loss recovery");
    assert_eq!(error("rackk"), "there is no unit called `rackk`; did you mean rack-tlp?");
    assert_eq!(error("xyz"), "there is no unit called `xyz`");
    assert_eq!(error("abc(limit=0)"), "abc: limit is a number of segments, from one to 4294967295");
    assert!(error("rr + rack-tlp").starts_with("rr counts duplicates"));
    assert!(error("rr + newreno + no-sack").starts_with("rr learns from DSACKs"));
    assert!(error("rr(cap=2)").ends_with("which is the whole window, not 2"));
    assert!(error("early-retransmit + rack-tlp").starts_with("early retransmit counts duplicates"));
    assert_eq!(error("prr(x=1)"), "prr has no parameter `x`; it has none");
    assert_eq!(
        error("delayed-ack(delay=1s)"),
        "acknowledgements must be delayed by less than 500 ms, not by 1s"
    );
    assert!(error("none").starts_with("there is no unit called `none`; did you mean"));
}

/// A controller that counts on pacing gets it, whatever the order; told to do without, the profile is refused.
#[test]
fn pacing_comes_with_who_needs_it() {
    for entry in ALGORITHMS.iter().filter(|entry| entry.name != "none") {
        let needs = entry.name.starts_with("bbr") || entry.name == "prague";
        let profile = compose(entry.name).unwrap();
        assert_eq!(profile.congestion.needs_pacing(), needs, "{}", entry.name);
        let expected = if needs { PacingChoice::Rate } else { PacingChoice::None };
        assert_eq!(profile.pacing, expected, "{}", entry.name);
        for text in [format!("no-pacing + {}", entry.name), format!("{} + no-pacing", entry.name)] {
            assert_eq!(compose(&text).is_err(), needs, "{text}");
        }
        assert_eq!(
            compose(&format!("pacing + {}", entry.name)).unwrap().pacing,
            PacingChoice::Rate
        );
    }
    assert_eq!(
        error("bbr + no-pacing"),
        "bbr needs pacing; turn pacing on, or choose another congestion control"
    );
    let unpaced = Profile { pacing: PacingChoice::None, ..compose("bbr").unwrap() };
    assert_eq!(unpaced.validate(), Err(ProfileError::NeedsPacing("bbr")));
}

#[test]
fn a_program_can_add_an_algorithm() {
    const MINE: Entry = Entry {
        name: "mine",
        source: "here",
        summary: "the same as Reno",
        read: |_| Ok(CongestionChoice::reno()),
    };
    let composer = Composer::default().with(MINE);
    let profile = composer.compose(Profile::default(), "mine + sack").unwrap();
    assert_eq!(profile.congestion, CongestionChoice::reno());
    assert!(compose("mine").is_err());
}

#[test]
fn units_of_the_receiver_are_chosen_too() {
    let flow = |text: &str| compose(text).unwrap().flow;
    assert_eq!(flow("fixed-window(size=20kB)"), FlowChoice::Fixed(20_000));
    assert_eq!(flow("no-flow-control(memory=1MiB)"), FlowChoice::None { memory: 1 << 20 });
    let window = ReceiveWindowConfig { initial: 10_000, max: 20_000 };
    let text = "receive-window(initial=10000, max=20kB)";
    assert_eq!(flow(text), FlowChoice::ReceiveWindow(window));
    // Whichever comes first: the windows fit, and memory is no window.
    for (text, expected) in [
        ("no-window-scale + fixed-window", FlowChoice::Fixed(65_535)),
        ("fixed-window + no-window-scale", FlowChoice::Fixed(65_535)),
        ("no-window-scale + no-flow-control", FlowChoice::None { memory: 6 << 20 }),
        ("no-flow-control + no-window-scale", FlowChoice::None { memory: 6 << 20 }),
    ] {
        assert_eq!(flow(text), expected, "{text}");
    }
    let ordering = |text: &str| compose(text).unwrap().ordering;
    let units = |max, ordered| OrderingChoice::Units(AduConfig { max, ordered });
    assert_eq!(ordering("unordered"), OrderingChoice::Unordered);
    assert_eq!(ordering("adu"), units(16_384, true));
    assert_eq!(ordering("adu-unordered(max=2kB)"), units(2_000, false));
    assert_eq!(error("adu + unordered"), "`adu` and `unordered` are both the order of delivery");
    assert_eq!(
        error("adu(max=1MB)"),
        "application data units of up to 1000000 bytes need a send buffer of 1003940 bytes at least, \
         not 262144"
    );
    assert_eq!(
        error("adu(max=lots)"),
        "adu's `max`: `lots` is not a size: write it like 64KiB or 1500"
    );
}

#[test]
fn a_text_is_laid_over_another() {
    let over = |base: &str, text: &str| Composer::default().over(base, text).unwrap();
    assert_eq!(over("immediate-ack", "ltcp + sack"), "immediate-ack + ltcp + sack");
    assert_eq!(over("immediate-ack + reno", "ltcp(beta=0.1)"), "immediate-ack + ltcp(beta=0.1)");
    // A preset is its words, and those of the upper text win over all of the lower one.
    assert_eq!(over("sack + ecn", "model-based"), "bbr + pacing + rack-tlp + undo + no-ecn");
    assert_eq!(over("wireless", "vegas"), "rack-tlp + prr + undo + ecn + vegas");
    assert_eq!(over("", "prr"), "prr");
    assert_eq!(over("prr", ""), "prr");
    // Words that cannot work with the upper text give way, for every unit.
    assert_eq!(over("rack-tlp + prr", "no-sack"), "prr + no-sack");
    assert_eq!(over("no-sack", "rack-tlp"), "rack-tlp");
    assert_eq!(over("rack-tlp", "rr"), "rr");
    assert_eq!(over("no-pacing", "bbr"), "bbr");
    assert_eq!(over("bbr", "no-pacing"), "no-pacing");
    assert!(Composer::default().over("reno + cubic", "vegas").is_err());
}

/// A text that was replaced leaves no traces: neither a preset's options and buffers, nor its other words for a unit whose words add up.
#[test]
fn a_word_that_has_lost_does_nothing() {
    assert_eq!(
        compose("minimal + window-scale + timestamps + sack-option + passive-ecn"),
        compose_classic("newreno")
    );
    assert_eq!(compose("modern + f-rto").unwrap().undo, compose("f-rto").unwrap().undo);
    assert_eq!(compose("modern + no-undo").unwrap().undo, UndoConfig::default());
    assert_eq!(compose("interactive + delayed-ack").unwrap().ack, Profile::classic().ack);
    assert_eq!(error("eifel + no-undo"), "`eifel` and `no-undo` are both undo");
    assert_eq!(error("no-undo + dsack"), "`no-undo` and `dsack` are both undo");
}

#[test]
fn the_words_of_one_unit_are_told_from_others() {
    let check = |unit, text: &str| Composer::default().check_unit(unit, text);
    assert_eq!(check(Unit::Congestion, "ltcp(beta=0.1)"), Ok(()));
    assert_eq!(check(Unit::Undo, "eifel + dsack"), Ok(()));
    let said = |unit, text: &str| check(unit, text).unwrap_err().to_string();
    assert_eq!(said(Unit::Congestion, "sack"), "`sack` is loss recovery, not congestion control");
    assert_eq!(
        said(Unit::Recovery, "sack + rack-tlp"),
        "`sack` and `rack-tlp` are both loss recovery"
    );
    assert_eq!(said(Unit::Pacing, " "), "a word for pacing is missing");
    assert_eq!(said(Unit::Reduction, "prr(x=1)"), "prr has no parameter `x`; it has none");
    assert!(said(Unit::Congestion, "modern").starts_with("there is no unit called `modern`"));
}

/// The units of the TCPs that the papers measured.
#[test]
fn old_senders_have_words() {
    let text = "reno-recovery + count-acks + initial-window(segments=2)";
    let profile = compose_classic(text).unwrap();
    assert_eq!(profile.recovery, RecoveryChoice::Reno);
    assert_eq!(profile.counting, Counting::Acks);
    assert_eq!(Some(profile.initial_window), InitialWindow::segments(2));
    assert_eq!(compose("count-bytes + initial-window"), Ok(Profile::default()));
    for (segments, fits) in [(0, false), (1, true), (10, true), (11, false), (1u64 << 40, false)] {
        let text = format!("initial-window(segments={segments})");
        assert_eq!(compose(&text).is_ok(), fits, "{text}");
    }
}

/// The upper text can always return a unit to its default.
#[test]
fn every_default_has_a_word() {
    for unit in Unit::ALL {
        let is_default = |word: &str| compose(word) == Ok(Profile::default());
        assert!(unit.words().any(is_default), "{unit}");
    }
}

#[test]
fn every_word_belongs_to_a_unit_with_a_key() {
    let mut keys: Vec<&str> = Unit::ALL.iter().map(|unit| unit.name()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), Unit::ALL.len());
    let count: usize = Unit::ALL.iter().map(|unit| unit.words().count()).sum();
    // `none` is among the algorithms and is no word.
    assert_eq!(count, WORDS.len() + ALGORITHMS.len() - 1);
}
