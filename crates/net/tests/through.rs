//! Streams that are written and read through a manipulation.

use std::io::{ErrorKind, Read, Write};
use std::thread::spawn;
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_net::manipulation::{SwapWords, Xor};
use transom_net::{Stack, TcpStream};

fn connection(config: &MemoryConfig) -> (TcpStream, TcpStream) {
    let (a, b) = pair(config).unwrap();
    let start = |number: u8, device| {
        Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
    };
    let (a, b) = (start(1, a), start(2, b));
    let listener = b.listen("10.0.0.2:0").unwrap();
    let client = a.connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(31) >> 3) as u8).collect()
}

#[test]
fn changed_data_is_changed_back() {
    for config in [MemoryConfig::default(), MemoryConfig::with_offload()] {
        let (client, server) = connection(&config);
        let reader = spawn(move || {
            let mut back = (Xor::new([0xa5; 32]), SwapWords);
            let (mut all, mut out) = (Vec::new(), [0; 10_001]);
            loop {
                match server.read_through(&mut back, &mut out).unwrap() {
                    0 => return all,
                    n => all.extend_from_slice(&out[..n]),
                }
            }
        });
        let data = data(3_000_002);
        let mut there = (SwapWords, Xor::new([0xa5; 32]));
        // Whole words in all calls but the last.
        for piece in data.chunks(70_000) {
            client.write_all_through(&mut there, piece).unwrap();
        }
        drop(client);
        assert!(reader.join().unwrap() == data, "the data is not what was written");
    }
}

#[test]
fn a_plain_reader_gets_the_changed_bytes() {
    let (client, mut server) = connection(&MemoryConfig::default());
    client.write_all_through(&mut SwapWords, b"abcdefgh!").unwrap();
    (&client).write_all(b" plain").unwrap();
    drop(client);
    let mut all = String::new();
    server.read_to_string(&mut all).unwrap();
    assert_eq!(all, "dcbahgfe! plain");
}

#[test]
fn memory_for_less_than_a_unit_is_refused_and_silence_times_out() {
    let (client, server) = connection(&MemoryConfig::default());
    let error = server.read_through(&mut SwapWords, &mut [0; 3]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(server.read_through(&mut SwapWords, &mut []).unwrap(), 0);
    server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    client.write_all_through(&mut SwapWords, b"ab").unwrap();
    let error = server.read_through(&mut SwapWords, &mut [0; 30]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}
