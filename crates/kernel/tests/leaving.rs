//! Sockets go back to what they had, however the process that runs the extensions ends.

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Net, at_most_segments, controllers, until};

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
    host.detach();
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
    host.detach();
    assert_eq!(net.socket().expect("it goes on").algorithm, "reno");
}

/// Killed: limits expire, the controller goes, and the sockets have their own again.
#[test]
fn nothing_is_left_of_a_killed_process() {
    let Some(net) = Net::new() else { return };
    if !net.shape(20_000) {
        return;
    }
    let sink = net.sink();
    let _sender = net.sender(&sink, true);
    until("it sends", || sink.taken() > 100_000);
    let mut holder = net.holder("2");
    until("the connection is under control", || under_control(&net));
    until("it has little in flight", || net.socket().is_some_and(|socket| socket.unacked <= 2));
    let name = net.socket().unwrap().algorithm;
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("more in flight", || net.socket().is_some_and(|socket| socket.unacked > 16));
    until("its own algorithm", || net.socket().is_some_and(|socket| socket.algorithm == "reno"));
    assert!(!controllers().contains(&name), "{}", controllers());
}

/// Stopped for long: the same. When it goes on, so does control.
#[test]
fn a_stopped_process_holds_nobody_back() {
    let Some(net) = Net::new() else { return };
    if !net.shape(20_000) {
        return;
    }
    let sink = net.sink();
    let _sender = net.sender(&sink, true);
    until("it sends", || sink.taken() > 100_000);
    let mut holder = net.holder("2");
    let pid = Pid::from_child(&holder);
    until("the connection is under control", || under_control(&net));
    kill_process(pid, Signal::STOP).unwrap();
    until("more in flight", || net.socket().is_some_and(|socket| socket.unacked > 16));
    until("its own algorithm", || net.socket().is_some_and(|socket| socket.algorithm == "reno"));
    kill_process(pid, Signal::CONT).unwrap();
    until("the connection is under control again", || under_control(&net));
    until("it has little in flight", || net.socket().is_some_and(|socket| socket.unacked <= 2));
    holder.kill().unwrap();
    holder.wait().unwrap();
}
