//! The broker makes private networks for programs' sockets, for users who may not.

use std::error::Error;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{getsockname, sockopt};
use transom_broker::client::{self, BrokerError};
use transom_broker::protocol::ErrorKind;
use transom_device::Device;
use transom_device::private::{
    Caller, Change, Family, Home, PrivateDevice, PrivateSettings, SocketMaker,
};

use super::support::{BrokerProcess, Holder, NOBODY, Net, SOMEBODY, until};
use crate::support::wire;

fn rules(networks: u16) -> String {
    format!("[[allow]]\nuser = {NOBODY}\ndevices = {networks}\n")
}

fn settings() -> PrivateSettings {
    let mut settings = PrivateSettings::default();
    settings.addresses.push("192.0.2.1/24".parse().unwrap());
    settings
}

/// Whether a TCP packet comes to this address and port; others may come before.
fn comes_to(device: &mut PrivateDevice, to: SocketAddr) -> bool {
    let SocketAddr::V4(to) = to else { return false };
    let mut came = false;
    while let Ok(packet) = device.recv() {
        let bytes = packet.bytes();
        came |= bytes[0] == 0x45
            && bytes[9] == 6
            && bytes[16..20] == to.ip().octets()
            && bytes[22..24] == to.port().to_be_bytes();
        device.recycle(packet.buffer);
    }
    came
}

fn words(error: impl Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// By an ordinary user without rights: what a supervisor does with the network. Gives a word, or what was wrong.
pub(crate) fn use_network(socket: OwnedFd) -> Result<String, Box<dyn Error>> {
    let (mut network, mut device) = settings().open_by(socket).map_err(words)?;
    let caller = Caller::ourselves(&Home::here()?)?;
    let mut sockets = SocketMaker::new(&network, 2)?;
    let (mut diag, mut events) = (network.diag()?, network.destroy_events()?);
    let to: SocketAddr = "198.51.100.7:80".parse()?;
    let socket = sockets.take(Family::V4, &caller)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    assert_eq!(rustix::net::connect(&socket, &to), Err(Errno::INPROGRESS));
    assert!(comes_to(&mut device, to), "the SYN did not come");
    let local = SocketAddr::try_from(getsockname(&socket)?)?;
    let found = diag.find(local, to)?.ok_or("the socket is not found")?;
    assert_eq!(found.user, rustix::process::geteuid().as_raw(), "it is the client's");
    // These are the broker's doing.
    network.change(Change::AddAddress("192.0.2.77/24".parse()?))?;
    let other = sockets.take(Family::V4, &caller)?;
    rustix::net::bind(&other, &"192.0.2.77:0".parse::<SocketAddr>()?)?;
    // The kernel asks in whose network the port is: root's, as outside.
    let low = rustix::net::bind(
        &sockets.take(Family::V4, &caller)?,
        &"192.0.2.77:81".parse::<SocketAddr>()?,
    );
    let start = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start")?;
    let expected = if start.trim().parse::<u16>()? > 81 { Err(Errno::ACCESS) } else { Ok(()) };
    assert_eq!(low, expected);
    // And what the client is not to do by itself, with what it got.
    let refused = network.namespace().interfaces().add_address("lo", "192.0.2.99/24".parse()?);
    let refused = std::io::Error::from(refused.unwrap_err());
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    let refused = network.diag()?.destroy_all().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(network.namespace().run(|| ()).is_err(), "it is not let in");
    assert_eq!(network.destroy_all()?.destroyed, 1);
    assert_eq!(sockopt::socket_error(&socket)?, Err(Errno::CONNABORTED));
    let mut told = 0;
    drop((socket, other));
    until("the ends are told", || {
        let _ = events.take(|_| told += 1).unwrap();
        told >= 2
    });
    Ok("used".into())
}

#[test]
fn a_user_whom_the_policy_allows_has_a_private_network() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, &rules(1));
    let holder = Holder::start(&net, NOBODY);
    let ask = format!("network {}", net.socket().display());
    holder.ask(&ask).unwrap();
    // One is allowed, and it is there until its socket is closed.
    let error = holder.ask(&ask).unwrap_err();
    assert!(error.contains("1 private networks already"), "{error}");
    assert_eq!(holder.ask("use-network").unwrap(), "used");
    until("the network is over", || holder.ask(&ask).is_ok());
    holder.ask("forget-networks").unwrap();
    until("the network is over, which nobody has opened", || holder.ask(&ask).is_ok());
    let audit = std::fs::read_to_string(net.directory.path().join("audit.log")).unwrap();
    assert!(audit.contains("\"event\":\"network\",\"user\":65534"), "{audit}");
}

#[test]
fn others_have_none() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, &rules(1));
    let stranger = Holder::start(&net, SOMEBODY);
    let error = stranger.ask(&format!("network {}", net.socket().display())).unwrap_err();
    assert!(error.contains("no rule for user 65533"), "{error}");
    let nowhere = client::network(net.directory.path().join("nobody")).unwrap_err();
    assert!(matches!(nowhere, BrokerError::NotRunning { .. }), "{nowhere:?}");
    // Root has no rule here either.
    let refused = client::network(net.socket()).unwrap_err();
    assert!(matches!(&refused, BrokerError::Refused(why) if why.kind == ErrorKind::Denied));
}

/// A network, as soon as there is room for one.
fn network(net: &Net) -> OwnedFd {
    let mut got = None;
    until("there is room for a network", || {
        got = client::network(net.socket()).ok();
        got.is_some()
    });
    got.unwrap()
}

/// A client may say to its maker whatever it likes.
#[test]
fn nonsense_is_refused_and_the_broker_goes_on() {
    let Some(net) = Net::new() else { return };
    let rule = "[[allow]]\nuser = 0\ndevices = 2\n";
    let _broker = BrokerProcess::start(&net, rule);
    let say = |socket: &OwnedFd, text: &[u8]| {
        wire::send(socket, text, &[]).unwrap();
        let answer = wire::receive(socket).unwrap();
        answer.map(|(bytes, _)| String::from_utf8(bytes).unwrap())
    };
    // Before the network is made, the first mistake is the last one.
    for text in
        [&b"sockets v4 1"[..], b"\xff", b"open\nqueues 0", b"open\nmtu 1", b"open\nname a/b"]
    {
        let socket = network(&net);
        let answer = say(&socket, text).expect("an answer");
        assert!(answer.starts_with("failed "), "{text:?}: {answer}");
        until("the service has ended", || wire::send(&socket, b"diag", &[]).is_err());
    }
    let socket = network(&net);
    let made = say(&socket, b"open\nkind veth\naddress 192.0.2.1/24").unwrap();
    assert!(made.starts_with("made "), "{made}");
    for text in [
        &b"open"[..],
        b"what",
        b"\0",
        b"sockets v4 65",
        b"sockets v4 1\ngroup /",
        b"sockets v4 1\ngroup /../..",
        b"add-address 192.0.2.1/24",
        b"add-address 224.0.0.1/24",
        b"add-route 0.0.0.0/0 203.0.113.1",
        b"remove-bindable 192.0.2.9/24",
    ] {
        let answer = say(&socket, text).expect("an answer");
        assert!(answer.starts_with("failed "), "{text:?}: {answer}");
    }
    wire::send(&socket, &vec![b'x'; 65_536], &[]).unwrap();
    assert!(wire::receive(&socket).unwrap().is_some());
    assert_eq!(say(&socket, b"sockets v6 2").as_deref(), Some("done"));
    net.status();
}
