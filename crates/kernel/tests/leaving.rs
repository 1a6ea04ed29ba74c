//! Sockets go back to what they had, however the process that runs the extensions ends.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Net, Sender, Socket, at_most_segments, controllers, until};

fn under_control(net: &Net) -> bool {
    net.socket().is_some_and(|socket| socket.algorithm.starts_with("transom_"))
}

#[test]
fn detached_sockets_have_their_algorithm_again() {
    let Some(net) = Net::new() else { return };
    if !net.shape(20_000) {
        return;
    }
    let sink = net.sink();
    let _sender = net.sender(&sink, true);
    until("it sends", || sink.taken() > 100_000);
    // It is there before the extensions are.
    let host = net.attach(&[at_most_segments(4)], true);
    until("the connection is under control", || under_control(&net));
    until("it has little in flight", || net.socket().is_some_and(|socket| socket.unacked <= 4));
    let name = host.report().controller;
    assert!(controllers().contains(&name));
    drop(host);
    let socket = net.socket().expect("it goes on");
    assert_eq!(socket.algorithm, "reno");
    assert!(!controllers().contains(&name), "{}", controllers());
    until("more in flight", || net.socket().is_some_and(|socket| socket.unacked > 16));
}

/// An idle connection has no acknowledgement that would bring it back.
#[test]
fn idle_sockets_go_back_too() {
    let Some(net) = Net::new() else { return };
    let sink = net.sink();
    let sender = net.sender(&sink, true);
    until("it sends", || sink.taken() > 0);
    let host = net.attach(&[at_most_segments(4)], true);
    until("the connection is under control", || under_control(&net));
    sender.stop();
    until("nothing is in flight", || net.socket().is_some_and(|socket| socket.unacked == 0));
    drop(host);
    assert_eq!(net.socket().expect("it goes on").algorithm, "reno");
}

/// A connection with much to send, and the process whose extension allows it two segments.
struct Held {
    holder: Child,
    _sender: Sender,
    net: Net,
}

impl Held {
    fn new() -> Option<Self> {
        let net = Net::new()?;
        if !net.shape(20_000) {
            return None;
        }
        let sink = net.sink();
        let sender = net.sender(&sink, true);
        until("it sends", || sink.taken() > 100_000);
        let held = Held { holder: net.holder("2"), _sender: sender, net };
        held.is_narrow();
        Some(held)
    }

    fn is_narrow(&self) {
        until("the connection is under control", || under_control(&self.net));
        until("it has little in flight", || {
            self.net.socket().is_some_and(|socket| socket.unacked <= 2)
        });
    }

    fn is_plain(&self) {
        let so = |what: fn(&Socket) -> bool| self.net.socket().is_some_and(|socket| what(&socket));
        until("more in flight", || so(|socket| socket.unacked > 16));
        until("its own algorithm", || so(|socket| socket.algorithm == "reno"));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Killed: limits expire, the controller goes, and the sockets have their own again.
#[test]
fn nothing_is_left_of_a_killed_process() {
    let Some(mut held) = Held::new() else { return };
    let name = held.net.socket().unwrap().algorithm;
    held.holder.kill().unwrap();
    held.holder.wait().unwrap();
    held.is_plain();
    assert!(!controllers().contains(&name), "{}", controllers());
}

/// Stopped for long: the same. When it goes on, so does control.
#[test]
fn a_stopped_process_holds_nobody_back() {
    let Some(held) = Held::new() else { return };
    let pid = Pid::from_child(&held.holder);
    kill_process(pid, Signal::STOP).unwrap();
    held.is_plain();
    kill_process(pid, Signal::CONT).unwrap();
    held.is_narrow();
}
