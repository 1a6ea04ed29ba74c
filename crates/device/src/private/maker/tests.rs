use std::os::fd::AsFd;

use super::messages::*;
use super::*;
use crate::interface::IpPrefix;
use crate::private::InterfaceKind;

fn prefix(text: &str) -> IpPrefix {
    text.parse().unwrap()
}

fn requests() -> Vec<Request> {
    let settings = PrivateSettings {
        name: "eth0".into(),
        kind: InterfaceKind::Veth,
        mtu: 9000,
        queues: 3,
        addresses: vec![prefix("192.0.2.1/24"), prefix("2001:db8::1/64")],
        bindable: vec![prefix("192.0.2.77/32")],
        routes: vec![
            (prefix("0.0.0.0/0"), Some([192, 0, 2, 1].into())),
            (prefix("2001:db8:7::/48"), None),
        ],
        loopback: false,
        local_ports: Some((30_000, 30_009)),
        ..PrivateSettings::default()
    };
    vec![
        Request::Open(settings),
        Request::Open(PrivateSettings::default()),
        Request::Sockets { family: Family::V4, count: 1, group: None },
        Request::Sockets { family: Family::V6, count: 64, group: Some("/a b/c".into()) },
        Request::Diag,
        Request::Events,
        Request::DestroyAll,
        Request::Change(Change::AddAddress(prefix("192.0.2.1/24"))),
        Request::Change(Change::RemoveAddress(prefix("192.0.2.1/24"))),
        Request::Change(Change::AddBindable(prefix("2001:db8::1/64"))),
        Request::Change(Change::RemoveBindable(prefix("2001:db8::1/64"))),
        Request::Change(Change::AddRoute(prefix("0.0.0.0/0"), None)),
        Request::Change(Change::AddRoute(prefix("::/0"), Some("::1".parse().unwrap()))),
    ]
}

fn replies() -> Vec<Reply> {
    vec![
        Reply::Made(Made { index: 2, station: Some([0, 1, 2, 0xfd, 0xfe, 0xff]), loopback: true }),
        Reply::Made(Made { index: u32::MAX, station: None, loopback: false }),
        Reply::Done,
        Reply::Destroyed(Destroyed { destroyed: 7, left: 1 }),
        Reply::Failed { number: libc::EPERM, message: "not so: why".into() },
        Reply::NoUsers { number: 0, message: String::new() },
    ]
}

#[test]
fn messages_survive_the_way() {
    for request in requests() {
        let text = request.to_string();
        assert_eq!(Request::parse(text.as_bytes()).unwrap(), request, "{text}");
    }
    for reply in replies() {
        let text = reply.to_string();
        assert_eq!(Reply::parse(text.as_bytes()).unwrap(), reply, "{text}");
    }
}

#[test]
fn damaged_messages_are_refused_and_cause_no_panic() {
    let texts = requests().into_iter().map(|one| one.to_string());
    for text in texts.chain(replies().into_iter().map(|one| one.to_string())) {
        for end in 0..text.len() {
            let _ = Request::parse(&text.as_bytes()[..end]);
            let _ = Reply::parse(&text.as_bytes()[..end]);
            for byte in [0, b' ', b'\n', b'9', b'/', 0xff] {
                let mut damaged = text.clone().into_bytes();
                damaged[end] = byte;
                let _ = Request::parse(&damaged);
                let _ = Reply::parse(&damaged);
            }
        }
    }
    for nonsense in [
        "",
        "open\nqueues 65",
        "open\nname a b",
        "open\nmtu 65536",
        "open\nmtu",
        "open now",
        "sockets v4 0",
        "sockets v4 65",
        "sockets v4 18446744073709551617",
        "sockets v5 1",
        "sockets v4 1\ngruppe /a",
        "diag x",
        "add-address 192.0.2.1",
        "add-route 0.0.0.0/0 ::1 x",
    ] {
        assert!(Request::parse(nonsense.as_bytes()).is_err(), "{nonsense}");
    }
    for nonsense in ["", "made", "made 1", "made 1 true 00", "made 1 true 00000000000g", "done x"] {
        assert!(Reply::parse(nonsense.as_bytes()).is_err(), "{nonsense}");
    }
    let many = format!("open{}", "\naddress 192.0.2.1/24".repeat(1025));
    assert!(Request::parse(many.as_bytes()).is_err());
    let words = Reply::parse(b"failed 1 a\x1b[2Jb\nc").unwrap();
    assert_eq!(words, Reply::Failed { number: 1, message: "a[2Jbc".into() });
}

/// One side of a pair, and a thread at the other that answers each request with the next of these texts, and descriptors.
fn answered_by(answers: Vec<(&'static str, Vec<OwnedFd>)>) -> Maker {
    let (near, far) = passing::pair().unwrap();
    std::thread::spawn(move || {
        for (text, with) in answers {
            passing::receive(&far, LONGEST, 0, &mut Vec::new()).unwrap();
            let with: Vec<_> = with.iter().map(AsFd::as_fd).collect();
            passing::send(&far, text.as_bytes(), &with).unwrap();
        }
    });
    Maker::on(near).unwrap()
}

fn some_file() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

#[test]
fn a_maker_that_lies_is_not_believed() {
    let open = |text, with| {
        let outcome = answered_by(vec![(text, with)]).open(&PrivateSettings::default());
        outcome.map(drop).unwrap_err()
    };
    let netlink = || crate::diag::Diag::open().unwrap().as_fd().try_clone_to_owned().unwrap();
    for (text, with) in [
        ("made 1 true", vec![]),
        ("made 1 false", vec![some_file(), some_file(), some_file()]),
        // One for another subsystem, and one that is no device.
        ("made 1 false", vec![some_file(), netlink(), some_file()]),
        ("done", vec![]),
        ("what", vec![]),
        ("", vec![some_file()]),
    ] {
        let error = open(text, with);
        assert!(matches!(error, PrivateError::Maker(MakerError::Nonsense(_))), "{text}: {error:?}");
    }
    let route = || Interfaces::open().unwrap().as_fd().try_clone_to_owned().unwrap();
    let error = open("made 1 false", vec![some_file(), route(), some_file()]);
    assert!(matches!(error, PrivateError::Tun(_)), "{error:?}");
    let error = open("made 1 false 000000000000", vec![some_file(), route(), route()]);
    assert!(matches!(error, PrivateError::Maker(MakerError::Nonsense(_))), "{error:?}");

    // Sockets that are not TCP, not of that network, or too many.
    let other = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().into();
    for with in [vec![], vec![some_file()], vec![route()], vec![other()], vec![other(), other()]] {
        let error = answered_by(vec![("done", with)]).sockets(Family::V4, 1, None).unwrap_err();
        assert!(matches!(error, MakerError::Nonsense(_)), "{error:?}");
    }
    // After an answer that makes no sense there are no more.
    let maker = answered_by(vec![("nonsense", vec![]), ("done", vec![])]);
    assert!(maker.change(Change::AddAddress(prefix("192.0.2.1/24"))).is_err());
    let error = maker.change(Change::AddAddress(prefix("192.0.2.1/24"))).unwrap_err();
    assert!(matches!(error, MakerError::Gone(_)), "{error:?}");
}

#[test]
fn a_maker_that_is_not_there_or_ends_at_once_is_named() {
    let start = |program: &str| {
        Maker::start(program.as_ref(), &[])
            .map_err(PrivateError::from)
            .and_then(|maker| maker.open(&PrivateSettings::default()))
    };
    let missing = start("/nowhere/at/all").map(drop).unwrap_err();
    assert!(matches!(missing, PrivateError::Maker(MakerError::Start { .. })), "{missing:?}");
    let ended = start("/bin/true").map(drop).unwrap_err();
    assert!(matches!(ended, PrivateError::Maker(MakerError::Gone(_))), "{ended:?}");
}
