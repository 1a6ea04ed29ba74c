//! What the network reports of a connection's packets, as a program sees it (RFC 9293 section 3.9.2.2).

use crate::passing::{Fate, connected, hasty, hosts};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::thread::spawn;
use std::time::Duration;
use transom_net::{IcmpError, Setting};

/// [SHLD-25] The attempt goes on, as the report may be forged, and ends with what was reported.
#[test]
fn an_attempt_to_connect_ends_with_what_the_network_said() {
    let (a, _b, network) = hosts(&hasty());
    network.set(Fate::Unreachable);
    let error = a.connect("10.0.0.2:80").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::HostUnreachable);
    assert_eq!(Errno::from_io_error(&error), Some(Errno::HOSTUNREACH));
}

/// [MUST-47] The same for a connection; in between it is told on request, once for each report.
#[test]
fn a_connection_ends_with_what_the_network_said() {
    let (a, b, network) = hosts(&hasty());
    let (mut ours, _theirs) = connected(&a, &b);
    assert_eq!(ours.take_soft_error().unwrap(), None);
    network.set(Fate::Unreachable);
    ours.write_all(b"lost").unwrap();
    let mut told = None;
    while told.is_none() {
        std::thread::sleep(Duration::from_millis(1));
        told = ours.take_soft_error().unwrap();
    }
    assert_eq!(told, Some(IcmpError::HostUnreachable));
    let error = ours.read(&mut [0]).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::HOSTUNREACH));
    // It is told once, and then the stream is over.
    assert_eq!(ours.read(&mut [0]).unwrap(), 0);
    assert_eq!(ours.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

/// A call that waits is told, if that is wanted, and the connection goes on.
#[test]
fn a_call_that_waits_is_told() {
    let (a, b, network) = hosts(&hasty());
    let (mut ours, mut theirs) = connected(&a, &b);
    ours.set_option(Setting::SoftErrors(true)).unwrap();
    let mut reader = ours.try_clone().unwrap();
    let read = spawn(move || {
        let error = reader.read(&mut [0; 4]).unwrap_err();
        (error, reader)
    });
    network.set(Fate::Unreachable);
    ours.write_all(b"late").unwrap();
    let (error, mut reader) = read.join().unwrap();
    network.set(Fate::Passed);
    assert_eq!(error.kind(), io::ErrorKind::HostUnreachable);
    let inside = error.get_ref().and_then(|inside| inside.downcast_ref::<IcmpError>());
    assert_eq!(inside, Some(&IcmpError::HostUnreachable));
    ours.set_option(Setting::SoftErrors(false)).unwrap();
    let mut bytes = [0; 4];
    theirs.read_exact(&mut bytes).unwrap();
    theirs.write_all(&bytes).unwrap();
    reader.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"late");
}
