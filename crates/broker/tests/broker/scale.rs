//! Many devices at once.

use std::time::Instant;

use transom_broker::client::{BindOptions, BrokerError, Lease, Wish, bind};
use transom_broker::protocol::ErrorKind;

use crate::support::{BrokerProcess, HOST4, Net, PEER4, at, echoes, frames, until};

/// Several hundred devices at once. Each has its port, and all of them go.
#[test]
fn hundreds_of_devices_work_at_once() {
    const DEVICES: u16 = 300;
    let Some(net) = Net::new() else { return };
    let rules = format!(
        "[[allow]]\nuser = 0\nports = \"1-65535\"\ndevices = {DEVICES}\nmost-ports = 20000\n"
    );
    // A port of all addresses is at many places.
    const ADDRESSES: u8 = 40;
    for last in 0..ADDRESSES {
        let prefix = format!("198.51.100.{last}/32").parse().unwrap();
        net.host.interfaces().add_address("eth0", prefix).unwrap();
    }
    let broker = BrokerProcess::start(&net, &rules);
    let start = || {
        let mut times = Vec::new();
        let leases = (0..DEVICES).map(|number| {
            let since = Instant::now();
            let mut lease = Lease::connect(net.socket(), &Wish::default()).unwrap();
            let descriptors = lease.take_descriptors();
            times.push(since.elapsed());
            let socket = bind(at("0.0.0.0", 20_000 + number), &BindOptions::default()).unwrap();
            lease.add_port(&socket).unwrap();
            (lease, descriptors, socket)
        });
        let leases: Vec<_> = leases.collect();
        (leases, times)
    };
    let (mut leases, mut times) = net.host.run(start).unwrap();
    let one_more = net
        .host
        .run(|| Lease::connect(net.socket(), &Wish::default()).map(drop))
        .unwrap()
        .unwrap_err();
    let BrokerError::Refused(refused) = one_more else { panic!("{one_more}") };
    assert_eq!(refused.kind, ErrorKind::Limit);
    let first = times[0];
    times.sort_unstable();
    let (median, last) = (times[times.len() / 2], times[times.len() - 1]);
    eprintln!(
        "{DEVICES} devices: the first took {first:?}, half of them {median:?}, the slowest {last:?}"
    );

    // They do not fit in one message.
    let status = net.status();
    assert_eq!(status.leases.len(), usize::from(DEVICES));
    assert!(status.leases.is_sorted_by_key(|lease| lease.index));
    for lease in &status.leases {
        assert_eq!((lease.ports.len(), lease.more_ports), (usize::from(ADDRESSES) + 1, 0));
    }
    let metrics = status.metrics();
    let rows = metrics.lines().filter(|line| line.starts_with("transom_broker_lease_sent_bytes{"));
    assert_eq!(rows.count(), usize::from(DEVICES));

    let tap = frames::Tap::new(&net);
    for number in [0, DEVICES / 2, DEVICES - 1] {
        let to = at(HOST4, 20_000 + number);
        let packet = frames::tcp(at(PEER4, 9), to, frames::ACK, &number.to_be_bytes());
        tap.send(&packet);
        let tun = &leases[usize::from(number)].1[0];
        assert_eq!(frames::until(tun, &packet), [packet]);
    }
    net.kernel_echo(at(HOST4, 80));
    assert!(echoes(&mut net.connect(at(HOST4, 80)).unwrap(), 1_000_000));
    let since = Instant::now();
    leases.clear();
    until("the devices have gone", || {
        net.interfaces().iter().all(|name| !name.starts_with("tcpk"))
    });
    eprintln!("they have gone after {:?}", since.elapsed());
    until("the leases have gone", || net.status().leases.is_empty());
    drop(broker);
}
