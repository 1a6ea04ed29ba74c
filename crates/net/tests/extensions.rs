//! Extensions that fail, on real sockets over memory: they go, the connection and its host stay.

use std::io::{Read, Write};
use std::sync::Arc;
use std::thread::spawn;
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{Profile, Stack, TcpListener, TcpStream};
use transom_stack::listener::ListenConfig;
use transom_tcp::extension::{
    DepartureReason, Event, Extension, ExtensionChoice, Fault, Limits, View, Wake, variable,
};

/// Asks for a small window when it is attached, and fails at the first acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    Panics,
    Sleeps,
}

impl Extension for Bad {
    fn name(&self) -> &str {
        "bad"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK
    }

    fn on_attach(&mut self, _view: &View<'_>, limits: &mut Limits) {
        limits.at_most(variable::CWND, 3000);
    }

    fn on_wake(&mut self, _event: &Event, _view: &View<'_>, _limits: &mut Limits) {
        match self {
            Bad::Panics => panic!("as expected"),
            Bad::Sleeps => std::thread::sleep(Duration::from_millis(11)),
        }
    }
}

fn profile(bad: Bad) -> Profile {
    let choice = ExtensionChoice::new("bad", move || Box::new(bad));
    Profile { extensions: vec![choice], ..Profile::default() }
}

/// Two hosts, of which the first may have a profile of its own.
fn hosts(profile: Profile) -> (Stack, Stack) {
    let (a, b) = pair(&MemoryConfig::default()).unwrap();
    let host = |number: u8, device, profile| {
        let builder = Stack::builder().address([10, 0, 0, number].into(), 24);
        builder.profile(profile).start(device).unwrap()
    };
    (host(1, a, profile), host(2, b, Profile::default()))
}

/// A hundred thousand bytes go over all the same; the layer has gone, for this reason.
fn goes_on(sender: &mut TcpStream, receiver: &TcpStream, is: fn(&Fault) -> bool) {
    receiver.set_linger(Some(Duration::ZERO)).unwrap();
    let mut reader = receiver.try_clone().unwrap();
    let read = spawn(move || {
        let mut bytes = vec![0; 100_000];
        reader.read_exact(&mut bytes).map(|()| bytes)
    });
    sender.write_all(&[7; 100_000]).unwrap();
    assert_eq!(read.join().unwrap().unwrap(), [7; 100_000]);
    let (departure, layers) = sender
        .with_connection(|connection, _| (connection.poll_departure(), connection.layers().count()))
        .unwrap();
    let departure = departure.expect("it is told of");
    assert_eq!(departure.name, "bad");
    assert!(matches!(&departure.reason, DepartureReason::Fault(fault) if is(fault)), "{departure}");
    assert_eq!(layers, 0);
}

fn panicked(fault: &Fault) -> bool {
    *fault == Fault::Panicked
}

#[test]
fn of_the_hosts_profile() {
    let (a, b) = hosts(profile(Bad::Panics));
    let listener = b.listen("10.0.0.2:0").unwrap();
    let mut ours = a.connect(listener.local_addr().unwrap()).unwrap();
    goes_on(&mut ours, &listener.accept().unwrap().0, panicked);
}

#[test]
fn of_a_connections_profile() {
    let (a, b) = hosts(Profile::default());
    let listener = b.listen("10.0.0.2:0").unwrap();
    let remote = listener.local_addr().unwrap();
    let bad = Some(profile(Bad::Panics));
    let mut ours = TcpStream::connect_with(&a, None, remote, bad, None).unwrap();
    goes_on(&mut ours, &listener.accept().unwrap().0, panicked);
}

#[test]
fn of_a_listeners_profile() {
    let (a, b) = hosts(Profile::default());
    let config =
        ListenConfig { profile: Some(Arc::new(profile(Bad::Panics))), ..ListenConfig::default() };
    let listener = TcpListener::bind_with(&b, "10.0.0.2:80".parse().unwrap(), config).unwrap();
    let ours = a.connect("10.0.0.2:80").unwrap();
    goes_on(&mut listener.accept().unwrap().0, &ours, panicked);
}

#[test]
fn attached_to_a_stream() {
    let (a, b) = hosts(Profile::default());
    let listener = b.listen("10.0.0.2:0").unwrap();
    let mut ours = a.connect(listener.local_addr().unwrap()).unwrap();
    let theirs = listener.accept().unwrap().0;
    let layer = ours.attach(Box::new(Bad::Sleeps)).unwrap();
    assert!(ours.detach(layer).unwrap());
    assert!(!ours.detach(layer).unwrap(), "it is gone");
    ours.attach(Box::new(Bad::Sleeps)).unwrap();
    goes_on(&mut ours, &theirs, |fault| matches!(fault, Fault::Overran { .. }));
}
