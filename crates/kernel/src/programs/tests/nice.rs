//! Nice in the kernel program beside the extension: the same events, the same decisions.

use std::path::Path;

use transom_tcp::extension::{ExtensionChoice, ObservedLayers, Variable};

use super::*;
use transom_tcp::congestion::Nice;

use crate::layout::{NICE_PARAMETERS, NO_SLOT, Opening, RECORD, RawEvent, nice_bytes};
use crate::state::Known;

/// Bytes of `struct nice`, and where the members of `struct trial` are.
const NICE: usize = 144;
const PARAMETERS: usize = NICE;
const EVENT: usize = PARAMETERS + NICE_PARAMETERS;
const ASKED: usize = EVENT + RECORD;
const BEGINS: usize = ASKED + 8;
const TRIAL: usize = BEGINS + 8;

/// The program in the kernel, by itself.
struct Here<'a> {
    programs: &'a Programs,
    trial: [u8; TRIAL],
}

impl Here<'_> {
    fn asked(&self) -> u64 {
        u64::from_ne_bytes(*self.trial[ASKED..].first_chunk().unwrap())
    }

    fn run(&mut self, event: &[u8; RECORD], begins: bool) -> u64 {
        self.trial[EVENT..ASKED].copy_from_slice(event);
        self.trial[BEGINS..].copy_from_slice(&u64::from(begins).to_ne_bytes());
        self.programs.try_one("narrow_try", "trials", &mut self.trial);
        self.asked()
    }
}

/// The extension, by the very code that runs it.
pub(super) struct InUserSpace {
    known: Known,
    layers: ObservedLayers,
}

impl InUserSpace {
    pub(super) fn new(first: &RawEvent, choice: &ExtensionChoice) -> Self {
        let opening = Opening {
            cookie: 1,
            at: first.at,
            flags: first.flags,
            slot: NO_SLOT,
            acks: first.acks,
            local: ([127, 0, 0, 1], 1).into(),
            remote: ([127, 0, 0, 1], 2).into(),
            had: [0; NAME],
            mss: first.mss,
            segments: first.segments,
            snd_una: first.snd_una,
            place: 0,
            ssthresh: first.ssthresh,
            snd_nxt: first.snd_nxt,
            snd_wnd: first.snd_wnd,
            srtt_us: first.srtt_us,
        };
        let known = Known::new(&opening);
        let mut layers = ObservedLayers::default();
        let now = transom_tcp::time::Instant::from_nanos(first.at);
        layers.attach(now, &known.observed, choice.extension()).unwrap();
        InUserSpace { known, layers }
    }

    /// The request, in bytes.
    pub(super) fn asked(&self) -> u64 {
        let ruling = self.layers.ruling(&self.known.observed, Variable::Cwnd);
        ruling.requested.map_or(u64::MAX, |asked| asked.high())
    }

    pub(super) fn take(&mut self, raw: &RawEvent) -> u64 {
        let (event, missed) = self.known.take(raw);
        self.layers.missed(missed);
        self.layers.wake(&self.known.observed, &event);
        self.asked()
    }
}

/// Numbers that look random, the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 16
    }

    fn below(&mut self, most: u32) -> u32 {
        u32::try_from(self.next() % u64::from(most.max(1))).unwrap()
    }

    fn once_in(&mut self, many: u32) -> bool {
        self.below(many) == 0
    }
}

/// The life of a connection, with queues that come and go, losses, timeouts and reductions that are taken back.
pub(super) fn life(seed: u64, events: usize) -> Vec<RawEvent> {
    let mut random = Numbers(seed);
    let mss = 500 + random.below(1000);
    let base = 1 + random.below(80_000);
    let begin = random.below(u32::MAX);
    let mut at = 1_000_000_000;
    let mut now = RawEvent {
        cookie: 1,
        at,
        tcp_state: 1,
        mss,
        segments: 10,
        ssthresh: 0x7fff_ffff,
        snd_una: begin,
        snd_nxt: begin.wrapping_add(10 * mss),
        min_rtt_us: u32::MAX,
        rtt_us: -1,
        flags: 0x0d,
        ..RawEvent::default()
    };
    let (mut all, mut round_end, mut congestion) = (vec![now], now.snd_nxt, 0u32);
    while all.len() < events {
        at += u64::from(1 + random.below(20_000)) * 1000;
        now.at = at;
        (now.what, now.ack_kind, now.acked, now.sacked, now.rtt_us) = (0, 0, 0, 0, -1);
        if random.once_in(40) {
            congestion = random.below(base * 2);
        }
        let outstanding = now.snd_nxt.wrapping_sub(now.snd_una);
        if random.once_in(150) {
            now.what = 0x10;
            (now.ca_state, now.retransmits) = (4, now.retransmits.saturating_add(1).min(5));
            (now.ssthresh, now.segments) = ((now.segments / 2).max(2), 1);
        } else if outstanding > 0 {
            let segments = 1 + random.below(3);
            now.acked = (segments * mss).min(outstanding);
            if random.once_in(12) {
                (now.acked, now.sacked, now.ack_kind, now.what) = (0, mss, 0x06, 0x03);
            } else {
                (now.ack_kind, now.what, now.retransmits) = (0x01, 0x01, 0);
            }
            now.snd_una = now.snd_una.wrapping_add(now.acked);
            now.delivered = now.delivered.wrapping_add(segments);
            now.acks += 1;
            let rtt = base + random.below(base / 16 + 1) + congestion;
            if !random.once_in(5) {
                now.rtt_us = i32::try_from(rtt).unwrap();
                now.min_rtt_us = now.min_rtt_us.min(rtt);
                now.srtt_us = rtt;
            }
            if now.snd_una.wrapping_sub(round_end).cast_signed() > 0 {
                now.what |= 0x04;
                round_end = now.snd_nxt;
            }
            if random.once_in(200) {
                now.what |= 0x08;
                now.ca_state = 3;
                now.ssthresh = (now.segments / 2).max(2);
                now.segments = now.ssthresh + random.below(3);
            } else if random.once_in(20) {
                now.ca_state = 0;
            }
            if random.once_in(300) {
                now.undone = now.undone.wrapping_add(1);
                (now.segments, now.ca_state) = (now.segments * 2, 0);
            }
            if random.once_in(400) {
                // Marked.
                (now.ssthresh, now.segments, now.ca_state) =
                    (now.segments / 2 + 1, now.segments / 2 + 1, 2);
            }
            if now.segments < now.ssthresh || random.once_in(10) {
                now.segments = (now.segments + 1).min(4000);
            }
        } else {
            // What was sent when nothing was outstanding.
            now.what = 0x02;
            (now.ack_kind, now.acks) = (0x02, now.acks + 1);
        }
        now.flags = 0x0c | u8::try_from(random.below(4)).unwrap();
        now.packets_out = now.snd_nxt.wrapping_sub(now.snd_una).div_ceil(mss);
        now.sacked_out = if random.once_in(6) { random.below(now.packets_out + 1) } else { 0 };
        now.lost_out = if random.once_in(9) { random.below(3) } else { 0 };
        now.snd_wnd = 1 << (14 + random.below(6));
        now.write_seq = now.snd_nxt.wrapping_add(random.below(2) * 10_000);
        all.push(now);
        // More leaves behind the event.
        let room =
            (now.segments.min(60) * mss).saturating_sub(now.snd_nxt.wrapping_sub(now.snd_una));
        now.snd_nxt = now.snd_nxt.wrapping_add(room.min(random.below(6) * mss));
    }
    all
}

/// Feeds both, and returns how many different windows they asked for.
fn compare(programs: &Programs, nice: &Nice, text: &str, trace: &[RawEvent]) -> usize {
    let choice = transom_extensions::stack(text).unwrap().remove(0);
    let mut in_kernel = Here { programs, trial: [0; TRIAL] };
    in_kernel.trial[PARAMETERS..EVENT].copy_from_slice(&nice_bytes(nice));
    let (first, rest) = trace.split_first().unwrap();
    let mut in_user_space = InUserSpace::new(first, &choice);
    assert_eq!(in_kernel.run(&first.bytes(), true), in_user_space.asked(), "at the beginning");
    let mut windows = std::collections::BTreeSet::new();
    for (index, event) in rest.iter().enumerate() {
        let expected = in_user_space.take(event);
        let decided = in_kernel.run(&event.bytes(), false);
        assert_eq!(decided, expected, "{text}: event {index} of {}: {event:?}", rest.len());
        windows.insert(decided);
    }
    windows.len()
}

/// Programs for a control group of its own.
pub(super) fn programs(test: &str, decides: InKernel) -> Option<(Cgroup, Programs)> {
    if !rustix::process::geteuid().is_root() || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        eprintln!("SKIPPED: programs in the kernel need root, and its types (BTF)");
        return None;
    }
    let cgroup = Cgroup::create(test).unwrap();
    let in_kernel = Some(decides);
    let programs = Programs::attach(&cgroup, &Settings { connections: 4, in_kernel }).unwrap();
    Some((cgroup, programs))
}

#[test]
fn the_kernel_program_decides_as_the_extension_does() {
    let Some((cgroup, programs)) = programs("transom-nice", InKernel::Nice(Nice::default())) else {
        return;
    };
    let mut different = 0;
    for seed in 0..40 {
        let trace = life(seed, 600);
        let (text, nice) = match seed % 3 {
            0 => ("nice(poll=ack)", Nice::default()),
            _ => {
                let text = "nice(fraction=0.25, threshold=0.2, alpha=1, beta=3, gamma=2, noise=5ms, poll=ack)";
                let mut arguments = transom_tcp::arguments::Arguments::read(text).unwrap();
                (text, Nice::read(&mut arguments).unwrap())
            }
        };
        different += compare(&programs, &nice, text, &trace);
    }
    println!("{different} windows");
    // They had something to decide: windows, halved and grown, and pauses.
    assert!(different > 400, "{different}");
    drop(programs);
    cgroup.remove(std::time::Duration::from_secs(5)).unwrap();
}

/// What a connection over a slow link reports: the states and the order of events are the kernel's.
#[test]
fn on_events_of_a_transfer_too() {
    let Some(trace) = super::reported() else { return };
    let Some((cgroup, programs)) =
        programs("transom-nice-transfer", InKernel::Nice(Nice::default()))
    else {
        return;
    };
    let losses = trace.iter().filter(|event| event.what & 0x18 != 0).count();
    println!("{} events, {losses} losses", trace.len());
    assert!(trace.len() > 300 && losses > 0);
    let different = compare(&programs, &Nice::default(), "nice(poll=ack)", &trace);
    assert!(different > 5, "{different}");
    drop(programs);
    cgroup.remove(std::time::Duration::from_secs(5)).unwrap();
}
