//! What is written, and what it stands for.

use super::traffic::{AppLimited, Bulk, OnOffUdp, RequestResponse, Transfer, Web};
use super::*;

fn names<'a>(names: impl IntoIterator<Item = &'a Name>) -> Vec<&'a str> {
    names.into_iter().map(Name::as_str).collect()
}

fn ends(links: &[Link]) -> Vec<String> {
    links.iter().map(|link| format!("{}: {} → {}", link.name, link.from, link.to)).collect()
}

/// A scenario with this topology and a flow.
fn with_topology(topology: &str, from: &str, to: &str) -> String {
    format!(
        "[scenario]\nname = \"test\"\nduration = \"10s\"\n[topology]\n{topology}\n[[flows]]\nname = \"f\"\nfrom = \"{from}\"\n\
         to = \"{to}\"\nkind = \"bulk\"\n"
    )
}

#[test]
fn omitted_keys_have_their_defaults() {
    let Resolved { scenario, hosts, routers, links, flows, measure, expect } =
        resolved(&minimal(""));
    assert_eq!(scenario.duration.to_string(), "10s");
    assert_eq!(scenario.warm_up.to_string(), "0ms");
    assert_eq!(scenario.sample_interval.to_string(), "100ms");
    assert_eq!(names(hosts.keys()), ["a", "b"]);
    assert!(routers.is_empty() && expect.is_empty());
    assert_eq!(ends(&links), ["a-b: a → b"]);
    assert_eq!(links[0].there, links[0].back);
    assert_eq!(links[0].there, "rate=10Mbit/s, delay=10ms".parse().unwrap());
    assert_eq!(flows.len(), 1);
    assert_eq!(flows[0].traffic, Traffic::Bulk(Bulk {}));
    // No link has window control.
    let links = vec![
        LinkSeries::Throughput,
        LinkSeries::QueueLength,
        LinkSeries::QueueDelay,
        LinkSeries::Drops,
        LinkSeries::Marks,
    ];
    assert_eq!(measure, Series { links, ..Series::default() });
    assert_eq!(Scenario::parse("", &minimal("")).unwrap().seeds, [1]);
}

#[test]
fn a_direction_of_a_link_wins_over_both() {
    let text = minimal("").replace(
        "delay = \"10ms\"",
        "delay = \"10ms\"\nback = { rate = \"1Mbit/s\", loss = \"packets(0, 7)\" }",
    );
    let Resolved { links, .. } = resolved(&text);
    assert_eq!(links[0].there, "rate=10Mbit/s, delay=10ms".parse().unwrap());
    assert_eq!(links[0].back, "rate=1Mbit/s, delay=10ms, loss=packets(0, 7)".parse().unwrap());
}

#[test]
fn groups_are_spread_out() {
    let text = r#"
[scenario]
name = "groups"
duration = "10s"
[hosts.client]
count = 11
[hosts.client3]
mtu = 9000
[hosts.server]
[routers.r]
[[links]]
name = "up"
from = "client"
to = "r"
[[links]]
from = "r"
to = "server"
delay = "1ms"
[[flows]]
name = "f"
from = "client"
to = "server"
count = 2
stagger = "100ms"
kind = "transfer"
size = "1MB"
[[flows]]
name = "one"
from = "server"
to = "client10"
kind = "bulk"
[measure]
capture = ["up"]
[[expect]]
measure = "completion-time"
flow = "f"
max = "5s"
"#;
    let Resolved { hosts, links, flows, measure, expect, .. } = resolved(text);
    let all = names(hosts.keys());
    assert_eq!(all[..3], ["client1", "client2", "client3"]);
    assert_eq!(all[9..], ["client10", "client11", "server"]);
    let mtu = |name: &str| hosts[&Name::new(name).unwrap()].mtu;
    assert_eq!((mtu("client2"), mtu("client3")), (1500, 9000));
    assert_eq!(ends(&links)[10..], ["up11: client11 → r", "r-server: r → server"]);
    assert_eq!(flows.len(), 23);
    let third = &flows[2];
    assert_eq!((third.name.as_str(), third.from.as_str()), ("f3", "client2"));
    assert_eq!(third.start.to_string(), "200ms");
    assert_eq!(flows[22].name.as_str(), "one");
    assert_eq!(measure.capture.len(), 11);
    assert_eq!(expect[0].quantity.flows.len(), 22);
    assert_eq!(expect[0].quantity.statistic, Some(Statistic::Mean));
}

#[test]
fn programs_on_kernel_hosts() {
    let text = r#"
[scenario]
name = "programs"
duration = "10s"
[hosts]
client = { kind = "kernel", congestion = "reno", ecn = true }
server = { kind = "kernel" }
[[links]]
from = "client"
to = "server"
[[flows]]
name = "iperf"
from = "client"
to = "server"
kind = "program"
server = ["iperf3", "-s", "-p", "{port}"]
client = ["iperf3", "-c", "{address}", "-p", "{port}"]
"#;
    let resolved = resolved(text);
    assert!(resolved.needs_emulation());
    let Traffic::Program(program) = &resolved.flows[0].traffic else { panic!() };
    assert_eq!(program.server.as_ref().unwrap()[0], "iperf3");
    assert_eq!(program.client[2], "{address}");
    let client = &resolved.hosts[&Name::new("client").unwrap()];
    assert_eq!((client.congestion, client.ecn), (Some(KernelCongestion::Reno), Some(true)));
}

#[test]
fn dumbbell() {
    let text = with_topology(
        "kind = \"dumbbell\"\naccess-delays = [\"1ms\", \"40ms\"]\nbottleneck = { rate = \"10Mbit/s\" }\n\
         access = { rate = \"1Gbit/s\", delay = \"2ms\" }\n[hosts.receiver]\nprofile = { recv-buffer = \"64KiB\" }\n\
         [hosts.sender2]\nkind = \"kernel\"\ncongestion = \"cubic\"",
        "sender",
        "receiver",
    );
    let resolved = resolved(&text);
    assert!(resolved.needs_emulation());
    let Resolved { hosts, routers, links, flows, .. } = resolved;
    assert_eq!(names(hosts.keys()), ["receiver1", "receiver2", "sender1", "sender2"]);
    assert_eq!(names(routers.keys()), ["left", "right"]);
    assert_eq!(
        ends(&links),
        [
            "bottleneck: left → right",
            "sender1-left: sender1 → left",
            "sender2-left: sender2 → left",
            "right-receiver1: right → receiver1",
            "right-receiver2: right → receiver2",
        ]
    );
    let delays: Vec<String> = links.iter().map(|link| Time(link.back.delay).to_string()).collect();
    assert_eq!(delays, ["0ms", "1ms", "40ms", "2ms", "2ms"]);
    let pairs: Vec<(&str, &str)> =
        flows.iter().map(|flow| (flow.from.as_str(), flow.to.as_str())).collect();
    assert_eq!(pairs, [("sender1", "receiver1"), ("sender2", "receiver2")]);
    let host = |name: &str| &hosts[&Name::new(name).unwrap()];
    assert_eq!(host("receiver2").profile.recv_buffer, Some(Size(65_536)));
    assert_eq!(host("sender2").congestion, Some(KernelCongestion::Cubic));
    assert_eq!(host("sender1").kind, HostKind::Transom);
}

#[test]
fn chain() {
    let text = with_topology(
        "kind = \"chain\"\nhops = 2\ncross-traffic = true\nhop = { delay = \"5ms\" }",
        "source",
        "sink",
    );
    let Resolved { hosts, routers, links, .. } = resolved(&text);
    assert_eq!(
        names(hosts.keys()),
        ["cross-sink1", "cross-sink2", "cross-source1", "cross-source2", "sink", "source"]
    );
    assert_eq!(names(routers.keys()), ["r1", "r2", "r3"]);
    assert_eq!(
        ends(&links),
        [
            "hop1: r1 → r2",
            "hop2: r2 → r3",
            "source-r1: source → r1",
            "r3-sink: r3 → sink",
            "cross-source1-r1: cross-source1 → r1",
            "r2-cross-sink1: r2 → cross-sink1",
            "cross-source2-r2: cross-source2 → r2",
            "r3-cross-sink2: r3 → cross-sink2",
        ]
    );
}

#[test]
fn star_with_more_beside_it() {
    let text = with_topology("kind = \"star\"\nleaves = 2\nlink = {}", "leaf1", "far")
        + "[hosts.far]\n[[links]]\nfrom = \"hub\"\nto = \"far\"\ndelay = \"100ms\"";
    let Resolved { hosts, links, .. } = resolved(&text);
    assert_eq!(names(hosts.keys()), ["far", "leaf1", "leaf2"]);
    assert_eq!(
        ends(&links),
        ["leaf1-hub: leaf1 → hub", "leaf2-hub: leaf2 → hub", "hub-far: hub → far"]
    );
}

#[test]
fn every_kind_of_traffic() {
    let flow = |kind: &str| {
        let text = minimal("").replace("kind = \"bulk\"", kind);
        resolved(&text).flows.remove(0).traffic
    };
    let size = |text: &str| text.parse::<SizeDistribution>().unwrap();
    let time = |text: &str| text.parse::<TimeDistribution>().unwrap();
    assert_eq!(
        flow("kind = \"transfer\"\nsize = \"1MB\""),
        Traffic::Transfer(Transfer { size: Size(1_000_000) })
    );
    assert_eq!(
        flow("kind = \"request-response\"\nresponse = \"1kB\"\nrequests = 5\nthink-time = \"1s\""),
        Traffic::RequestResponse(RequestResponse {
            request: size("300 bytes"),
            response: size("1kB"),
            think_time: time("1s"),
            requests: Count::new(5),
        })
    );
    assert_eq!(
        flow(
            "kind = \"web\"\nobject = \"pareto(8kB, 1.2)\"\nthink-time = \"exponential(1s)\"\nobjects = 3"
        ),
        Traffic::Web(Web {
            request: size("300 bytes"),
            object: size("pareto(8kB, 1.2)"),
            objects: Count::new(3).unwrap(),
            connections: Count::ONE,
            think_time: time("exponential(1s)"),
        })
    );
    assert_eq!(
        flow("kind = \"on-off-udp\"\nrate = \"5Mbit/s\"\noff = \"5min\"\non = \"5min\""),
        Traffic::OnOffUdp(OnOffUdp {
            rate: "5Mbit/s".parse().unwrap(),
            payload: Size(1000),
            on: time("5min"),
            off: time("5min"),
        })
    );
    assert_eq!(
        flow("kind = \"app-limited\"\nrate = \"5Mbit/s\""),
        Traffic::AppLimited(AppLimited { rate: "5Mbit/s".parse().unwrap(), write: Size(1460) })
    );
}

#[test]
fn a_divisor_inherits_from_its_band() {
    let text = minimal(
        "[[flows]]\nname = \"other\"\nfrom = \"b\"\nto = \"a\"\nkind = \"bulk\"\n\
         [[expect]]\nmeasure = \"rtt\"\nflow = \"bulk\"\nstatistic = \"p95\"\nfrom = \"5s\"\n\
         relative-to = { flow = \"other\", from = \"1s\" }\nmin = 0.5\nmax = \"2\"\nwhy = \"symmetry\"",
    );
    let Resolved { expect, .. } = resolved(&text);
    let band = &expect[0];
    let other = band.relative_to.as_ref().unwrap();
    assert_eq!((names(&band.quantity.flows), names(&other.flows)), (vec!["bulk"], vec!["other"]));
    assert_eq!((other.measure, other.statistic), (Measure::Rtt, Some(Statistic::P95)));
    assert_eq!((other.from.to_string(), other.until.to_string()), ("1s".into(), "10s".into()));
    let bounds = (band.min.unwrap().as_integer(), band.max.unwrap().as_integer());
    assert_eq!(bounds, (500_000_000, 2_000_000_000));
    assert_eq!(band.why.as_deref(), Some("symmetry"));
}

#[test]
fn traces_are_read_and_part_of_the_identity() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("test.toml");
    let text = minimal("").replace("kind = \"bulk\"", "kind = \"trace\"\nfile = \"web.csv\"");
    std::fs::write(&file, &text).unwrap();
    let said = Scenario::load(&file, None).unwrap_err().to_string();
    assert!(said.contains("web.csv cannot be read") && said.contains(":16:8"), "{said}");
    let trace = directory.path().join("web.csv");
    let id = |content: &str| {
        std::fs::write(&trace, content).unwrap();
        let scenario = Scenario::load(&file, None).unwrap();
        scenario.sweep().next().unwrap().resolved.id(1, "1", false)
    };
    assert_ne!(id("# s, bytes\n0, 100\n1.5, 200\n"), id("0,100\n1.5,201\n"));
    let (entries, sum) = read_trace(&trace).unwrap();
    let nanos: Vec<_> = entries.iter().map(|(at, size)| (at.as_nanos(), *size)).collect();
    assert_eq!(nanos, [(0, 100), (1_500_000_000, 201)]);
    assert_eq!(sum.len(), 64);
    for (content, message) in [
        ("1,2\n0,3\n", "line 2 of the trace"),
        ("1;2\n", "is not TIME,BYTES"),
        ("1,x\n", "does not end with a number of bytes"),
        ("-1,2\n", "does not begin with a time in seconds"),
        ("\n", "has no entries"),
    ] {
        std::fs::write(&trace, content).unwrap();
        let said = Scenario::load(&file, None).unwrap_err().to_string();
        assert!(said.contains(message), "{said}");
    }
}

/// A table and a text that say the same are the same experiment, whatever the order of the table.
#[test]
fn units_as_a_text_and_as_a_table() {
    let with = |profile: &str| {
        resolved(&minimal("").replacen(
            "[hosts.b]",
            &format!("[hosts.b]\nprofile.tcp = {profile}"),
            1,
        ))
    };
    let text = with("\"modern + ltcp(beta=0.1) + immediate-ack\"");
    let table = "{ acknowledgements = \"immediate-ack\", congestion = \"ltcp(beta=0.1)\", preset = \"modern\" }";
    assert_eq!(with(table), text);
    assert_eq!(with(table).id(1, "1.0", false), text.id(1, "1.0", false));
    assert!(text.to_toml().contains("tcp = \"modern + ltcp(beta=0.1) + immediate-ack\""));
}

/// A flow's choice of a unit wins; other units are as each of its hosts has them.
#[test]
fn a_flows_units_are_laid_over_its_hosts() {
    let text = minimal("")
        .replacen("[hosts.b]", "[hosts.b]\nprofile.tcp = \"immediate-ack + cubic\"", 1)
        .replacen("kind = \"bulk\"", "kind = \"bulk\"\nprofile.tcp = \"ltcp\"", 1);
    let resolved = resolved(&text);
    let at = |host: &str| {
        let host = &resolved.hosts[&Name::new(host).unwrap()].profile;
        resolved.flows[0].profile.or(host).profile().unwrap()
    };
    assert_eq!((at("a").congestion.name(), at("b").congestion.name()), ("ltcp", "ltcp"));
    assert_eq!(at("a").ack, transom_tcp::Profile::default().ack);
    assert_eq!(at("b").ack, transom_tcp::AckChoice::Immediate);
}

/// The scenario's TCP settings are the defaults of each host, and are not in the canonical form.
#[test]
fn a_scenarios_units_are_those_of_its_hosts() {
    let plain = minimal("").replacen("[hosts.b]", "[hosts.b]\nprofile.tcp = \"cubic\"", 1);
    let text = plain.replacen("[scenario]", "[scenario]\ntcp = \"classic + immediate-ack\"", 1);
    let resolved = resolved(&text);
    let profile = |host: &str| resolved.hosts[&Name::new(host).unwrap()].profile.profile().unwrap();
    let composed = |text: &str| transom_tcp::compose::compose(text).unwrap();
    assert_eq!(profile("a"), composed("classic + immediate-ack"));
    assert_eq!(profile("b"), composed("classic + immediate-ack + cubic"));
    assert_eq!(resolved.scenario.tcp, None);
    let again = super::resolved(&resolved.to_toml());
    assert_eq!(again, resolved);
}

#[test]
fn fixed_buffers_have_their_full_size_at_once() {
    let sizes = "send-buffer = \"1MiB\"\nrecv-buffer = \"2MiB\"\n";
    for (fixed, [send, receive]) in [(false, [256 << 10, 128 << 10]), (true, [1 << 20, 2 << 20])] {
        let text = format!("{sizes}fixed-buffers = {fixed}");
        let profile = toml::from_str::<ProfileOptions>(&text).unwrap().profile().unwrap();
        assert_eq!((profile.send_buffer, profile.max_send_buffer), (send, 1 << 20));
        let buffer = profile.flow.buffer();
        assert_eq!((buffer.initial, buffer.max), (receive, 2 << 20));
    }
}
