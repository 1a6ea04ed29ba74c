use super::*;

#[test]
fn the_object_was_compiled_from_the_source() {
    transom_testkit::assert_unchanged(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"));
}

#[test]
fn an_open_checksum_is_told_from_a_whole_one() {
    use transom_wire::{Ipv4Header, TcpHeader, checksum};
    let (src, dst) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let mut packet = vec![7; 140];
    Ipv4Header::new(src, dst, Protocol::TCP).emit(120, &mut packet).unwrap();
    TcpHeader { src_port: 1, dst_port: 2, ..TcpHeader::default() }.emit(&mut packet[20..]).unwrap();
    let pseudo = checksum::pseudo_header(src.into(), dst.into(), Protocol::TCP, 120).0;
    packet[36..38].copy_from_slice(&pseudo.to_be_bytes());
    assert!(is_open(&packet));
    checksum::fill(src.into(), dst.into(), Protocol::TCP, &mut packet[20..], tcp::CHECKSUM_OFFSET)
        .unwrap();
    assert!(!is_open(&packet));
    assert!(!is_open(&packet[..30]) && !is_open(&[]));
}
