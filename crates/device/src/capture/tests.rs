use super::*;

fn le16(value: u16) -> [u8; 2] {
    value.to_le_bytes()
}

fn le32(value: u32) -> [u8; 4] {
    value.to_le_bytes()
}

/// The file that a packet of five bytes and a comment should make, block by block from the format's
/// description.
fn expected_file() -> Vec<u8> {
    let mut file = Vec::new();
    // Section header: type, length, magic, version 1.0, unknown section length, application, end of
    // options.
    let application = concat!("Transom ", env!("CARGO_PKG_VERSION")).as_bytes();
    let padded = application.len().div_ceil(4) * 4;
    let length = (28 + 4 + padded + 4) as u32;
    file.extend([le32(0x0A0D0D0A), le32(length), le32(0x1A2B3C4D)].concat());
    file.extend([le16(1), le16(0)].concat());
    file.extend([0xff; 8]);
    file.extend([le16(4), le16(application.len() as u16)].concat());
    file.extend(application);
    file.extend(vec![0; padded - application.len()]);
    file.extend([le32(0), le32(length)].concat());
    // Interface description: LINKTYPE_RAW, no limit; name "tun0"; resolution 10^-9.
    file.extend([le32(1), le32(40)].concat());
    file.extend([le16(101), le16(0)].concat());
    file.extend(le32(0));
    file.extend([le16(2), le16(4)].concat());
    file.extend(b"tun0");
    file.extend([le16(9), le16(1)].concat());
    file.extend([9, 0, 0, 0]);
    file.extend([le32(0), le32(40)].concat());
    // Enhanced packet: interface 0; 5 s = 1 * 2^32 + 705032704 ns; 5 bytes, all of them; comment
    // "hm"; outbound.
    file.extend([le32(6), le32(60)].concat());
    file.extend([le32(0), le32(1), le32(705_032_704), le32(5), le32(5)].concat());
    file.extend([1, 2, 3, 4, 5, 0, 0, 0]);
    file.extend([le16(1), le16(2)].concat());
    file.extend(b"hm\0\0");
    file.extend([le16(2), le16(4)].concat());
    file.extend(le32(2));
    file.extend([le32(0), le32(60)].concat());
    file
}

#[test]
fn a_file_is_written_byte_for_byte_as_described() {
    let mut capture = Capture::new(Vec::new()).unwrap();
    let tun0 = capture.add_interface("tun0").unwrap();
    let at = Instant::from_secs(5);
    let parts: [&[u8]; 3] = [&[1, 2], &[], &[3, 4, 5]];
    capture.write(tun0, at, Direction::Outbound, &parts, Some("hm")).unwrap();
    assert_eq!(capture.finish().unwrap(), expected_file());
}

#[test]
fn packets_are_cut_at_the_snap_length_and_keep_their_own() {
    let mut capture = Capture::with_snap_len(Vec::new(), 6).unwrap();
    let id = capture.add_interface("x").unwrap();
    let start = capture.writer.len();
    let parts: [&[u8]; 2] = [&[1; 4], &[2; 4]];
    capture.write(id, Instant::ZERO, Direction::Inbound, &parts, None).unwrap();
    let block = &capture.writer[start..];
    assert_eq!(block[20..28], [le32(6), le32(8)].concat());
    assert_eq!(block[28..36], [1, 1, 1, 1, 2, 2, 0, 0]);
    assert_eq!(block[36..44], [le16(2), le16(4), le16(1), le16(0)].concat(), "inbound");
    // The limit is in the interface description as well.
    let description =
        start - u32::from_le_bytes(*capture.writer[..start].last_chunk().unwrap()) as usize;
    assert_eq!(capture.writer[description + 12..description + 16], le32(6));
}

#[test]
fn an_overlong_comment_is_cut_and_not_believed() {
    let mut capture = Capture::new(Vec::new()).unwrap();
    let id = capture.add_interface("x").unwrap();
    let start = capture.writer.len();
    let comment = "x".repeat(70_000);
    capture.write(id, Instant::ZERO, Direction::Inbound, &[], Some(&comment)).unwrap();
    let block = &capture.writer[start..];
    assert_eq!(block[28..32], [le16(1), le16(65_535)].concat());
    assert_eq!(block.len(), 28 + 4 + 65_536 + 8 + 4 + 4);
    assert_eq!(block[4..8], le32(block.len() as u32));
}
