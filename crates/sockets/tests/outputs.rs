//! `TCP_INFO` of one connection, byte by byte, against what it was when it was stored.

use transom_sockets::TcpInfo;
use transom_testkit::{assert_stored, hex, tell_story};

#[test]
fn the_structure_is_as_it_was() {
    let looks = tell_story().looks;
    let lines: Vec<String> =
        looks.iter().map(|(_, state)| hex(&Vec::from(TcpInfo::from(state)))).collect();
    let path = format!("{}/tests/stored/tcp_info.hex", env!("CARGO_MANIFEST_DIR"));
    assert_stored(path, &(lines.join("\n") + "\n"));
}
