use super::*;

/// A pcap file of raw IP packets: milliseconds, whether the first end sends, flags, sequence number, acknowledgement, bytes.
fn file(packets: &[(u32, bool, u8, u32, u32, u16)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for &(at, first, flags, seq, ack, len) in packets {
        for word in [at / 1000, at % 1000 * 1000, 40, 40 + u32::from(len)] {
            file.extend(word.to_le_bytes());
        }
        let ports: [u16; 2] = if first { [1000, 80] } else { [80, 1000] };
        let hosts = if first { [1u8, 2] } else { [2, 1] };
        file.extend([0x45, 0]);
        file.extend((40 + len).to_be_bytes());
        file.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, hosts[0], 192, 0, 2, hosts[1]]);
        file.extend(ports.map(u16::to_be_bytes).concat());
        file.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        file.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    }
    file
}

const SYN: u8 = 2;
const ACK: u8 = 16;

/// 2048 bytes in two segments, the second sent twice; the window is always 4096.
fn transfer() -> Capture {
    let file = file(&[
        (0, true, SYN, 9, 0, 0),
        (10, false, SYN | ACK, 99, 10, 0),
        (10, true, ACK, 10, 100, 1024),
        (11, true, ACK, 1034, 100, 1024),
        (20, false, ACK, 100, 1034, 0),
        (40, true, ACK, 1034, 100, 1024),
        (50, false, ACK, 100, 2058, 0),
    ]);
    Capture::read(&file[..]).unwrap()
}

fn finite(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    points.iter().copied().filter(|(_, y)| y.is_finite()).collect()
}

#[test]
fn the_charts_have_the_values_of_the_packets() {
    let one = &transfer().connections[0];
    let section = section(one, 0);
    assert_eq!(section.title, "Connection 1: data from 192.0.2.1:1000 to 192.0.2.2:80");
    let [sequence, windows, rtt, rate] = &section.charts[..] else { panic!() };
    let series = |chart: &Chart, name: &str| {
        let found = chart.series.iter().find(|one| one.name.starts_with(name)).unwrap();
        finite(&found.points)
    };
    let syn = -1.0 / 1024.0;
    let bars = series(sequence, "segments");
    let expected = [
        (0.0, syn),
        (0.0, 0.0),
        (0.01, 0.0),
        (0.01, 1.0),
        (0.011, 1.0),
        (0.011, 2.0),
        (0.04, 1.0),
        (0.04, 2.0),
    ];
    assert_eq!(bars, expected);
    assert_eq!(series(sequence, "acknowledged"), [(0.01, 0.0), (0.02, 1.0), (0.05, 2.0)]);
    assert_eq!(series(sequence, "edge"), [(0.01, 4.0), (0.02, 5.0), (0.05, 6.0)]);
    assert_eq!(sequence.markers[0].name, "sent again");
    assert_eq!(sequence.markers[0].points, [(0.04, 1.0)]);
    assert_eq!(series(windows, "receive window"), [(0.01, 4.0), (0.02, 4.0), (0.05, 4.0)]);
    let flying: Vec<f64> = series(windows, "in flight").iter().map(|(_, y)| *y).collect();
    assert_eq!(flying, [0.0, 1.0, 2.0, 1.0, 1.0, 0.0]);
    assert_eq!(series(rtt, "by Karn"), [(0.01, 10.0), (0.02, 10.0)]);
    // Intervals of a millisecond, since a hundredth of 50 ms is less: 1024 bytes in one of them are 8.192 Mbit/s.
    let sent = series(rate, "sent");
    assert_eq!(sent.len(), 51);
    assert!((sent[40].1 - 8.192).abs() < 1e-9, "{sent:?}");
}

#[test]
fn pages_pictures_and_lists() {
    let capture = transfer();
    let list: Vec<String> = capture.connections.iter().map(ToString::to_string).collect();
    assert_eq!(
        list,
        [
            "1: 192.0.2.1:1000 – 192.0.2.2:80: 7 packets in 0.050 s; 2048 bytes there, 0 back; 1 segments sent again"
        ]
    );
    let plotted = plot_capture(capture.clone(), "a.pcap", None);
    let page = crate::render(&plotted.data);
    for text in ["Time and sequence", "192.0.2.1:1000", "sent again", "Throughput"] {
        assert!(page.contains(text), "{text}");
    }
    let picture = plotted.picture.unwrap();
    let svg = picture.to_string();
    assert!(svg.contains("SACK") || svg.contains("acknowledged"), "{svg}");
    #[cfg(feature = "png")]
    assert!(crate::png(&picture).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(plot_capture(capture.clone(), "a.pcap", Some(2)).count, 0);
    assert_eq!(plot_capture(capture, "a.pcap", Some(1)).shown, Some(1));
}

#[test]
fn nothing_much_is_drawn_as_well() {
    // One packet without data; a time that runs backwards.
    let plotted = |file: &[u8]| plot_capture(Capture::read(file).unwrap(), "b", None);
    let lonely = plotted(&file(&[(5, true, ACK, 1, 1, 0)]));
    assert!(lonely.picture.unwrap().to_string().contains("Connection 1"));
    let packets =
        [(500, true, ACK, 1, 1, 100), (1, true, ACK, 101, 1, 100), (7, false, ACK, 1, 201, 0)];
    let backwards = plotted(&file(&packets));
    assert!(!crate::render(&backwards.data).contains("NaN"));
    assert!(!backwards.picture.unwrap().to_string().contains("NaN"));
}
