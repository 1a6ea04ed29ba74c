//! Filters that hold BPF programs, below the queueing discipline `clsact` of an interface (tc-bpf(8)). They outlive the process that made them, so
//! they must be removed.

use std::io;

use netlink_packet_core::ParseableParametrized;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAttribute, TcFilterBpf, TcFilterBpfOption, TcHandle, TcHeader, TcMessage, TcOption,
};

use super::Interfaces;
use super::queue::BODY_LEN;
use crate::netlink::attributes;

impl Interfaces {
    /// Removes the filters of an interface, on both sides, whose program's name is chosen. Returns how many there were.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn remove_filters(
        &mut self,
        index: u32,
        chosen: impl Fn(&str) -> bool,
    ) -> io::Result<usize> {
        let mut found = Vec::new();
        for minor in [TcHandle::MIN_INGRESS, TcHandle::MIN_EGRESS] {
            let mut request = TcMessage::with_index(index.cast_signed());
            request.header.parent = TcHandle { major: u16::MAX, minor };
            self.netlink.dump(RouteNetlinkMessage::GetTrafficFilter(request), |answer| {
                found.extend(parse(answer).filter(|(_, name)| chosen(name)));
            })?;
        }
        let count = found.len();
        for (header, _) in found {
            let mut request = TcMessage::default();
            request.header = header;
            request.attributes.push(TcAttribute::Kind(TcFilterBpf::KIND.into()));
            self.netlink.execute(0, RouteNetlinkMessage::DelTrafficFilter(request))?;
        }
        Ok(count)
    }
}

/// The place of a filter that holds a program, and the program's name.
fn parse(answer: &[u8]) -> Option<(TcHeader, String)> {
    let header = TcHeader::parse(answer).ok()?;
    let mut is_bpf = false;
    let mut name = None;
    for attribute in attributes(answer, BODY_LEN) {
        // The kind comes first; the options of another kind mean something else.
        let kind = if is_bpf { TcFilterBpf::KIND } else { "" };
        match TcAttribute::parse_with_param(&attribute, kind) {
            Ok(TcAttribute::Kind(kind)) => is_bpf = kind == TcFilterBpf::KIND,
            Ok(TcAttribute::Options(options)) if is_bpf => {
                name = options.into_iter().find_map(|option| match option {
                    TcOption::Bpf(TcFilterBpfOption::ProgName(name)) => Some(name),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    Some((header, name?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    fn answer(kind: &[u8], program: &[u8]) -> Vec<u8> {
        let words = [0, 7u32, 1, 0xffff_fff3, 0xc000 << 16 | 3];
        let header: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        [header, attribute(1, kind), attribute(2, &attribute(7, program))].concat()
    }

    #[test]
    fn a_filter_is_read() {
        let answer = answer(b"bpf\0", b"transom_egress:[9]\0");
        let (header, name) = parse(&answer).unwrap();
        assert_eq!((header.index, u32::from(header.handle)), (7, 1));
        assert_eq!((u32::from(header.parent), header.info), (0xffff_fff3, 0xc000 << 16 | 3));
        assert_eq!(name, "transom_egress:[9]");
        for length in 0..answer.len() {
            assert_eq!(parse(&answer[..length]), None, "{length} bytes of an answer");
        }
    }

    #[test]
    fn filters_of_another_kind_have_no_program() {
        assert_eq!(parse(&answer(b"flower\0", b"transom_egress\0")), None);
    }

    #[test]
    fn an_interface_without_filters_has_none_to_remove() {
        assert_eq!(Interfaces::open().unwrap().remove_filters(1, |_| false).unwrap(), 0);
    }
}
