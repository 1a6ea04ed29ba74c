//! A log as a capture: packets made up from its records, with the records as comments.
//!
//! What was sent becomes a packet of the host, an acknowledgement and arrived data one of the peer. The comment of a packet is the record's line of
//! JSON, followed by those of records that are no packet, up to the next. Records before the first packet stand in front of its own. So the comments
//! in their order are the log.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use transom_device::{Capture, Direction, InterfaceId};
use transom_stack::log::{FlowEvent, Line, Record, Values, What};
use transom_tcp::time::Instant;
use transom_wire::{Flags, IpHeader, Protocol, Seq, TcpHeader};

use super::json::{Object, record};
use super::{ConvertError, Log};
use crate::file::Blocks;

/// Bytes of each packet that are kept: the headers.
const KEPT: u32 = 60;
/// The most data of a packet, so that its length fits its header.
const MOST_DATA: u32 = 65_000;
/// The name of the interface, which says where the packets come from and when the host's clock began.
const NAME: &str = "transom log, origin ";
/// The longest comment: an option's length has 16 bits.
const MOST_COMMENT: usize = 60_000;

/// A connection's ends, and the next position expected of the peer.
struct Known {
    ends: [SocketAddr; 2],
    rcv_nxt: u64,
    snd_nxt: u64,
}

struct Writer {
    capture: Capture<Vec<u8>>,
    interface: InterfaceId,
    /// The packet that waits for the comments that belong to it.
    waiting: Option<(Instant, Direction, Vec<u8>, u32)>,
    comment: String,
}

impl Writer {
    fn flush(&mut self) -> Result<(), ConvertError> {
        let comment = std::mem::take(&mut self.comment);
        let Some((at, direction, headers, data)) = self.waiting.take() else {
            self.comment = comment;
            return Ok(());
        };
        let zeros = vec![0; data as usize];
        let parts: [&[u8]; 2] = [&headers, &zeros];
        self.capture.write(self.interface, at, direction, &parts, Some(&comment))?;
        Ok(())
    }

    /// An empty packet, for comments that have none, or that are too long for one option.
    fn wait_for_nothing(&mut self, at: Instant) {
        self.waiting = Some((at, Direction::Outbound, Vec::new(), 0));
    }
}

pub(super) fn write(log: &Log) -> Result<Vec<u8>, ConvertError> {
    let mut capture = Capture::with_snap_len(Vec::new(), KEPT)?;
    let interface = capture.add_interface(&format!("{NAME}{}", log.origin))?;
    let mut out = Writer { capture, interface, waiting: None, comment: String::new() };
    let mut known: BTreeMap<u64, Known> = BTreeMap::new();
    for (sequence, one) in &log.records {
        let line = Line { record: one, sequence: *sequence }.to_string();
        let at = Instant::from_nanos(log.origin.saturating_add(one.at.as_nanos()));
        let packet = packet(one, &mut known);
        if let Some((direction, headers, data)) = packet {
            if out.waiting.is_some() {
                out.flush()?;
            }
            out.waiting = Some((at, direction, headers, data));
        } else if out.comment.len() + line.len() > MOST_COMMENT {
            if out.waiting.is_none() {
                out.wait_for_nothing(at);
            }
            out.flush()?;
        }
        if !out.comment.is_empty() {
            out.comment.push('\n');
        }
        out.comment += &line;
        // Without a packet before it, the next one takes it, unless there are too many.
        if out.waiting.is_none() && out.comment.len() > MOST_COMMENT / 2 {
            out.wait_for_nothing(at);
            out.flush()?;
        }
    }
    if out.waiting.is_none() && !out.comment.is_empty() {
        out.wait_for_nothing(Instant::from_nanos(log.origin));
    }
    out.flush()?;
    Ok(out.capture.finish()?)
}

/// The headers and the length of the data of a record that stands for a packet.
fn packet(record: &Record, known: &mut BTreeMap<u64, Known>) -> Option<(Direction, Vec<u8>, u32)> {
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let here = known.entry(record.connection).or_insert(Known {
        ends: [nowhere; 2],
        rcv_nxt: 0,
        snd_nxt: 0,
    });
    let (event, values) = match &record.what {
        What::Opened { local, remote } => {
            here.ends = [*local, *remote];
            return None;
        }
        What::Flow(event, values) => (*event, values),
        _ => return None,
    };
    let Values { position, bytes, window, extra, .. } = *values;
    let window = u16::try_from(window).unwrap_or(u16::MAX);
    let data = bytes.min(MOST_DATA);
    match event {
        FlowEvent::Sent | FlowEvent::Retransmitted => {
            let flags = Flags::from_bits_truncate(extra as u16);
            // A SYN and a FIN take sequence space and are no data.
            let taken =
                u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
            let data = data.saturating_sub(taken);
            here.snd_nxt = here.snd_nxt.max(position.saturating_add(bytes.into()));
            let header = TcpHeader {
                seq: Seq::new(position as u32),
                ack: Seq::new(here.rcv_nxt as u32),
                flags,
                // The log has the peer's window here, not ours.
                window: u16::MAX,
                ..TcpHeader::default()
            };
            Some((Direction::Outbound, headers(here.ends, header, data)?, data))
        }
        FlowEvent::Acknowledged | FlowEvent::Arrived => {
            let [local, remote] = here.ends;
            let (seq, ack, data) = if event == FlowEvent::Arrived {
                here.rcv_nxt = position;
                (position.wrapping_sub(data.into()), here.snd_nxt, data)
            } else {
                (here.rcv_nxt, position, 0)
            };
            let header = TcpHeader {
                seq: Seq::new(seq as u32),
                ack: Seq::new(ack as u32),
                flags: Flags::ACK,
                window: if event == FlowEvent::Arrived { u16::MAX } else { window },
                ..TcpHeader::default()
            };
            Some((Direction::Inbound, headers([remote, local], header, data)?, data))
        }
        _ => None,
    }
}

/// An IP and a TCP header.
fn headers([from, to]: [SocketAddr; 2], mut tcp: TcpHeader, data: u32) -> Option<Vec<u8>> {
    (tcp.src_port, tcp.dst_port) = (from.port(), to.port());
    let mut bytes = vec![0; 60];
    let length = tcp.header_len() + data as usize;
    let ip = IpHeader::new(from.ip(), to.ip(), Protocol::TCP).emit(length, &mut bytes).ok()?;
    let tcp = tcp.emit(bytes.get_mut(ip..)?).ok()?;
    bytes.truncate(ip + tcp);
    Some(bytes)
}

pub(super) fn read(bytes: &[u8]) -> Result<Log, ConvertError> {
    let mut blocks = Blocks::new(bytes)?;
    let mut log = Log::default();
    let (mut number, mut is_ours) = (0, false);
    while let Some(item) = blocks.next_item()? {
        if let Some(name) = item.interface_name()
            && let Some(origin) = name.strip_prefix(NAME)
        {
            (log.origin, is_ours) = (origin.parse().unwrap_or(0), true);
        }
        for comment in item.comments() {
            for line in comment.lines().filter(|line| line.starts_with("{\"seq\":")) {
                number += 1;
                let bad = |what: String| ConvertError::Record { number, what };
                let object: Object =
                    serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
                log.take(record(&object).map_err(bad)?);
            }
        }
    }
    if log.records.is_empty() && !is_ours {
        // A capture of others has no log in it.
        let what = "the capture has no records of an event log in its comments";
        return Err(ConvertError::Form(what.into()));
    }
    Ok(log)
}
