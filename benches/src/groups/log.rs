//! What the event log costs.
//!
//! The transfer of the group `memory`, between hosts whose logs are off and hosts whose logs are on as they always are, in turns. With super-segments
//! the sender records one transmission for 44 segments, and without them one for each. The receiver takes single segments in either case and records
//! each. This is the worst case: there is no device, and nothing but the protocol for the log to be compared with.
//!
//! In a third case somebody reads both logs a hundred times a second, as a writer to a file does, without writing it.

use super::Settings;
use crate::harness::{Bound, Case, Group, Unit};
use crate::pair::{Pair, fixed_buffers};
use crate::transfer::{Bytes, Transfer};
use transom_tcp::time::{Duration, Instant};

/// Bytes of each socket buffer.
const BUFFER: usize = 65_536;
/// Less than three hundredths of the bulk throughput.
const AIM: Bound = Bound::AtLeast(0.97);

const OFF: &str = "log off";
const OFF_SINGLY: &str = "log off, segment by segment";

/// Builds the group.
///
/// # Errors
/// When one of the connections cannot be made.
pub fn build(settings: Settings) -> anyhow::Result<Group> {
    let chunk = settings.chunk;
    let transfer = |segmentation, records| {
        Transfer::logging(fixed_buffers(BUFFER), segmentation, records, chunk)
    };
    let whole = Some(65_535);
    let mut off = transfer(whole, Some(0))?;
    let mut on = transfer(whole, None)?;
    let mut read = transfer(whole, None)?;
    let mut off_singly = transfer(None, Some(0))?;
    let mut on_singly = transfer(None, None)?;
    let mut reader = Reader::default();
    let cases = vec![
        Case::new(OFF, move |span| off.sample(span, Bytes::Copied)),
        Case::new("log on", move |span| on.sample(span, Bytes::Copied)).figure(OFF, AIM),
        Case::new("log on, and read", move |span| {
            read.sample_while(span, Bytes::Copied, |pair, now| reader.tick(pair, now))
        })
        .against(OFF),
        Case::new(OFF_SINGLY, move |span| off_singly.sample(span, Bytes::Copied)),
        Case::new("log on, segment by segment", move |span| on_singly.sample(span, Bytes::Copied))
            .figure(OFF_SINGLY, AIM),
    ];
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Reads both logs each hundredth of a second.
#[derive(Default)]
struct Reader {
    due: Instant,
    next: [u64; 2],
    copy: Vec<[u8; 64]>,
}

impl Reader {
    fn tick(&mut self, pair: &mut Pair, now: Instant) {
        if now < self.due {
            return;
        }
        self.due = now + Duration::from_millis(10);
        for (host, next) in [&mut pair.client, &mut pair.server].into_iter().zip(&mut self.next) {
            let reading = host.log(*next);
            self.copy.clear();
            self.copy.extend(reading.records());
            *next = reading.next;
        }
    }
}
