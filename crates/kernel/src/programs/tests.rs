//! The programs by themselves: whatever the table of requests has, they keep to the safe range.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use transom_bpf::libbpf_rs::RingBufferBuilder;
use transom_device::namespace::Namespace;

use super::*;
use crate::layout::{ANY, RECORD, RawEvent, Record, flag};

mod nice;
mod policy;

/// Bytes of a transfer.
const BYTES: usize = 3_000_000;

/// What came of a transfer with such requests in the table.
#[derive(Debug)]
struct Course {
    events: u64,
    /// Events after which the kernel's window had been narrower than TCP's own.
    narrowed: u64,
    most_in_flight: u32,
    most_own: u32,
    /// All events.
    told: Vec<RawEvent>,
}

/// A transfer whose acknowledgements are all reported, over a slow link with a short queue: it has losses.
fn reported() -> Option<Vec<RawEvent>> {
    let asked = |cookie| Request { reported: 0xff, ..Request::none(cookie) };
    Some(transfer_over(Some("rate 40mbit burst 8kb limit 40kb"), asked, true)?.told)
}

fn transfer(asked: impl Fn(u64) -> Request, alive: bool) -> Option<Course> {
    transfer_over(None, asked, alive)
}

fn transfer_over(
    link: Option<&str>,
    asked: impl Fn(u64) -> Request,
    alive: bool,
) -> Option<Course> {
    let types = std::path::Path::new("/sys/kernel/btf/vmlinux");
    if !rustix::process::geteuid().is_root() || !types.exists() {
        eprintln!("SKIPPED: programs in the kernel need root, and its types (BTF)");
        return None;
    }
    let cgroup = Cgroup::create("transom-unit").unwrap();
    let namespace = Namespace::new().unwrap();
    if let Some(link) = link {
        let mut tc = std::process::Command::new("sh");
        tc.arg("-c").arg(format!("ip link set lo mtu 1500 && tc qdisc add dev lo root tbf {link}"));
        let done = namespace.spawn(&mut tc).and_then(|mut child| child.wait());
        if !done.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: tc does not shape the link");
            cgroup.remove(Duration::from_secs(5)).unwrap();
            return None;
        }
    }
    let settings = Settings { connections: 16, in_kernel: None };
    let mut programs = namespace.run(|| Programs::attach(&cgroup, &settings)).unwrap().unwrap();
    let until = if alive { u64::MAX } else { 0 };
    programs.control(&Control { alive_until: until, leave_at: u64::MAX, walk: 0 }).unwrap();
    programs.enter(&cgroup).unwrap();
    let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let sent = namespace.run(|| cgroup.within(|| TcpStream::connect(address))).unwrap();
    let mut sent = sent.unwrap().unwrap();
    let (mut taken, _) = listener.accept().unwrap();
    let local = sent.local_addr().unwrap();
    let records: RefCell<Vec<Record>> = RefCell::default();
    let mut ring = RingBufferBuilder::new();
    let keep = |bytes: &[u8]| {
        records.borrow_mut().extend(bytes.first_chunk::<RECORD>().and_then(Record::read));
        0
    };
    ring.add(&programs.records, keep).unwrap();
    let ring = ring.build().unwrap();
    ring.consume().unwrap();
    let opened = records.borrow_mut().drain(..).find_map(|record| match record {
        Record::Open(opening) if opening.local == local => Some(opening),
        _ => None,
    });
    let opening = opened.expect("it came under control");
    programs.write(opening.slot, &asked(opening.cookie)).unwrap();
    let writer = thread::spawn(move || {
        sent.write_all(&vec![0; BYTES]).unwrap();
        sent
    });
    let mut course =
        Course { events: 0, narrowed: 0, most_in_flight: 0, most_own: 0, told: Vec::new() };
    let mut left = BYTES;
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        left -= taken.read(&mut buffer).unwrap();
        ring.consume().unwrap();
        for record in records.borrow_mut().drain(..) {
            let Record::Event(event) = record else { continue };
            course.events += 1;
            course.told.push(event);
            course.narrowed += u64::from(event.flags & flag::NARROWED != 0);
            course.most_in_flight = course.most_in_flight.max(event.packets_out);
            course.most_own = course.most_own.max(event.segments);
        }
    }
    drop(writer.join().unwrap());
    drop(programs);
    cgroup.remove(Duration::from_secs(5)).unwrap();
    println!("{} events, {} narrowed", course.events, course.narrowed);
    Some(course)
}

/// All in one, as each moves this process into a control group for a moment.
#[test]
fn the_table_of_requests_makes_nothing_wider() {
    let all = |cookie| Request { reported: 0xff, ..Request::none(cookie) };
    let wide = |cookie| Request {
        segments: ANY - 1,
        cwnd_cnt: ANY - 1,
        ssthresh: ANY - 1,
        rate: u64::MAX,
        ..all(cookie)
    };
    let Some(course) = transfer(wide, true) else { return };
    assert!(course.events > 0 && course.narrowed == 0, "{course:?}");
    // The program's own arithmetic has nothing to divide by, whatever is asked.
    let nothing =
        |cookie| Request { segments: 2, cwnd_cnt: 0, ssthresh: 0, rate: 0, ..all(cookie) };
    let course = transfer(nothing, true).unwrap();
    assert!(course.narrowed > 0 && course.most_in_flight <= 3, "{course:?}");
    // For another socket, and of somebody who has gone.
    let narrow = |cookie| Request { segments: 2, ..all(cookie) };
    let course = transfer(|cookie| narrow(cookie + 1), true).unwrap();
    assert_eq!(course.narrowed, 0, "{course:?}");
    let course = transfer(narrow, false).unwrap();
    assert_eq!((course.events, course.narrowed), (0, 0), "{course:?}");
}
