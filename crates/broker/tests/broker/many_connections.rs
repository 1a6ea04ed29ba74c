//! Many connections, and those of processes that have ended.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use transom_broker::protocol::{self, ErrorKind, Reply, Request};

use crate::support::many_users::connections;
use crate::support::wire;
use crate::support::{BrokerProcess, Crowd, Holder, NOBODY, Net, until};

const RULES: &str = "most-devices = 1\n[[allow]]\neverybody = true\n";

fn open() -> Request {
    Request::Open { name: "x".into(), queues: 1 }
}

fn ask(connection: &OwnedFd, request: &Request) -> Result<(Reply, Vec<OwnedFd>), ErrorKind> {
    wire::send(connection, &protocol::write_request(request), &[]).unwrap();
    let (bytes, descriptors) = wire::receive(connection).unwrap().expect("an answer");
    let reply = Reply::try_from(&bytes[..]).map_err(|refused| refused.kind)?;
    Ok((reply, descriptors))
}

/// Otherwise the lease would be the next process' that gets the number.
#[test]
fn a_lease_belongs_to_the_process_that_connected() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let mut holder = Holder::start(&net, NOBODY);
    let (one, other) = (holder.open_connection(), holder.open_connection());
    // The test has the connection. The lease is that of the process that connected, and ends with it.
    let (reply, _device) = ask(&one, &open()).unwrap();
    assert!(matches!(reply, Reply::Opened(_)));
    assert_eq!(net.status().leases[0].process, holder.id());
    holder.kill();
    until("the lease has ended", || net.status().leases.is_empty());
    assert_eq!(ask(&other, &open()).unwrap_err(), ErrorKind::Denied);
}

#[test]
fn the_policy_limits_the_devices_of_all_users() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (one, other) = (Holder::start(&net, NOBODY), Holder::start(&net, 1234));
    one.open().unwrap();
    let error = other.open().map(drop).unwrap_err();
    assert!(error.contains("Limit"), "{error}");
}

/// Connections of many users: each has so many, all of them together have so many, and root is still heard.
#[test]
fn root_can_connect_when_other_users_have_all_connections() {
    const USERS: u32 = 36;
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    // Root is the one that asks.
    let Some(crowd) = Crowd::come(&net, USERS) else { return };
    drop(crowd);
    until("there is room again", || connections(&net) == 1);
}

/// Without a pause it would ask for the same connection again and again.
#[test]
fn a_broker_without_free_descriptors_does_not_spin() {
    let Some(net) = Net::new() else { return };
    let broker = BrokerProcess::start(&net, RULES);
    let process = Pid::from_raw(broker.id() as i32);
    let limit = |current| {
        let limit = Rlimit { current: Some(current), ..getrlimit(Resource::Nofile) };
        prlimit(process, Resource::Nofile, limit).unwrap();
    };
    let open = std::fs::read_dir(format!("/proc/{}/fd", broker.id())).unwrap().count() as u64;
    limit(open);
    let waiting: Vec<_> = (0..10).map(|_| wire::connect(&net.socket()).unwrap()).collect();
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", broker.id())).unwrap();
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(2));
    // Of the two hundred that a second has twice.
    assert!(ticks() - before < 40, "{} ticks", ticks() - before);
    limit(1000);
    let list = Request::List { after: 0 };
    for connection in &waiting {
        assert!(matches!(ask(connection, &list), Ok((Reply::Leases(_), _))));
    }
}
