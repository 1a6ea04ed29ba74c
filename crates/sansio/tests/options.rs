//! Options: their values, their limits, and what they do to packets.

use crate::support;
use libc::{
    AF_INET, AF_INET6, EINTR, EINVAL, ENOENT, ENOPROTOOPT, ETIMEDOUT, IP_MTU_DISCOVER, IP_RECVERR,
    IP_TOS, IP_TTL, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPV6_TCLASS, IPV6_UNICAST_HOPS, SHUT_WR,
    SO_ACCEPTCONN, SO_DOMAIN, SO_ERROR, SO_KEEPALIVE, SO_LINGER, SO_PROTOCOL, SO_RCVBUF,
    SO_RCVTIMEO, SO_REUSEADDR, SO_TYPE, SOCK_STREAM, SOL_SOCKET, TCP_CONGESTION, TCP_KEEPCNT,
    TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_MAXSEG, TCP_NODELAY, TCP_SYNCNT, TCP_USER_TIMEOUT,
};

use crate::support::{
    Dialogue, TCP_CLOSE, TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_LISTEN, TCP_SYN_SENT,
    TCPI_OPT_SACK, TCPI_OPT_TIMESTAMPS, TCPI_OPT_WSCALE, accepted, at, drain, failed, host,
    host_with, ms, only,
};
use transom_sansio::{Host, Result, SocketCalls};
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::congestion::ALGORITHMS;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{FlowChoice, Profile, ReceiveWindowConfig};
use transom_wire::ip::{Ecn, set_ecn};
use transom_wire::{AccEcn, AccEcnCounters, AccEcnOrder, Flags, Options, TcpHeader, Timestamps};

fn set(host: &mut Host, fd: i32, level: i32, name: i32, value: i32) -> Result<()> {
    host.set_option(fd, level, name, &value.to_ne_bytes())
}

fn get(host: &mut Host, fd: i32, level: i32, name: i32) -> i32 {
    let bytes = host.option(fd, level, name).unwrap();
    i32::from_ne_bytes(bytes.try_into().unwrap())
}

fn socket(host: &mut Host) -> i32 {
    host.socket(AF_INET, SOCK_STREAM, 0).unwrap()
}

/// [MUST-23] [MUST-25] [MUST-28]
#[test]
fn a_new_socket_shows_its_defaults() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    let expected = [
        (SOL_SOCKET, SO_TYPE, SOCK_STREAM),
        (SOL_SOCKET, SO_DOMAIN, AF_INET),
        (SOL_SOCKET, SO_PROTOCOL, IPPROTO_TCP),
        (SOL_SOCKET, SO_ERROR, 0),
        (SOL_SOCKET, SO_ACCEPTCONN, 0),
        (SOL_SOCKET, SO_REUSEADDR, 0),
        (SOL_SOCKET, SO_KEEPALIVE, 0),
        (IPPROTO_TCP, TCP_NODELAY, 0),
        (IPPROTO_TCP, TCP_MAXSEG, 536),
        (IPPROTO_TCP, TCP_KEEPIDLE, 7200),
        (IPPROTO_TCP, TCP_KEEPINTVL, 75),
        (IPPROTO_TCP, TCP_KEEPCNT, 9),
        (IPPROTO_TCP, TCP_USER_TIMEOUT, 0),
        (IPPROTO_TCP, TCP_SYNCNT, 7),
        (IPPROTO_IP, IP_TTL, 64),
        (IPPROTO_IP, IP_TOS, 0),
    ];
    for (level, name, value) in expected {
        assert_eq!(get(&mut host, fd, level, name), value, "option {level}, {name}");
    }
    assert_eq!(host.option(fd, SOL_SOCKET, SO_LINGER).unwrap(), [0; 8]);
    assert_eq!(host.option(fd, SOL_SOCKET, SO_RCVTIMEO).unwrap(), [0; 16]);
    assert_eq!(&host.option(fd, IPPROTO_TCP, TCP_CONGESTION).unwrap()[..5], b"reno\0");
    host.listen(fd, 5).unwrap();
    assert_eq!(get(&mut host, fd, SOL_SOCKET, SO_ACCEPTCONN), 1);
}

#[test]
fn values_out_of_range_change_nothing() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    let bad = [
        (IPPROTO_TCP, TCP_KEEPIDLE, 0),
        (IPPROTO_TCP, TCP_KEEPIDLE, 32_768),
        (IPPROTO_TCP, TCP_KEEPINTVL, 0),
        (IPPROTO_TCP, TCP_KEEPCNT, 128),
        (IPPROTO_TCP, TCP_USER_TIMEOUT, -1),
        (IPPROTO_TCP, TCP_MAXSEG, 87),
        (IPPROTO_TCP, TCP_MAXSEG, 32_768),
        (IPPROTO_IP, IP_TTL, 0),
        (IPPROTO_IP, IP_TTL, 256),
    ];
    for (level, name, value) in bad {
        let before = get(&mut host, fd, level, name);
        assert_eq!(set(&mut host, fd, level, name, value), failed(EINVAL), "{level}, {name}");
        assert_eq!(get(&mut host, fd, level, name), before);
    }
    assert_eq!(host.set_option(fd, IPPROTO_TCP, TCP_NODELAY, &[1, 0, 0]), failed(EINVAL));
    assert_eq!(host.set_option(fd, SOL_SOCKET, SO_LINGER, &[1, 0, 0, 0]), failed(EINVAL));
    assert_eq!(host.set_option(fd, SOL_SOCKET, SO_RCVTIMEO, &[0; 8]), failed(EINVAL));
    for (level, name) in
        [(SOL_SOCKET, 9999), (IPPROTO_TCP, 999), (99, 1), (IPPROTO_IPV6, IPV6_TCLASS)]
    {
        assert_eq!(set(&mut host, fd, level, name, 1), failed(ENOPROTOOPT));
    }
    assert_eq!(host.option(fd, SOL_SOCKET, 9999), failed(ENOPROTOOPT));
    let six = host.socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    assert_eq!(set(&mut host, six, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 9), Ok(()));
}

/// Options of `IPPROTO_IP` take shorter values too, as on Linux; those of other levels do not.
#[test]
fn a_number_for_ip_may_be_a_byte() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    for value in [&[16][..], &[16, 9], &[16, 9, 9]] {
        for (name, number) in [(IP_TOS, 16), (IP_TTL, 16), (IP_RECVERR, 1)] {
            let zero: i32 = if name == IP_TTL { 64 } else { 0 };
            set(&mut host, fd, IPPROTO_IP, name, zero).unwrap();
            assert_eq!(host.set_option(fd, IPPROTO_IP, name, value), Ok(()));
            assert_eq!(get(&mut host, fd, IPPROTO_IP, name), number, "{name} {value:?}");
        }
    }
    assert_eq!(host.set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, &[2]), Ok(()));
    assert_eq!(get(&mut host, fd, IPPROTO_IP, IP_MTU_DISCOVER), 2);
    assert_eq!(host.set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, &[6]), failed(EINVAL));
    // No value is zero.
    assert_eq!(host.set_option(fd, IPPROTO_IP, IP_TOS, &[]), Ok(()));
    assert_eq!(get(&mut host, fd, IPPROTO_IP, IP_TOS), 0);
    assert_eq!(host.set_option(fd, IPPROTO_IP, IP_TTL, &[]), failed(EINVAL));
    assert_eq!(host.set_option(fd, IPPROTO_TCP, TCP_NODELAY, &[1]), failed(EINVAL));
    let six = host.socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    assert_eq!(host.set_option(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &[9]), failed(EINVAL));
}

/// [MUST-48] [MUST-49] [SHLD-21] [SHLD-22]
#[test]
fn time_to_live_and_type_of_service_before_and_during_a_connection() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    set(&mut host, fd, IPPROTO_IP, IP_TTL, 9).unwrap();
    set(&mut host, fd, IPPROTO_IP, IP_TOS, 0xb9).unwrap();
    assert_eq!(get(&mut host, fd, IPPROTO_IP, IP_TOS), 0xb8, "ECN is TCP's own");
    let _ = host.connect(fd, at("192.0.2.2:80"));
    let syn = only(&mut host);
    assert_eq!((syn.ttl, syn.traffic_class), (9, 0xb8));
    let mut peer = support::peer(80, syn.header.src_port);
    peer.take(&[syn]);
    peer.send(&mut host, Flags::SYN | Flags::ACK, b"");
    drain(&mut host);
    set(&mut host, fd, IPPROTO_IP, IP_TTL, 200).unwrap();
    set(&mut host, fd, IPPROTO_IP, IP_TOS, 0x10).unwrap();
    host.write(fd, b"x").unwrap();
    let seen = only(&mut host);
    assert_eq!((seen.ttl, seen.traffic_class), (200, 0x10));
}

/// [MUST-14]
#[test]
fn the_segment_size_is_announced_and_kept() {
    let mut host = host(support::LOCAL);
    let listener = socket(&mut host);
    set(&mut host, listener, IPPROTO_TCP, TCP_MAXSEG, 300).unwrap();
    host.bind(listener, at("0.0.0.0:80")).unwrap();
    host.listen(listener, 1).unwrap();
    let mut peer = support::peer(40_000, 80);
    let syn = TcpHeader {
        options: Options { mss: Some(1460), ..Options::default() },
        ..peer.header(Flags::SYN)
    };
    peer.seq += 1;
    host.inject(Instant::ZERO, &peer.packet(&syn, b"")).unwrap();
    let syn_ack = only(&mut host);
    assert_eq!(syn_ack.header.options.mss, Some(300));
    peer.take(&[syn_ack]);
    peer.send(&mut host, Flags::ACK, b"");
    let (fd, _) = host.accept(listener, 0).unwrap();
    assert_eq!(get(&mut host, fd, IPPROTO_TCP, TCP_MAXSEG), 300);
    host.write(fd, &[0; 1000]).unwrap();
    let sizes: Vec<_> = drain(&mut host).iter().map(|seen| seen.payload.len()).collect();
    assert_eq!(sizes[..3], [300, 300, 300]);
}

#[test]
fn options_set_on_a_listener_pass_to_what_it_accepts() {
    let mut host = host(support::LOCAL);
    let listener = socket(&mut host);
    host.bind(listener, at("0.0.0.0:80")).unwrap();
    host.listen(listener, 1).unwrap();
    // After listening, before the peer comes.
    set(&mut host, listener, IPPROTO_TCP, TCP_NODELAY, 1).unwrap();
    set(&mut host, listener, IPPROTO_IP, IP_TTL, 33).unwrap();
    set(&mut host, listener, SOL_SOCKET, SO_RCVBUF, 4000).unwrap();
    assert_eq!(get(&mut host, listener, SOL_SOCKET, SO_RCVBUF), 8000, "twice, as on Linux");
    let mut peer = support::peer(40_000, 80);
    peer.send(&mut host, Flags::SYN, b"");
    let syn_ack = only(&mut host);
    assert_eq!(syn_ack.header.window, 4000);
    peer.take(&[syn_ack]);
    peer.send(&mut host, Flags::ACK, b"");
    let (fd, _) = host.accept(listener, 0).unwrap();
    assert_eq!(get(&mut host, fd, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_eq!(get(&mut host, fd, IPPROTO_IP, IP_TTL), 33);
    assert_eq!(get(&mut host, fd, SOL_SOCKET, SO_RCVBUF), 8000);
    // Nagle's algorithm is off: two small segments leave.
    host.write(fd, b"a").unwrap();
    host.write(fd, b"b").unwrap();
    let seen = drain(&mut host);
    assert_eq!(seen.iter().map(|seen| seen.payload.as_slice()).collect::<Vec<_>>(), [b"a", b"b"]);
    assert!(seen.iter().all(|seen| seen.ttl == 33));
}

/// [MUST-17]
#[test]
fn nodelay_takes_effect_at_once() {
    let mut host = host(support::LOCAL);
    let (fd, _peer) = accepted(&mut host);
    host.write(fd, b"a").unwrap();
    assert_eq!(only(&mut host).payload, b"a");
    host.write(fd, b"b").unwrap();
    assert!(drain(&mut host).is_empty(), "Nagle's algorithm holds it back");
    set(&mut host, fd, IPPROTO_TCP, TCP_NODELAY, 1).unwrap();
    assert_eq!(only(&mut host).payload, b"b");
}

/// [MAY-5] [MUST-24] [MUST-27] [MUST-29]
#[test]
fn keep_alive_probes_and_gives_up() {
    let mut host = host(support::LOCAL);
    let (fd, peer) = accepted(&mut host);
    set(&mut host, fd, IPPROTO_TCP, TCP_KEEPIDLE, 10).unwrap();
    set(&mut host, fd, IPPROTO_TCP, TCP_KEEPINTVL, 3).unwrap();
    set(&mut host, fd, IPPROTO_TCP, TCP_KEEPCNT, 2).unwrap();
    set(&mut host, fd, SOL_SOCKET, SO_KEEPALIVE, 1).unwrap();
    host.set_patience(Duration::from_secs(60)).unwrap();
    assert_eq!(host.read(fd, &mut [0]), failed(ETIMEDOUT));
    assert_eq!(host.now(), Instant::from_secs(10 + 3 + 3));
    let probes: Vec<_> = drain(&mut host)
        .into_iter()
        .filter(|seen| !seen.header.flags.contains(Flags::RST))
        .map(|seen| (seen.at.as_millis(), seen.header.seq))
        .collect();
    // RFC 9293 section 3.8.4: SEG.SEQ = SND.NXT-1.
    assert_eq!(probes, [(10_000, peer.ack - 1), (13_000, peer.ack - 1)]);
}

/// [MUST-20] [MUST-21]
#[test]
fn the_user_timeout_ends_the_wait_for_an_acknowledgement() {
    let mut host = host(support::LOCAL);
    let (fd, _peer) = accepted(&mut host);
    set(&mut host, fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 1500).unwrap();
    host.write(fd, b"anybody?").unwrap();
    host.set_patience(Duration::from_secs(60)).unwrap();
    assert_eq!(host.read(fd, &mut [0]), failed(ETIMEDOUT));
    assert_eq!(host.now(), Instant::from_millis(1500));
}

/// The name as `TCP_CONGESTION` shows it: sixteen bytes with zeros at the end.
fn congestion(host: &mut Host, fd: i32) -> String {
    let bytes = host.option(fd, IPPROTO_TCP, TCP_CONGESTION).unwrap();
    assert_eq!((bytes.len(), bytes[15]), (16, 0));
    String::from_utf8(bytes.split(|&byte| byte == 0).next().unwrap().to_vec()).unwrap()
}

fn choose(host: &mut Host, fd: i32, name: &[u8]) -> Result<()> {
    host.set_option(fd, IPPROTO_TCP, TCP_CONGESTION, name)
}

#[test]
fn every_congestion_controller_is_chosen_by_its_name() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    assert_eq!(congestion(&mut host, fd), "reno");
    for entry in ALGORITHMS {
        assert!(entry.name.len() < 16, "{}", entry.name);
        assert_eq!(choose(&mut host, fd, entry.name.as_bytes()), Ok(()), "{}", entry.name);
        assert_eq!(congestion(&mut host, fd), entry.name);
    }
    // With its zero and what is behind it, as C programs give it.
    assert_eq!(choose(&mut host, fd, b"vegas\0cubic"), Ok(()));
    for (name, error) in [
        (&b"cubik"[..], ENOENT),
        (b"sack", ENOENT),
        (b"ltcp(wt=9)", ENOENT),
        (b"no-congestion-control", ENOENT),
        (b"\0", ENOENT),
        (b"caf\xe9", ENOENT),
        (b"", EINVAL),
    ] {
        assert_eq!(choose(&mut host, fd, name), failed(error), "{name:?}");
    }
    assert_eq!(congestion(&mut host, fd), "vegas", "what is refused changes nothing");
}

/// RFC 5681 halves what is in flight at a loss, RFC 9438 leaves seven tenths of it: ssthresh shows which one is at work.
#[test]
fn a_live_connection_exchanges_its_controller() {
    for (name, ssthresh) in [("reno", 5), ("cubic", 7)] {
        let mut host = host(support::LOCAL);
        let (fd, mut peer) = accepted(&mut host);
        choose(&mut host, fd, name.as_bytes()).unwrap();
        assert_eq!(congestion(&mut host, fd), name);
        assert_eq!(choose(&mut host, fd, b"nothing"), failed(ENOENT));
        host.write(fd, &[0; 50_000]).unwrap();
        assert_eq!(drain(&mut host).len(), 10, "the initial window (RFC 6928)");
        // The first segment is lost, and three that followed it say so.
        for _ in 0..3 {
            peer.send(&mut host, Flags::ACK, b"");
        }
        assert_eq!(host.tcp_info(fd).unwrap().tcpi_snd_ssthresh, ssthresh, "{name}");
    }
}

#[test]
fn an_accepted_connection_has_its_listeners_controller() {
    let mut host = host(support::LOCAL);
    let listener = socket(&mut host);
    host.bind(listener, at("0.0.0.0:80")).unwrap();
    host.listen(listener, 1).unwrap();
    // One that counts on pacing brings it.
    choose(&mut host, listener, b"bbr").unwrap();
    let mut peer = support::peer(40_000, 80);
    peer.send(&mut host, Flags::SYN, b"");
    let syn_ack = only(&mut host);
    peer.take(&[syn_ack]);
    peer.send(&mut host, Flags::ACK, b"");
    let (fd, _) = host.accept(listener, 0).unwrap();
    assert_eq!(congestion(&mut host, fd), "bbr");
    choose(&mut host, fd, b"ltcp").unwrap();
    assert_eq!(congestion(&mut host, fd), "ltcp");
    assert_eq!(congestion(&mut host, listener), "bbr");
}

#[test]
fn a_receive_buffer_without_window_scaling_is_no_larger_than_a_window() {
    let mut host = host_with(support::LOCAL, |config| {
        let mut profile: Profile = config.profile.as_ref().clone();
        profile.options = profile.options.with_window_scale(false);
        let flow = ReceiveWindowConfig::new(30_000, 65_535);
        profile.flow = FlowChoice::ReceiveWindow(flow);
        config.profile = profile.into();
    });
    let fd = socket(&mut host);
    set(&mut host, fd, SOL_SOCKET, SO_RCVBUF, 1_000_000).unwrap();
    assert_eq!(host.connect(fd, at("192.0.2.2:80")), failed(EINTR));
    assert_eq!(only(&mut host).header.window, 65_535);
}

/// [SHLD-9]
#[test]
fn tcp_info_follows_a_connection() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    assert_eq!(host.tcp_info(fd).unwrap().tcpi_state, TCP_CLOSE);
    let _ = host.connect(fd, at("192.0.2.2:80"));
    assert_eq!(host.tcp_info(fd).unwrap().tcpi_state, TCP_SYN_SENT);
    let syn = only(&mut host);
    let mut peer = support::peer(80, syn.header.src_port);
    let stamps = syn.header.options.timestamps.expect("timestamps are offered");
    peer.take(&[syn]);
    host.run_to(Instant::from_millis(200)).unwrap();
    let syn_ack = TcpHeader {
        options: Options {
            mss: Some(1000),
            sack_permitted: true,
            window_scale: Some(3),
            timestamps: Some(Timestamps { value: 1, echo: stamps.value }),
            ..Options::default()
        },
        ..peer.header(Flags::SYN | Flags::ACK)
    };
    host.inject(host.now(), &peer.packet(&syn_ack, b"")).unwrap();
    drain(&mut host);
    host.write(fd, &[0; 2000]).unwrap();
    let info = host.tcp_info(fd).unwrap();
    assert_eq!(info.tcpi_state, TCP_ESTABLISHED);
    assert_eq!(info.tcpi_options, TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE);
    assert_eq!(info.tcpi_wscale & 15, 3, "the peer's scale");
    // The MSS less the timestamps option: 12 bytes.
    assert_eq!((info.tcpi_snd_mss, info.tcpi_pmtu), (988, 1500));
    // RFC 6298 (2.2): SRTT = R, RTTVAR = R/2, RTO = R + 4·R/2.
    assert_eq!((info.tcpi_rtt, info.tcpi_rttvar, info.tcpi_min_rtt), (200_000, 100_000, 200_000));
    assert_eq!(info.tcpi_rto, 600_000);
    // RFC 6928: ten segments.
    assert_eq!((info.tcpi_snd_cwnd, info.tcpi_snd_ssthresh), (10, 0x7fff_ffff));
    let sent = drain(&mut host);
    let bytes: usize = sent.iter().map(|seen| seen.payload.len()).sum();
    assert_eq!(info.tcpi_unacked as usize, sent.len());
    assert_eq!(info.tcpi_notsent_bytes as usize, 2000 - bytes);
    host.run_to(host.now() + ms(600)).unwrap();
    let info = host.tcp_info(fd).unwrap();
    assert_eq!((info.tcpi_ca_state, info.tcpi_retransmits, info.tcpi_total_retrans), (4, 1, 1));
    assert_eq!((info.tcpi_snd_cwnd, info.tcpi_rto), (1, 1_200_000), "RFC 5681 and RFC 6298 (5.5)");

    let listener = socket(&mut host);
    host.listen(listener, 7).unwrap();
    let info = host.tcp_info(listener).unwrap();
    assert_eq!((info.tcpi_state, info.tcpi_unacked, info.tcpi_sacked), (TCP_LISTEN, 0, 7));
}

/// Linux 6.18's fields of accurate ECN (RFC 9768).
#[test]
fn tcp_info_has_the_counts_of_accurate_ecn() {
    let mut host = host_with(support::LOCAL, |config| {
        config.profile = compose("reno + sack + accecn").unwrap().into();
    });
    let fd = socket(&mut host);
    let _ = host.connect(fd, at("192.0.2.2:80"));
    let syn = only(&mut host);
    let mut peer = support::peer(80, syn.header.src_port);
    peer.take(&[syn]);
    let counters = AccEcnCounters { ect0: 1, ce: 0, ect1: 1 };
    let option = |counters| Some(AccEcn::new(AccEcnOrder::Ect0First, counters, 3));
    let options = Options { mss: Some(1000), acc_ecn: option(counters), ..Options::default() };
    // The field ACE is AE, CWR and ECE: 0b010, and later 0b110.
    let flags = Flags::SYN | Flags::ACK | Flags::CWR;
    let syn_ack = TcpHeader { options, ..peer.header(flags) };
    host.inject(host.now(), &peer.packet(&syn_ack, b"")).unwrap();
    drain(&mut host);
    let info = host.tcp_info(fd).unwrap();
    assert_eq!((info.tcpi_accecn_opt_seen, info.tcpi_accecn_fail_mode), (2, 0));
    host.write(fd, &[0; 1500]).unwrap();
    let sent = drain(&mut host);
    peer.take(&sent);
    // Of 1500 bytes, 900 arrived as ECT(0) and 600 marked; and 7 arrive here marked, 5 as ECT(1).
    let counters = AccEcnCounters { ect0: 901, ce: 600, ect1: 1 };
    for (payload, codepoint) in [(&b"sevenths"[..7], Ecn::Ce), (b"fives", Ecn::Ect1)] {
        let header = peer.header(Flags::ACK | Flags::AE | Flags::CWR);
        let options = Options { acc_ecn: option(counters), ..Options::default() };
        let mut packet = peer.packet(&TcpHeader { options, ..header }, payload);
        set_ecn(&mut packet, codepoint).unwrap();
        host.inject(host.now(), &packet).unwrap();
        peer.seq += payload.len() as u32;
    }
    let info = host.tcp_info(fd).unwrap();
    assert_eq!((info.tcpi_delivered_ce, info.tcpi_received_ce), (1, 1));
    assert_eq!((info.tcpi_delivered_e0_bytes, info.tcpi_delivered_ce_bytes), (900, 600));
    assert_eq!((info.tcpi_received_ce_bytes, info.tcpi_received_e1_bytes), (7, 5));
    assert_eq!((info.tcpi_delivered_e1_bytes, info.tcpi_received_e0_bytes), (0, 0));
}

#[test]
fn a_closed_side_shows_in_tcp_info() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    host.shutdown(fd, SHUT_WR).unwrap();
    assert_eq!(host.tcp_info(fd).unwrap().tcpi_state, TCP_FIN_WAIT1);
    peer.take(&drain(&mut host));
    peer.send(&mut host, Flags::ACK, b"");
    assert_eq!(host.tcp_info(fd).unwrap().tcpi_state, TCP_FIN_WAIT2);
    peer.send(&mut host, Flags::FIN | Flags::ACK, b"");
    assert_eq!(host.tcp_info(fd).unwrap().tcpi_state, TCP_CLOSE, "TIME-WAIT is the stack's");
    assert_eq!(host.stack().time_wait_count(), 1);
}
