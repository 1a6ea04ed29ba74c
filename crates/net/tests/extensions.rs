//! Extensions that fail, on real sockets over memory: they go, the connection and its host stay.

use std::io::{Read, Write};
use std::sync::Arc;
use std::thread::spawn;
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{ConnectOptions, Profile, Stack, TcpListener, TcpStream};
use transom_stack::ListenConfig;
use transom_tcp::Connection;
use transom_tcp::extension::{
    AttachError, Capabilities, DepartureReason, Extension, ExtensionChoice, Fault, Limits,
    MAX_LAYERS, Occasion, Value, View, Wake,
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
        limits.at_most(Value::Cwnd(3000));
    }

    fn on_wake(&mut self, _occasion: &Occasion, _view: &View<'_>, _limits: &mut Limits) {
        match self {
            Bad::Panics => panic!("as expected"),
            Bad::Sleeps => std::thread::sleep(Duration::from_millis(11)),
        }
    }
}

fn profile(bad: Bad) -> Profile {
    let choice = ExtensionChoice::new("bad", move || Box::new(bad));
    Profile::classic().with_extensions(vec![choice])
}

/// Two hosts, of which the first may have a profile of its own.
fn hosts(profile: Profile) -> (Stack, Stack) {
    let (a, b) = pair(&MemoryConfig::default()).unwrap();
    let host = |number: u8, device, profile| {
        let builder = Stack::builder().address([10, 0, 0, number].into(), 24);
        builder.profile(profile).start(device).unwrap()
    };
    (host(1, a, profile), host(2, b, Profile::classic()))
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
    let (a, b) = hosts(Profile::classic());
    let listener = b.listen("10.0.0.2:0").unwrap();
    let remote = listener.local_addr().unwrap();
    let bad = ConnectOptions::default().with_profile(Some(profile(Bad::Panics)));
    let mut ours = TcpStream::connect_with(&a, remote, &bad).unwrap();
    goes_on(&mut ours, &listener.accept().unwrap().0, panicked);
}

#[test]
fn of_a_listeners_profile() {
    let (a, b) = hosts(Profile::classic());
    let config = ListenConfig::default().with_profile(Some(Arc::new(profile(Bad::Panics))));
    let listener = TcpListener::bind_with(&b, "10.0.0.2:80".parse().unwrap(), config).unwrap();
    let ours = a.connect("10.0.0.2:80").unwrap();
    goes_on(&mut listener.accept().unwrap().0, &ours, panicked);
}

#[test]
fn attached_to_a_stream() {
    let (a, b) = hosts(Profile::classic());
    let listener = b.listen("10.0.0.2:0").unwrap();
    let mut ours = a.connect(listener.local_addr().unwrap()).unwrap();
    let theirs = listener.accept().unwrap().0;
    let layer = ours.attach(Box::new(Bad::Sleeps)).unwrap();
    assert!(ours.detach(layer).unwrap());
    assert!(!ours.detach(layer).unwrap(), "it is gone");
    ours.attach(Box::new(Bad::Sleeps)).unwrap();
    goes_on(&mut ours, &theirs, |fault| matches!(fault, Fault::Overran { .. }));
}

/// A layer that is bad in what no call of it shows.
#[derive(Debug)]
struct Odd(&'static str);

impl Extension for Odd {
    fn name(&self) -> &str {
        assert_ne!(self.0, "name");
        "odd"
    }

    fn requires(&self) -> Capabilities {
        assert_ne!(self.0, "requires");
        Capabilities::empty()
    }

    fn wake_on(&self) -> Wake {
        assert_ne!(self.0, "wake_on");
        Wake::ACK
    }

    fn on_wake(&mut self, _occasion: &Occasion, _view: &View<'_>, _limits: &mut Limits) {}
}

impl Drop for Odd {
    fn drop(&mut self) {
        assert_ne!(self.0, "drop");
    }
}

/// When any function of an extension panics, its host and the other layers stay.
#[test]
fn that_panics_outside_of_its_calls() {
    let (a, b) = hosts(Profile::classic());
    let listener = b.listen("10.0.0.2:0").unwrap();
    let ours = a.connect(listener.local_addr().unwrap()).unwrap();
    let first = ours.attach(Box::new(Odd("not"))).unwrap();
    for what in ["name", "requires", "wake_on"] {
        let error = ours.attach(Box::new(Odd(what))).unwrap_err().to_string();
        assert_eq!(error, "it failed when it was attached: it panicked", "{what}");
    }
    let dropped = ours.attach(Box::new(Odd("drop"))).unwrap();
    assert!(ours.detach(dropped).unwrap());
    let choice = ExtensionChoice::new("unmade", || panic!("as expected"));
    let profile = Profile::classic().with_extensions(vec![choice]);
    let remote = listener.local_addr().unwrap();
    let other =
        TcpStream::connect_with(&a, remote, &ConnectOptions::default().with_profile(Some(profile)))
            .unwrap();
    let departure = other.with_connection(|connection, _| connection.poll_departure()).unwrap();
    let reason = DepartureReason::NotAttached(AttachError::Failed(Fault::Panicked));
    assert_eq!(departure.unwrap().reason, reason);
    assert!(ours.detach(first).unwrap());
}

/// Sleeps a little less than it may, in each call.
#[derive(Debug)]
struct Dawdler;

impl Extension for Dawdler {
    fn name(&self) -> &str {
        "dawdler"
    }

    fn wake_on(&self) -> Wake {
        Wake::all()
    }

    fn on_wake(&mut self, _occasion: &Occasion, _view: &View<'_>, _limits: &mut Limits) {
        std::thread::sleep(Duration::from_millis(8));
    }
}

/// Sixteen layers that each keep to the bound on a call use up what all may take together. Then they go, and a quick one, which missed wake-ups
/// meanwhile, stays.
#[test]
fn that_take_too_much_together() {
    let (a, b) = hosts(Profile::classic());
    let listener = b.listen("10.0.0.2:0").unwrap();
    let mut ours = a.connect(listener.local_addr().unwrap()).unwrap();
    let theirs = listener.accept().unwrap().0;
    ours.attach(Box::new(Odd("not"))).unwrap();
    for _ in 1..MAX_LAYERS {
        ours.attach(Box::new(Dawdler)).unwrap();
    }
    let mut reader = theirs.try_clone().unwrap();
    let read = spawn(move || {
        let mut bytes = vec![0; 4_000_000];
        reader.read_exact(&mut bytes)
    });
    ours.write_all(&vec![7; 4_000_000]).unwrap();
    read.join().unwrap().unwrap();
    // It takes as long as the time that was used takes to be refilled, until each was called once too often.
    let mut departures = Vec::new();
    while departures.len() < MAX_LAYERS - 1 {
        ours.write_all(&[7]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        let next = |connection: &mut Connection, _| connection.poll_departure();
        departures.extend(ours.with_connection(next).unwrap());
    }
    for departure in departures {
        assert_eq!(departure.name, "dawdler");
        let reason = &departure.reason;
        assert!(matches!(reason, DepartureReason::Fault(Fault::Overran { .. })), "{departure}");
    }
    assert!(a.extension_time().missed > 0);
    let names = |connection: &Connection| connection.layers().map(|l| l.name.to_owned()).collect();
    let left: Vec<String> = ours.with_connection(|connection, _| names(connection)).unwrap();
    assert_eq!(left, ["odd"]);
}
