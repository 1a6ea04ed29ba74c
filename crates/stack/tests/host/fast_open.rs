//! TCP Fast Open (RFC 7413) at a host: cookies given and used, data in SYNs, and how much of it is taken on trust.

use crate::harness::*;
use std::net::SocketAddr;
use transom_stack::{ConnectionId, ListenConfig, ListenerId};
use transom_tcp::time::Duration;
use transom_tcp::{EcnChoice, EcnConfig, FastOpenFailure, Profile, Signal, State};
use transom_wire::offload::RxOffload;
use transom_wire::{FastOpen, Flags, Options, TcpHeader, Timestamps};

const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);

fn listening(host: &mut Host, fast_open: usize) -> ListenerId {
    host.listen_with(service(), ListenConfig::default().with_fast_open(fast_open))
}

fn with(cookie: FastOpen) -> Options {
    Options { fast_open: Some(cookie), ..usual_options() }
}

/// A SYN with data.
fn syn(peer: &Peer, options: Options, data: &[u8]) -> Vec<u8> {
    peer.packet(&TcpHeader { options, ..peer.header(Flags::SYN) }, data)
}

/// The cookie that the host gives to this address.
fn cookie_for(host: &mut Host, from: SocketAddr) -> FastOpen {
    let peer = Peer::new(SocketAddr::new(from.ip(), 3999), service());
    let answer = one(host.inject(&syn(&peer, with(FastOpen::REQUEST), b"early"))).tcp();
    assert_eq!((answer.flags, answer.ack), (SYN_ACK, peer.seq + 1), "data without a cookie");
    host.inject(&peer.at(Flags::RST, 1, 0, &[]));
    assert_eq!(host.stack.half_open_count(), 0);
    answer.options.fast_open.expect("a cookie")
}

/// A SYN with a cookie and `data` is answered; whether the data was taken.
fn opens(host: &mut Host, peer: &Peer, cookie: FastOpen, data: &[u8]) -> (bool, Options) {
    let answer = one(host.inject(&syn(peer, with(cookie), data))).tcp();
    assert_eq!(answer.flags, SYN_ACK);
    let taken = answer.ack == peer.seq + 1 + data.len() as u32;
    assert!(taken || answer.ack == peer.seq + 1);
    (taken, answer.options)
}

fn peer(n: u16) -> Peer {
    Peer::new(at(PEER, 4000 + n), service())
}

/// Another stack, whose packets `carry` brings over.
fn client() -> Host {
    let mut config = transom_stack::StackConfig::new(vec![(PEER.into(), 24)]);
    config.secret = *b"another for test";
    config.profile = std::sync::Arc::new(Profile::classic());
    Host::start(config, ())
}

/// Carries packets until there are none.
fn carry(client: &mut Host, server: &mut Host) {
    let first = client.sent();
    carry_on(client, server, first);
}

/// The same, beginning with these of the client's.
fn carry_on(client: &mut Host, server: &mut Host, mut up: Vec<Sent>) {
    loop {
        for sent in up {
            server.call(|stack, now| stack.on_packet(now, &sent.bytes, RxOffload::default()));
        }
        let down = server.sent();
        for sent in &down {
            client.call(|stack, now| stack.on_packet(now, &sent.bytes, RxOffload::default()));
        }
        up = client.sent();
        if up.is_empty() && down.is_empty() {
            return;
        }
    }
}

fn connect(client: &mut Host, data: &[u8]) -> ConnectionId {
    let id = client.call(|stack, now| stack.connect_on_write(now, None, service(), None)).unwrap();
    client.write_all(id, data);
    id
}

/// Two hosts of ours: the first connection asks, the second has its data in the SYN, and its answer a round trip later.
#[test]
fn from_end_to_end() {
    let (mut client, mut server) = (client(), Host::new());
    let listener = listening(&mut server, 10);
    let first = connect(&mut client, b"hello");
    carry(&mut client, &mut server);
    let accepted = server.accept(listener);
    assert_eq!(server.read(accepted), b"hello");
    assert_eq!(client.info(first).fast_open.failure, FastOpenFailure::NoCookie);
    assert_eq!(server.counters().fast_open_requests, 1);

    let second = connect(&mut client, b"hello again");
    let syn = client.sent_one();
    assert!(syn.flags().contains(Flags::SYN) && !syn.flags().contains(Flags::ACK));
    assert_eq!(syn.payload(), b"hello again");
    server.call(|stack, now| stack.on_packet(now, &syn.bytes, RxOffload::default()));
    // Nothing has come back to the client, and the server has its request and answers it.
    let accepted = server.accept(listener);
    assert_eq!(
        (client.state(second), server.state(accepted)),
        (State::SynSent, State::SynReceived)
    );
    assert_eq!(server.read(accepted), b"hello again");
    server.write_all(accepted, b"and hello");
    assert_eq!(server.unseen(), 2, "the SYN-ACK and the answer");
    carry(&mut client, &mut server);
    assert_eq!(client.read(second), b"and hello");
    assert_eq!(server.state(accepted), State::Established);
    assert!(client.info(second).fast_open.syn_data_acked);
    assert_eq!(client.counters().fast_opens_active, 1);
}

/// RFC 7413 section 4.1.3.1, at the host: after a negative response the next connection to that service opens as any other.
#[test]
fn negative_responses_pause_fast_open() {
    let remote = at(PEER, 80);
    let connecting = |host: &mut Host| {
        let id = host.call(|stack, now| stack.connect_on_write(now, None, remote, None)).unwrap();
        host.write_all(id, b"data");
        (id, host.sent_one())
    };
    let answered = |host: &mut Host, syn: &Sent, ack: u32, cookie: Option<FastOpen>| {
        let mut peer = Peer::new(remote, syn.ends().0);
        peer.ack = syn.tcp().seq + ack;
        let options = Options { fast_open: cookie, ..bare_options() };
        let header = TcpHeader { options, ..peer.header(SYN_ACK) };
        host.inject(&peer.packet(&header, &[]));
        host.sent();
    };
    type Reaction = fn(&mut Host, ConnectionId, &Sent);
    let reactions: [Reaction; 3] = [
        |host, _, syn| {
            let mut peer = Peer::new(at(PEER, 80), syn.ends().0);
            peer.ack = syn.tcp().seq + 1;
            let header = TcpHeader { options: bare_options(), ..peer.header(SYN_ACK) };
            host.inject(&peer.packet(&header, &[]));
        },
        |host, id, _| {
            host.run_for(Duration::from_millis(1_500));
            host.close(id);
        },
        |host, _, syn| {
            let code = transom_wire::UnreachableCode::Port;
            let message = transom_wire::IcmpMessage::Unreachable { code, quoted: &syn.bytes };
            host.inject(&transom_testkit::packets::icmp(ROUTER, HOST, &message));
        },
    ];
    for (n, reaction) in reactions.into_iter().enumerate() {
        let mut host = Host::new();
        let (_, syn) = connecting(&mut host);
        answered(&mut host, &syn, 1, FastOpen::new(&[7; 8]));
        let (id, syn) = connecting(&mut host);
        assert_eq!(
            (syn.payload(), syn.tcp().options.fast_open),
            (b"data".to_vec(), FastOpen::new(&[7; 8]))
        );
        reaction(&mut host, id, &syn);
        host.sent();
        let (_, syn) = connecting(&mut host);
        assert_eq!((syn.payload().len(), syn.tcp().options.fast_open), (0, None), "{n}");
        host.run_for(Duration::from_secs(120));
        host.sent();
        let (_, syn) = connecting(&mut host);
        assert_eq!(syn.payload(), b"data", "{n}: later it is tried again");
    }
}

#[test]
fn data_in_a_syn_is_read_and_answered_before_the_handshake_is_complete() {
    let mut host = Host::new();
    let listener = listening(&mut host, 10);
    let mut peer = peer(0);
    let cookie = cookie_for(&mut host, peer.from);
    assert_eq!(cookie.as_slice().len(), 8);
    let answer = one(host.inject(&syn(&peer, with(cookie), b"request"))).tcp();
    assert_eq!((answer.flags, answer.ack), (SYN_ACK, peer.seq + 8));
    assert_eq!(answer.options.fast_open, None);
    assert_eq!(host.stack.acceptable(listener), 1);
    let id = host.accept(listener);
    assert_eq!(host.state(id), State::SynReceived);
    assert_eq!((host.count(id, Signal::Readable), host.read(id)), (1, b"request".to_vec()));
    host.write_all(id, b"answer");
    let sent = host.sent_one();
    assert_eq!((sent.payload(), sent.tcp().seq), (b"answer".to_vec(), answer.seq + 1));
    // The handshake ends; it is not offered a second time.
    peer.seq += 8;
    peer.ack = answer.seq + 7;
    peer.timestamps =
        answer.options.timestamps.map(|theirs| Timestamps { value: 5_001, echo: theirs.value });
    assert!(host.inject(&peer.segment(Flags::ACK, &[])).is_empty());
    assert_eq!((host.state(id), host.count(id, Signal::Connected)), (State::Established, 1));
    assert_eq!(host.stack.acceptable(listener), 0);
    assert!(host.info(id).fast_open.syn_data_acked);
    peer.assert_alive(&mut host, id);
    assert_eq!((host.counters().fast_opens_passive, host.counters().passive_opens), (1, 1));
}

/// Off, as it is unless somebody asks for it: the option is not answered, and data in a SYN waits for the handshake.
#[test]
fn a_listener_does_not_do_it_by_default() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let mut with_limit = Host::new();
    let other = listening(&mut with_limit, 1);
    let cookie = cookie_for(&mut with_limit, peer(0).from);
    for option in [FastOpen::REQUEST, cookie] {
        let (taken, options) =
            opens(&mut host, &peer(u16::from(option.is_request())), option, b"x");
        assert_eq!((taken, options.fast_open), (false, None));
    }
    assert_eq!(host.stack.acceptable(listener), 0);
    // It can be switched off again.
    with_limit.call(|stack, _| stack.reconfigure_listener(other, ListenConfig::default())).unwrap();
    let (taken, options) = opens(&mut with_limit, &peer(0), cookie, b"x");
    assert_eq!((taken, options.fast_open), (false, None));
}

/// Cookies that are forged, another client's, of another length, or too old open nothing. They are answered with a right one.
#[test]
fn a_wrong_cookie_is_answered_with_a_right_one() {
    let mut host = Host::with(|config, _| {
        config.fast_open.key_lifetime = Duration::from_secs(100);
    });
    listening(&mut host, 10);
    host.run_for(Duration::from_secs(10));
    let cookie = cookie_for(&mut host, peer(0).from);
    let other = Peer::new(at([10, 0, 0, 77], 4000), service());
    let mut n = 0;
    let mut tried = |host: &mut Host, option: FastOpen, from: Option<Peer>| {
        n += 1;
        let peer = from.unwrap_or_else(|| peer(n));
        let (taken, options) = opens(host, &peer, option, b"data");
        host.inject(&peer.at(Flags::RST, if taken { 5 } else { 1 }, 0, &[]));
        (taken, options.fast_open)
    };
    let theirs = cookie_for(&mut host, other.from);
    assert_ne!(theirs, cookie);
    assert_eq!(tried(&mut host, cookie, Some(other)), (false, Some(theirs)));
    assert_eq!(tried(&mut host, theirs, None), (false, Some(cookie)));
    for forged in [&[0; 8][..], &[0xff; 4], &cookie.as_slice()[..4], &[1; 16]] {
        let forged = FastOpen::new(forged).unwrap();
        assert_eq!(tried(&mut host, forged, None), (false, Some(cookie)));
    }
    assert_eq!(host.counters().fast_open_bad_cookies, 6);
    assert_eq!(tried(&mut host, cookie, None), (true, None));
    // The key changes: the cookie is good, and there is a new one. It changes again: it is not.
    host.run_for(Duration::from_secs(100));
    let (taken, fresh) = tried(&mut host, cookie, None);
    assert!(taken && fresh.is_some_and(|fresh| fresh != cookie));
    assert_eq!(tried(&mut host, fresh.unwrap(), None), (true, None));
    host.run_for(Duration::from_secs(100));
    assert!(!tried(&mut host, cookie, None).0);
}

/// RFC 7413 section 5.1: above the limit there are ordinary handshakes, until one that waits is complete, given up, or was reset a minute ago.
#[test]
fn the_limit_of_connections_that_wait() {
    let mut host = Host::new();
    let listener = listening(&mut host, 2);
    let cookie = cookie_for(&mut host, peer(0).from);
    assert!(opens(&mut host, &peer(0), cookie, b"0").0);
    assert!(opens(&mut host, &peer(1), cookie, b"1").0);
    let (taken, options) = opens(&mut host, &peer(2), cookie, b"2");
    assert_eq!((taken, options.fast_open, host.counters().fast_open_overflows), (false, None, 1));
    // Accepting changes nothing, the end of a handshake does.
    let id = host.accept(listener);
    assert!(!opens(&mut host, &peer(3), cookie, b"3").0);
    let (mut zero, now) = (peer(0), host.now);
    let iss = host.connection(id).iss();
    zero.ack = iss + 1;
    zero.timestamps = Some(Timestamps { value: 5_001, echo: 0 });
    host.inject(&zero.at(Flags::ACK, 2, 0, &[]));
    assert_eq!(host.state(id), State::Established, "{:?}", host.connection(id).info(now));
    assert!(opens(&mut host, &peer(4), cookie, b"4").0);
    assert!(!opens(&mut host, &peer(5), cookie, b"5").0);
    // A reset makes room a minute later.
    host.inject(&peer(1).at(Flags::RST, 2, 0, &[]));
    assert!(!opens(&mut host, &peer(6), cookie, b"6").0);
    host.inject(&peer(4).at(Flags::RST, 2, 0, &[]));
    host.run_for(Duration::from_secs(59));
    assert!(!opens(&mut host, &peer(7), cookie, b"7").0);
    host.run_for(Duration::from_secs(1));
    assert!(opens(&mut host, &peer(8), cookie, b"8").0);
    // Nobody answers any more: all of them are given up.
    host.run_for(Duration::from_secs(600));
    assert!(opens(&mut host, &peer(9), cookie, b"9").0);
    assert!(opens(&mut host, &peer(10), cookie, b"10").0);
}

/// A queue that is full of ordinary half-open connections keeps nobody out who has a cookie; and a stateless answer brings one.
#[test]
fn beside_a_flood_of_syns() {
    let mut host = Host::new();
    let config = ListenConfig::default().with_fast_open(4).with_syn_backlog(1);
    let listener = host.listen_with(service(), config);
    one(host.inject(&Peer::new(at([10, 0, 0, 66], 1), service()).syn(usual_options())));
    let mut first = peer(0);
    let answer = one(host.inject(&syn(&first, with(FastOpen::REQUEST), b"early"))).tcp();
    assert_eq!(host.counters().cookies_sent, 1);
    let cookie = answer.options.fast_open.unwrap();
    host.inject(&first.answer(&answer, usual_options()));
    let id = host.accept(listener);
    first.assert_alive(&mut host, id);
    assert!(opens(&mut host, &peer(1), cookie, b"data").0);
    assert_eq!(host.stack.acceptable(listener), 1);
    // There is room in the accept queue for it, or there is no answer.
    let mut small = Host::new();
    let config = ListenConfig::default().with_fast_open(4).with_backlog(1);
    small.listen_with(service(), config);
    let cookie = cookie_for(&mut small, peer(0).from);
    assert!(opens(&mut small, &peer(1), cookie, b"data").0);
    assert!(small.inject(&syn(&peer(2), with(cookie), b"data")).is_empty());
}

/// Accurate ECN's option and a cookie do not fit one SYN-ACK with all others: the cookie goes.
#[test]
fn a_cookie_goes_before_the_option_of_accurate_ecn() {
    let mut host = Host::with(|_, profile| {
        profile.ecn = EcnChoice::Accurate { ecn: EcnConfig::default(), options: true };
    });
    let listener = listening(&mut host, 10);
    let offers = Flags::SYN | Flags::ECE | Flags::CWR | Flags::AE;
    let answer = |host: &mut Host, n: u16, option: FastOpen| {
        let header = TcpHeader { options: with(option), ..peer(n).header(offers) };
        one(host.inject(&peer(n).packet(&header, b"data"))).tcp()
    };
    let cookie = answer(&mut host, 0, FastOpen::REQUEST).options.fast_open.expect("a cookie");
    let open = answer(&mut host, 1, cookie);
    assert_eq!(open.ack, peer(1).seq + 5);
    assert!(open.options.acc_ecn.is_some() && open.options.encoded_len() <= 40);
    // The SYN again, without the offer: what was agreed on stays.
    host.run_for(Duration::from_millis(100));
    let again = one(host.inject(&peer(1).syn(usual_options()))).tcp();
    assert_eq!((again.flags & SYN_ACK, again.ack), (SYN_ACK, peer(1).seq + 5));
    assert_eq!(host.stack.acceptable(listener), 1);
}

/// RFC 7413 section 2.1: what a listener with Fast Open has to expect. While a connection is there, or remembered, its SYN brings no data a second time;
/// when it is gone, it does.
#[test]
fn a_doubled_syn_is_new_data_once_its_connection_is_gone() {
    let mut host = Host::new();
    let listener = listening(&mut host, 10);
    let mut peer = peer(0);
    let cookie = cookie_for(&mut host, peer.from);
    let syn = syn(&peer, with(cookie), b"order");
    let answer = one(host.inject(&syn)).tcp();
    let id = host.accept(listener);
    assert_eq!(host.read(id), b"order");
    // Doubled at once.
    assert_eq!(one(host.inject(&syn)).tcp().ack, peer.seq + 6);
    peer.seq += 6;
    peer.ack = answer.seq + 1;
    peer.timestamps =
        answer.options.timestamps.map(|theirs| Timestamps { value: 5_001, echo: theirs.value });
    host.inject(&peer.segment(Flags::ACK, &[]));
    // Later.
    host.run_for(Duration::from_secs(2));
    assert_eq!(one(host.inject(&syn)).flags(), Flags::ACK);
    // In TIME-WAIT.
    peer.close_after(&mut host, id);
    assert_eq!(host.stack.time_wait_count(), 1);
    host.run_for(Duration::from_secs(2));
    host.inject(&syn);
    assert_eq!((host.stack.time_wait_count(), host.stack.acceptable(listener)), (1, 0));
    // Forgotten.
    host.run_for(Duration::from_secs(600));
    host.sent();
    assert_eq!(host.stack.time_wait_count(), 0);
    host.inject(&syn);
    let id = host.accept(listener);
    assert_eq!(host.read(id), b"order");
}

/// The listener closes while connections wait for their handshake: they are reset, accepted ones live.
#[test]
fn closing_the_listener() {
    let mut host = Host::new();
    let listener = listening(&mut host, 10);
    let cookie = cookie_for(&mut host, peer(0).from);
    opens(&mut host, &peer(0), cookie, b"0");
    let id = host.accept(listener);
    opens(&mut host, &peer(1), cookie, b"1");
    host.call(|stack, now| stack.close_listener(listener, now));
    assert!(host.sent_one().flags().contains(Flags::RST));
    assert_eq!((host.state(id), host.stack.connection_count()), (State::SynReceived, 1));
    let again = listening(&mut host, 1);
    host.inject(&peer(0).at(Flags::RST, 2, 0, &[]));
    assert_eq!(host.state(id), State::Closed);
    assert!(opens(&mut host, &peer(2), cookie, b"2").0, "it did not count at the new one");
    assert_eq!(host.stack.acceptable(again), 1);
}

/// RFC 7413 section 4.1.3.1, and the SYN that is lost for its option: it is not asked for again for a while, then it is.
#[test]
fn a_client_remembers_cookies_and_refusals() {
    let (mut client, mut server) = (client(), Host::new());
    let listener = listening(&mut server, 10);
    let option = |client: &mut Host, server: &mut Host, lost: bool| {
        client.sent();
        let id = connect(client, b"data");
        let syn = client.sent_one();
        let option = syn.tcp().options.fast_open.map(|option| option.is_request());
        if lost {
            client.run_for(Duration::from_millis(1_500));
            carry(client, server);
        } else {
            carry_on(client, server, vec![syn]);
        }
        let accepted = server.accept(listener);
        assert_eq!(server.read(accepted), b"data");
        client.call(|stack, now| stack.abort(id, now));
        carry(client, server);
        option
    };
    assert_eq!(option(&mut client, &mut server, false), Some(true), "asks");
    assert_eq!(option(&mut client, &mut server, false), Some(false), "has");
    assert_eq!(option(&mut client, &mut server, true), Some(false), "is lost");
    assert_eq!(option(&mut client, &mut server, false), None, "does not try");
    client.run_for(Duration::from_secs(60));
    server.run_for(Duration::from_secs(60));
    assert_eq!(option(&mut client, &mut server, false), Some(false), "tries again");
    assert_eq!(client.counters().fast_opens_active, 2);
    assert_eq!(server.counters().fast_opens_passive, 2);
}
