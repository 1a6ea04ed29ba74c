//! Captures of transfers between Transom and the kernel, judged by tshark, whose TCP analysis keeps its own books of what each
//! side has sent and acknowledged.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Lab, ROLES, VERSIONS, both_ways, start, tun};
use transom_device::tun::TunOffload;
use transom_device::{Capture, Device, Tapped};
use transom_lab::{Emulated, PathConfig};
use transom_net::Profile;

/// Runs tshark's TCP analysis over a capture, with checksums checked, and returns the frames that `filter` selects.
fn tshark(file: &Path, filter: &str) -> Option<Vec<String>> {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
        // Random bytes look like all sorts of protocols.
        .args(["-d", "tcp.port==5000-5999,data"])
        .args(["-Y", filter])
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: no tshark to judge the capture: {error}");
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark failed: {errors}");
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn none(filter: &str, frames: &[String]) {
    let first: Vec<_> = frames.iter().take(10).map(String::as_str).collect();
    assert!(frames.is_empty(), "{} frames are {filter}:\n{}", frames.len(), first.join("\n"));
}

/// Linux writes a TCP checksum that comes out as zero as 0xFFFF, as UDP has to (`skb_checksum_help`). In ones' complement that is the
/// same number, and tshark marks it as bad: one packet in 65,536 that the kernel has summed itself.
const KERNELS_ZERO: &str =
    "(tcp.checksum == 0xffff && (ip.src == 192.0.2.1 || ipv6.src == 2001:db8::1))";

/// What must not be in the capture of a lossless path: whatever tshark marks as an error or a warning, apart from what
/// `but` allows.
fn nothing_wrong(file: &Path, but: &str) {
    for wrong in [
        "_ws.malformed",
        &format!(
            "(tcp.checksum.status == \"Bad\" && !{KERNELS_ZERO}) || ip.checksum.status == \"Bad\""
        ),
        "tcp.analysis.ack_lost_segment",
        &format!("_ws.expert.severity >= 0x600000 && !({but}) && !{KERNELS_ZERO}"),
    ] {
        let Some(frames) = tshark(file, wrong) else { return };
        none(wrong, &frames);
    }
}

/// Transfers both ways in both roles over both versions behind what `wrap` makes of the TUN device, and captures it.
fn capture(
    file: &Path,
    offload: TunOffload,
    bytes: u64,
    wrap: impl FnOnce(transom_device::tun::Tun) -> Box<dyn Device>,
) -> Option<()> {
    let (namespace, tun) = tun(offload)?;
    let writer = Capture::new(BufWriter::new(File::create(file).unwrap())).unwrap();
    let tapped = Tapped::new(wrap(tun), writer, "transom").unwrap();
    let status = tapped.status();
    let lab = Lab::new(namespace, start(tapped, Profile::classic()), None);
    for version in VERSIONS {
        for role in ROLES {
            both_ways(&lab, version, role, bytes, true, 7);
        }
    }
    assert!(lab.stack.drain(Duration::from_secs(10)), "connections end");
    drop(lab);
    // The writer goes with the last thread of the stack, which ends soon.
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut size = 0;
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
        let now = std::fs::metadata(file).unwrap().len();
        if now == size && now > bytes {
            break;
        }
        size = now;
    }
    assert!(status.error().is_none() && status.packets() > 0);
    Some(())
}

/// What the capture point explains: it lies between Transom and a device that hands over merged and not yet cut segments in
/// batches, so the kernel's answers to the first half of a batch are captured behind all of it. Nothing of that is an
/// error of either TCP.
const OUT_OF_STEP: &str = "tcp.analysis.out_of_order";

/// What each side sends in a lossless transfer.
const BYTES: u64 = 4 << 20;

fn lossless(offload: TunOffload) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lossless.pcapng");
    if capture(&file, offload, BYTES, |tun| Box::new(tun)).is_none() {
        return;
    }
    // A reader that is slower than the path fills its window, and says so; and the kernel, when its acknowledgements come late,
    // sends a loss probe, which is answered with a D-SACK. If the kernel repeats its FIN because our ACK came late, TIME-WAIT sends
    // another ACK. By then the kernel has closed, and resets behind its FIN (RFC 9293 section 3.10.7.1).
    let after_fin = BYTES + 2;
    let closed = format!(
        "((ip.src == 192.0.2.1 || ipv6.src == 2001:db8::1) && tcp.flags == 0x004 && tcp.seq == {after_fin})"
    );
    let slow = "tcp.analysis.zero_window || tcp.analysis.window_full || tcp.options.sack.dsack";
    nothing_wrong(&file, &format!("{slow} || {closed}"));
    // Transom sends nothing twice. (The kernel's loss probes are its own affair, and so is the first SYN over IPv6, which the
    // kernel ignores while the interface is new.)
    let ours = "(ip.src == 192.0.2.2 || ipv6.src == 2001:db8::2) && tcp.flags.syn == 0";
    let filter = format!("({ours}) && (tcp.analysis.retransmission || {OUT_OF_STEP})");
    let Some(frames) = tshark(&file, &filter) else { return };
    none(&filter, &frames);
}

#[test]
fn a_lossless_capture_is_flawless() {
    lossless(TunOffload::Segmentation);
}

#[test]
fn a_lossless_capture_without_offload_is_flawless() {
    lossless(TunOffload::None);
}

#[test]
fn a_capture_of_a_bad_path_has_no_impossible_packets() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lossy.pcapng");
    let path = PathConfig {
        egress: "delay=3ms, loss=1%, duplicate=1%, reorder=1% by 4ms".parse().unwrap(),
        ingress: "delay=3ms, duplicate=1%, reorder=1% by 4ms".parse().unwrap(),
        seed: 5,
    };
    let wrap = |tun| Box::new(Emulated::new(tun, &path).unwrap()) as Box<dyn Device>;
    if capture(&file, TunOffload::Segmentation, 1 << 20, wrap).is_none() {
        return;
    }
    for wrong in [
        "_ws.malformed",
        "tcp.checksum.status == \"Bad\" || ip.checksum.status == \"Bad\"",
        // Transom acknowledges only what has passed the capture point.
        "tcp.analysis.ack_lost_segment && (ip.src == 192.0.2.2 || ipv6.src == 2001:db8::2)",
    ] {
        let Some(frames) = tshark(&file, wrong) else { return };
        none(wrong, &frames);
    }
}
