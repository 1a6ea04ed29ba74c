use super::*;

const CONFIG: FastOpenConfig =
    FastOpenConfig { key_lifetime: Duration::from_secs(100), servers: 2 };

fn flow(remote: &str) -> FlowKey {
    FlowKey::new("10.0.0.1:80".parse().unwrap(), remote.parse().unwrap())
}

fn at(secs: u64) -> Instant {
    Instant::from_secs(secs)
}

#[test]
fn a_cookie_is_good_for_its_client_and_two_lifetimes() {
    let secrets = Secrets::new([7; 16]);
    let key = flow("10.0.0.2:4000");
    let cookie = make(&secrets, &CONFIG, &key, at(150)).unwrap();
    assert_eq!(cookie.as_slice().len(), 8);
    let judged =
        |key: &FlowKey, cookie: &FastOpen, secs| check(&secrets, &CONFIG, key, cookie, at(secs));
    assert_eq!(judged(&key, &cookie, 199), Verdict::Valid);
    assert_eq!(judged(&key, &cookie, 200), Verdict::Old);
    assert_eq!(judged(&key, &cookie, 299), Verdict::Old);
    assert_eq!(judged(&key, &cookie, 300), Verdict::Unknown);
    assert_eq!(judged(&key, &cookie, 50), Verdict::Unknown, "a key of the future");
    // Any port of the client's, but no other address, and none of ours that it was not given for.
    assert_eq!(judged(&flow("10.0.0.2:4001"), &cookie, 150), Verdict::Valid);
    assert_eq!(judged(&flow("10.0.0.3:4000"), &cookie, 150), Verdict::Unknown);
    let other = FlowKey::new("10.0.0.9:80".parse().unwrap(), key.remote());
    assert_eq!(judged(&other, &cookie, 150), Verdict::Unknown);
    // One bit, another length, another host's secret.
    let mut bytes = [0; 8];
    bytes.copy_from_slice(cookie.as_slice());
    for bit in 0..64 {
        let mut forged = bytes;
        forged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(judged(&key, &FastOpen::new(&forged).unwrap(), 150), Verdict::Unknown);
    }
    for len in [4, 6, 10, 16] {
        let forged: std::vec::Vec<u8> = bytes.iter().copied().cycle().take(len).collect();
        assert_eq!(judged(&key, &FastOpen::new(&forged).unwrap(), 150), Verdict::Unknown);
    }
    assert_eq!(check(&Secrets::new([8; 16]), &CONFIG, &key, &cookie, at(150)), Verdict::Unknown);
}

fn servers() -> Servers {
    Servers::new(CONFIG.servers, KeyedHash::new([1, 2]))
}

fn given(byte: u8) -> FastOpenOutcome {
    let cookie = FastOpen::new(&[byte; 4]);
    FastOpenOutcome { cookie, mss: 1400, requested: true, lost: false, refused: false }
}

#[test]
fn cookies_belong_to_addresses_and_refusals_to_ports() {
    let mut servers = servers();
    let (web, other) = (flow("192.0.2.1:80"), flow("192.0.2.1:81"));
    assert_eq!(servers.option_for(&web, at(0)), Some((FastOpen::REQUEST, 0)));
    servers.learn(&web, given(1), at(0));
    let known = Some((FastOpen::new(&[1; 4]).unwrap(), 1400));
    assert_eq!(
        (servers.option_for(&web, at(1)), servers.option_for(&other, at(1))),
        (known, known)
    );
    // A SYN with the option was lost: not to this port for a minute, then two.
    let lost =
        FastOpenOutcome { cookie: None, mss: 1400, requested: false, lost: true, refused: false };
    servers.learn(&web, lost, at(10));
    assert_eq!(
        (servers.option_for(&web, at(69)), servers.option_for(&other, at(69))),
        (None, known)
    );
    assert_eq!(servers.option_for(&web, at(70)), known);
    servers.learn(&web, lost, at(70));
    assert_eq!(servers.option_for(&web, at(189)), None);
    assert_eq!(servers.option_for(&web, at(190)), known);
    // It works again: the next refusal is the first. A new segment size is kept.
    let works = FastOpenOutcome { lost: false, mss: 1300, ..lost };
    servers.learn(&web, works, at(200));
    servers.learn(&web, lost, at(200));
    assert_eq!(servers.option_for(&web, at(260)).unwrap().1, 1300);
    // For ever is an hour or so.
    for _ in 0..40 {
        servers.learn(&web, lost, at(1000));
    }
    assert_eq!(servers.option_for(&web, at(1000 + 3839)), None);
    assert!(servers.option_for(&web, at(1000 + 3840)).is_some());
}

#[test]
fn a_server_that_takes_no_data_is_not_tried_again_at_once() {
    let mut servers = servers();
    let web = flow("192.0.2.1:80");
    servers.learn(&web, given(1), at(0));
    let known = servers.option_for(&web, at(1));
    assert!(known.is_some());
    let refused = FastOpenOutcome { cookie: None, requested: false, refused: true, ..given(1) };
    servers.learn(&web, refused, at(5));
    assert_eq!(servers.option_for(&web, at(64)), None);
    assert_eq!(servers.option_for(&web, at(65)), known, "its cookie is kept for that");
    servers.learn(&web, refused, at(65));
    assert_eq!(servers.option_for(&web, at(184)), None, "twice as long");
}

#[test]
fn a_server_that_gives_no_cookie_is_not_asked_again_at_once() {
    let mut servers = servers();
    let web = flow("192.0.2.1:80");
    servers.learn(&web, FastOpenOutcome { cookie: None, ..given(1) }, at(5));
    assert_eq!(servers.option_for(&web, at(64)), None);
    assert_eq!(servers.option_for(&web, at(65)), Some((FastOpen::REQUEST, 0)));
}

#[test]
fn the_least_recently_used_cookie_is_forgotten() {
    let mut servers = servers();
    let place = |n: u8| flow(&std::format!("192.0.2.{n}:80"));
    servers.learn(&place(1), given(1), at(1));
    servers.learn(&place(2), given(2), at(2));
    assert!(!servers.option_for(&place(1), at(3)).unwrap().0.is_request());
    servers.learn(&place(3), given(3), at(4));
    let known =
        |servers: &mut Servers, n| !servers.option_for(&place(n), at(5)).unwrap().0.is_request();
    assert_eq!([1, 2, 3].map(|n| known(&mut servers, n)), [true, false, true]);
    let none = FastOpenOutcome { cookie: None, ..given(1) };
    for n in 4..100 {
        servers.learn(&place(n), none, at(u64::from(n)));
    }
    assert_eq!((servers.cookies.len(), servers.refusals.len()), (2, 2));
}
