//! A reader for the pcapng files that the tests have had written, from the format's description.

/// One packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    pub interface: String,
    pub nanos: u64,
    /// The flags option: 1 is inbound, 2 is outbound.
    pub direction: u32,
    pub original_len: usize,
    pub comment: Option<String>,
    pub bytes: Vec<u8>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The value of the option `code`; panics unless the options are properly ended.
fn option(mut options: &[u8], code: u16) -> Option<&[u8]> {
    let mut found = None;
    loop {
        let (kind, length) = (u16_at(options, 0), usize::from(u16_at(options, 2)));
        if kind == 0 {
            assert_eq!((length, options.len()), (0, 4), "the options end with the block");
            return found;
        }
        if kind == code {
            found = Some(&options[4..4 + length]);
        }
        options = &options[4 + length.next_multiple_of(4)..];
    }
}

/// All packets of a file; panics if the file is not well-formed.
pub fn read(mut file: &[u8]) -> Vec<Captured> {
    assert_eq!(u32_at(file, 8), 0x1A2B_3C4D, "little-endian");
    let mut interfaces = Vec::new();
    let mut packets = Vec::new();
    while !file.is_empty() {
        let length = u32_at(file, 4) as usize;
        assert_eq!(u32_at(file, length - 4) as usize, length, "the length is there twice");
        let body = &file[8..length - 4];
        match u32_at(file, 0) {
            0x0A0D_0D0A => {}
            1 => {
                assert_eq!(u16_at(body, 0), 101, "raw IP");
                assert_eq!(option(&body[8..], 9), Some(&[9][..]), "nanoseconds");
                interfaces.push(String::from_utf8(option(&body[8..], 2).unwrap().into()).unwrap());
            }
            6 => {
                let kept = u32_at(body, 12) as usize;
                let options = &body[20 + kept.next_multiple_of(4)..];
                packets.push(Captured {
                    interface: interfaces[u32_at(body, 0) as usize].clone(),
                    nanos: u64::from(u32_at(body, 4)) << 32 | u64::from(u32_at(body, 8)),
                    direction: u32_at(option(options, 2).unwrap(), 0),
                    original_len: u32_at(body, 16) as usize,
                    comment: option(options, 1).map(|text| String::from_utf8(text.into()).unwrap()),
                    bytes: body[20..20 + kept].to_vec(),
                });
            }
            other => panic!("a block of type {other:#x}"),
        }
        file = &file[length..];
    }
    packets
}
