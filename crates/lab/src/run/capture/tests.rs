//! What is captured, read back by tshark where there is one.

mod comments;

use super::super::{Observations, RunOptions, files, simulate};
use super::*;
use crate::scenario::Scenario;
use std::fs;
use std::process::Command;
use transom_sim::link::Counters;
use transom_tcp::time::Duration;

/// Two flows, one of them UDP, over a link with `options`, of which there are captures.
fn scenario(options: &str) -> Resolved {
    let text = format!(
        r#"
[scenario]
name = "captured"
duration = "3s"
[hosts.a]
[hosts.b]
[routers.middle]
[[links]]
name = "path"
from = "a"
to = "middle"
rate = "5Mbit/s"
delay = "10ms"
{options}
[[links]]
from = "middle"
to = "b"
[[flows]]
name = "file"
from = "a"
to = "b"
kind = "transfer"
size = "300kB"
[[flows]]
name = "datagrams"
from = "b"
to = "a"
kind = "on-off-udp"
rate = "200kbit/s"
stop = "2s"
[measure]
capture = ["path"]
"#
    );
    let scenario = Scenario::parse("captured.toml", &text).unwrap_or_else(|one| panic!("{one}"));
    scenario.sweep().next().unwrap().resolved
}

fn run(scenario: &Resolved, directory: &Path) -> Observations {
    let options = RunOptions { output: Some(directory), ..RunOptions::new(Path::new("")) };
    simulate(scenario, 1, options, |_, _| true).unwrap().unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const FILES: [&str; 2] = ["capture-path@a.pcapng", "capture-path@middle.pcapng"];

/// What tshark prints, a line for each packet that `filter` lets through, with all checksums verified.
fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-n", "-Y", filter, "-T", "fields"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    for layer in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{layer}.check_checksum:TRUE")]);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: no tshark to read the capture with: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect())
}

const WRONG: &str = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || \
                     udp.checksum.status == 0";

/// Both ways of the captured link, at the end.
fn counters(seen: &Observations) -> [Counters; 2] {
    [false, true].map(|back| {
        let link = seen.links.iter().find(|one| one.name.as_str() == "path" && one.back == back);
        link.unwrap().samples.last().unwrap().counters
    })
}

#[test]
fn every_packet_is_there_both_ways_and_sound() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = scenario("loss = \"2%\"\nduplicate = \"1%\"\nreorder = \"1% by 5ms\"");
    let [there, back] = counters(&run(&scenario, directory.path()));
    assert_eq!(names(directory.path()), FILES);
    assert!(there.lost.packets > 0 && there.duplicated.packets > 0, "{there:?}");
    for (file, out, inwards) in [(FILES[0], there, back), (FILES[1], back, there)] {
        let file = directory.path().join(file);
        let Some(wrong) = tshark(&file, WRONG, &["frame.number"]) else { return };
        assert!(wrong.is_empty(), "{wrong:?}");
        let all = tshark(&file, "tcp || udp", &["frame.packet_flags_direction", "frame.len"]);
        let count = |direction: &str| {
            let lines = all.iter().flatten().filter_map(|line| line.split_once('\t'));
            let ours = lines
                .filter(|(flags, _)| u32::from_str_radix(&flags[2..], 16) == direction.parse());
            let lens: Vec<u64> = ours.map(|(_, len)| len.parse().unwrap()).collect();
            (lens.len() as u64, lens.iter().sum::<u64>())
        };
        assert_eq!(count("2"), (out.offered.packets, out.offered.bytes));
        assert_eq!(count("1"), (inwards.delivered.packets, inwards.delivered.bytes));
        let names = tshark(&file, "frame.number == 1", &["frame.interface_name"]).unwrap();
        let end = if inwards == back { "a" } else { "middle" };
        assert_eq!(names, [format!("path at {end}")]);
    }
    // The SYN leaves at the start, and is there after 60 bytes at 5 Mbit/s and 10 ms.
    for (file, nanos) in [(FILES[0], "0.000000000"), (FILES[1], "0.010096000")] {
        let filter = "tcp.flags.syn == 1 && tcp.flags.ack == 0";
        let Some(times) = tshark(&directory.path().join(file), filter, &["frame.time_epoch"])
        else {
            return;
        };
        assert!(times[0].contains(nanos), "{times:?}");
    }
}

#[test]
fn damage_shows_where_it_has_been_done() {
    let directory = tempfile::tempdir().unwrap();
    let seen = run(&scenario("there.corrupt = \"3%\""), directory.path());
    let [there, _] = counters(&seen);
    assert!(there.corrupted > 3, "{there:?}");
    // One bit is always seen, if not as a wrong checksum then as something that is no packet of ours any more.
    let strange = format!("{WRONG} || !(tcp || udp) || ip.version != 4");
    let Some(sent) = tshark(&directory.path().join(FILES[0]), &strange, &["frame.number"]) else {
        return;
    };
    assert!(sent.is_empty(), "{sent:?}");
    let come = tshark(&directory.path().join(FILES[1]), &strange, &["frame.number"]).unwrap();
    assert_eq!(come.len() as u64, there.corrupted);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let scenario = scenario("loss = \"1%\"\njitter = \"uniform(3ms)\"");
    let capture = || {
        let directory = tempfile::tempdir().unwrap();
        let seen = run(&scenario, directory.path());
        (FILES.map(|file| fs::read(directory.path().join(file)).unwrap()), seen)
    };
    let (first, seen) = capture();
    assert!(first.iter().all(|bytes| bytes.len() > 300_000));
    assert_eq!(first, capture().0);
    // And capturing changes nothing.
    let options = RunOptions::new(Path::new(""));
    assert_eq!(simulate(&scenario, 1, options, |_, _| true).unwrap().unwrap(), seen);
}

#[test]
fn an_incomplete_capture_is_not_left() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = scenario("");
    let options = RunOptions { output: Some(directory.path()), ..RunOptions::new(Path::new("")) };
    let seen = simulate(&scenario, 1, options, |reached, _| {
        assert_eq!(names(directory.path()).len(), 2);
        reached < Duration::from_secs(1)
    });
    assert!(seen.unwrap().is_none());
    assert!(names(directory.path()).is_empty());
}

#[test]
fn a_file_that_cannot_be_written_is_lost_and_nothing_else() {
    let scenario = scenario("");
    let missing = RunOptions {
        output: Some(Path::new("/nonexistent/directory")),
        ..RunOptions::new(Path::new(""))
    };
    let error = simulate(&scenario, 1, missing, |_, _| true).unwrap_err().to_string();
    assert!(
        error.starts_with("/nonexistent/directory/capture-path@a.pcapng cannot be written: "),
        "{error}"
    );
    // A device that is always full, behind the name that is going to be written to.
    let directory = tempfile::tempdir().unwrap();
    let full = directory.path().join(format!("{}.unfinished", FILES[0]));
    if !Path::new("/dev/full").exists() || std::os::unix::fs::symlink("/dev/full", &full).is_err() {
        eprintln!("SKIPPED: no device that is always full");
        return;
    }
    let options = RunOptions { output: Some(directory.path()), ..RunOptions::new(Path::new("")) };
    let seen = simulate(&scenario, 1, options, |_, _| true).unwrap().unwrap();
    let [lost] = &seen.lost[..] else { panic!("{:?}", seen.lost) };
    assert!(lost.starts_with(&format!("{} cannot be written: No space left", FILES[0])), "{lost}");
    assert_eq!(names(directory.path()), FILES[1..]);
    assert_eq!(files(&scenario).collect::<Vec<_>>(), FILES);
    // All else is as it would have been.
    let whole = tempfile::tempdir().unwrap();
    assert_eq!(Observations { lost: Vec::new(), ..seen }, run(&scenario, whole.path()));
}
