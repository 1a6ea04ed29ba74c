//! One user has thousands of subordinate numbers, and takes with them what all users share.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};

use transom_broker::Policy;
use transom_broker::daemon::Daemon;

use crate::support::many_users::connections;
use crate::support::{BrokerProcess, Crowd, HOST4, Holder, NOBODY, Net, at, until};

#[test]
fn users_whom_a_rule_names_connect_when_others_have_all_connections() {
    const USERS: u32 = 40;
    let Some(net) = Net::new() else { return };
    let rules = "most-devices = 4\n[[allow]]\nuser = 65534\nports = \"8000-8999\"\n\
                 [[allow]]\neverybody = true\n";
    let _broker = BrokerProcess::start(&net, rules);
    let Some(crowd) = Crowd::come(&net, USERS) else { return };
    let holder = Holder::start(&net, NOBODY);
    let _device = holder.open().unwrap();
    holder.bind(at(HOST4, 8000)).unwrap();
    drop(crowd);
    until("there is room again", || connections(&net) == 2);
    // Devices: the last quarter is not for everybody.
    let others: Vec<_> = (0..3).map(|user| Holder::start(&net, 200_000 + user)).collect();
    let opened: Vec<_> = others.iter().map(|holder| holder.open().is_ok()).collect();
    assert_eq!(opened, [true, true, false]);
    let named = Holder::start(&net, NOBODY);
    named.open().unwrap();
}

/// However many ports and connections there were.
#[test]
fn the_end_of_a_lease_is_one_line_of_the_log() {
    let Some(net) = Net::new() else { return };
    let mut broker = BrokerProcess::start(&net, "[[allow]]\nuser = 65534\nports = \"8000-8999\"\n");
    let lines = |event: &str| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(net.directory.path().join("audit.log")).unwrap();
        let lines =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.filter(|line| line["event"] == event).collect()
    };
    let mut holder = Holder::start(&net, NOBODY);
    let _device = holder.open().unwrap();
    for port in 0..20 {
        holder.bind(at("::", 8000 + port)).unwrap();
    }
    holder.kill();
    until("the lease has ended", || net.status().leases.is_empty());
    let ends = lines("lease-end");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!((&ends[0]["ports"], &ends[0]["connections"]), (&40.into(), &0.into()));
    assert_eq!(lines("port-end").len(), 0);
    assert_eq!(lines("port").len(), 20);
    // A policy that takes all ports away.
    let holder = Holder::start(&net, NOBODY);
    let _device = holder.open().unwrap();
    for port in 0..20 {
        holder.bind(at("::", 8100 + port)).unwrap();
    }
    broker.kill();
    let _broker = BrokerProcess::start(&net, "[[allow]]\nuser = 65534\nephemeral = false\n");
    let ends = lines("port-end");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0]["ports"], 40);
}

/// A process of an ordinary user, until it is dropped.
struct OtherUser(Child);

impl Drop for OtherUser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn as_nobody(program: &str, arguments: &[&std::ffi::OsStr]) -> Child {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    command.args(arguments).uid(NOBODY).gid(NOBODY);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Another user's lock does not keep the broker from starting: nobody else can open the file.
#[test]
fn no_other_user_can_lock_the_lock_file() {
    let Some(net) = Net::new() else { return };
    let rules = "[[allow]]\neverybody = true\n";
    let mut broker = BrokerProcess::start(&net, rules);
    let lock = net.directory.path().join("broker.sock.lock");
    assert_eq!(std::fs::metadata(&lock).unwrap().mode() & 0o777, 0o600);
    let mut waiting =
        OtherUser(as_nobody("flock", &[lock.as_ref(), "sleep".as_ref(), "60".as_ref()]));
    let refused = waiting.0.wait().unwrap();
    assert!(!refused.success(), "the other user has opened the lock file");
    broker.kill();
    // A file that an earlier version has left open for everybody, and that somebody has locked.
    std::fs::set_permissions(&lock, PermissionsExt::from_mode(0o644)).unwrap();
    let locked = OtherUser(as_nobody("flock", &[lock.as_ref(), "sleep".as_ref(), "60".as_ref()]));
    until("the other user has locked it", || {
        let file = std::fs::File::open(&lock).unwrap();
        let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&file, operation) == Err(rustix::io::Errno::WOULDBLOCK)
    });
    let _broker = BrokerProcess::start(&net, rules);
    assert_eq!(std::fs::metadata(&lock).unwrap().mode() & 0o777, 0o600);
    drop(locked);
    // One that runs keeps others out all the same.
    let policy: Policy = "uplinks = [\"eth0\"]\n".parse().unwrap();
    let second = net.host.run(|| Daemon::start(policy, &net.socket(), &net.pins())).unwrap();
    assert!(second.unwrap_err().to_string().contains("already"));
}

/// In a directory where others can write, root changes nothing that their names lead to.
#[test]
fn a_broker_in_a_shared_directory_follows_no_links() {
    let Some(net) = Net::new() else { return };
    let directory = net.directory.path();
    let precious = directory.join("precious");
    for suffix in [".lock", ".lo", ".quarantine"] {
        std::fs::write(&precious, "0").unwrap();
        let mut name = net.socket().into_os_string();
        name.push(suffix);
        symlink(&precious, &name).unwrap();
        let mut broker = BrokerProcess::start(&net, "[[allow]]\neverybody = true\n");
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "0", "{suffix}");
        transom_broker::client::stop(net.socket()).unwrap();
        broker.wait();
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "0", "{suffix}");
        let _ = std::fs::remove_file(&name);
    }
}
