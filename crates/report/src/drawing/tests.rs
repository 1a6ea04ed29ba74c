//! Pictures of networks: what is in them, and where.

use transom_lab::scenario::{Name, Scenario};

use super::graph::Kind;
use super::layout::Side;
use super::*;

fn resolved(text: &str) -> Resolved {
    let text = format!("[scenario]\nname = \"test\"\nduration = \"1s\"\n{text}");
    let scenario = Scenario::parse("test.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    scenario.sweep().next().unwrap().resolved
}

fn dumbbell(pairs: usize) -> Resolved {
    resolved(&format!(
        r#"
        [topology]
        kind = "dumbbell"
        pairs = {pairs}
        bottleneck = {{ rate = "10Mbit/s", delay = "20ms", queue = "50 packets" }}
        access = {{ delay = "2ms" }}
        [[flows]]
        name = "bulk"
        from = "sender"
        to = "receiver"
        kind = "bulk"
        "#
    ))
}

fn name(text: &str) -> Name {
    Name::try_from(text.to_owned()).unwrap()
}

#[test]
fn a_few_hosts_are_drawn_one_by_one() {
    let scenario = dumbbell(3);
    let graph = Graph::new(&scenario);
    assert_eq!((graph.nodes.len(), graph.edges.len()), (8, 7));
    let layout = layout::layout(&graph, &scenario);
    let at = |text: &str| layout.at(graph.place[&name(text)]);
    let side = |text: &str| layout.side(graph.place[&name(text)]);
    assert_eq!(
        (side("sender2"), side("receiver2"), side("left")),
        (Some(Side::Left), Some(Side::Right), None)
    );
    // From left to right, and the first above the second; what is alike on the same height.
    let [sender, left, right, receiver] = ["sender1", "left", "right", "receiver1"].map(at);
    assert!(sender.0 < left.0 && left.0 < right.0 && right.0 < receiver.0);
    assert_eq!((left.1, sender.1), (right.1, receiver.1));
    assert!(at("sender1").1 < at("sender2").1 && at("sender2").1 < at("sender3").1);
    assert_eq!(at("sender2").1, left.1);
    let lines = lines::lines(&graph, &layout, &scenario);
    let hues: Vec<&str> = lines.lines.iter().map(|line| line.class()).collect();
    assert_eq!(hues, ["blue", "orange", "green"]);
    assert!(lines.lines.iter().all(|line| line.way.len() == 4));
}

#[test]
fn many_alike_hosts_are_one_with_a_count() {
    let scenario = dumbbell(200);
    let drawing = drawing(&scenario).unwrap();
    let graph = Graph::new(&scenario);
    assert_eq!(graph.nodes.len(), 4);
    let picture = drawing.picture.inline("");
    assert!(
        picture.contains("sender1 … sender200") && picture.contains(">200 hosts<"),
        "{picture}"
    );
    assert!(picture.contains("bulk1 … bulk200 (200 flows)"));
    assert!(picture.contains(">each 2 ms<") && picture.contains(">10 Mbit/s · 20 ms<"));
    assert!(picture.len() < 10_000, "{}", picture.len());
    assert!(drawing.alternative.starts_with("400 hosts, 2 routers, 401 links and 200 flows."));
}

#[test]
fn different_delays_are_a_range() {
    let scenario = resolved(
        r#"
        [topology]
        kind = "dumbbell"
        bottleneck = { rate = "10Mbit/s" }
        access-delays = ["1ms", "2ms", "3ms", "4ms", "5ms", "6ms", "70ms"]
        [[flows]]
        name = "bulk"
        from = "sender"
        to = "receiver"
        kind = "bulk"
        "#,
    );
    let picture = drawing(&scenario).unwrap().picture.inline("");
    assert!(picture.contains(">each 1 ms to 70 ms<"), "{picture}");
}

#[test]
fn two_hosts_and_a_link_need_no_router() {
    let scenario = resolved(
        r#"
        [hosts.client]
        [hosts.server]
        kind = "kernel"
        [[links]]
        from = "client"
        to = "server"
        there = { delay = "50ms", loss = "1%" }
        back = { delay = "50ms" }
        [[flows]]
        name = "bulk"
        from = "client"
        to = "server"
        kind = "bulk"
        "#,
    );
    let graph = Graph::new(&scenario);
    let kinds: Vec<Kind> = graph.nodes.iter().map(|node| node.kind).collect();
    assert_eq!(kinds, [Kind::Host, Kind::Kernel]);
    let picture = drawing(&scenario).unwrap().picture.inline("");
    // Properties of both directions are written once, the others with an arrow.
    assert!(picture.contains(">50 ms<") && picture.contains(">→ loss "), "{picture}");
    assert!(!picture.contains("←") && picture.contains(">kernel<"));
}

#[test]
fn flows_take_the_ways_that_the_simulator_takes() {
    let scenario = resolved(
        r#"
        [hosts.a]
        [hosts.b]
        [routers.west]
        [routers.north]
        [routers.south]
        [routers.east]
        [[links]]
        from = "a"
        to = "west"
        delay = "1ms"
        [[links]]
        from = "west"
        to = "south"
        [[links]]
        from = "south"
        to = "east"
        [[links]]
        from = "west"
        to = "north"
        [[links]]
        from = "north"
        to = "east"
        [[links]]
        from = "east"
        to = "b"
        [[flows]]
        name = "there"
        from = "a"
        to = "b"
        kind = "bulk"
        "#,
    );
    let routes = routes::Routes::new(&scenario);
    let (a, b) = (&scenario.flows[0].from, &scenario.flows[0].to);
    let words = |way: Vec<&Name>| way.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    // Both ways are equally long: the one whose links were written first.
    assert_eq!(words(routes.way(a, b)), "a west south east b");
    assert_eq!(words(routes.way(b, a)), "b east south west a");
    assert!(routes.way(a, &name("nobody")).is_empty());
}

#[test]
fn a_chain_has_its_cross_traffic_above_and_below() {
    let scenario = resolved(
        r#"
        [topology]
        kind = "chain"
        hops = 3
        hop = { rate = "10Mbit/s", delay = "5ms" }
        cross-traffic = true
        [[flows]]
        name = "long"
        from = "source"
        to = "sink"
        kind = "bulk"
        [[flows]]
        name = "cross"
        from = "cross-source2"
        to = "cross-sink2"
        kind = "bulk"
        "#,
    );
    let graph = Graph::new(&scenario);
    let layout = layout::layout(&graph, &scenario);
    let side = |text: &str| layout.side(graph.place[&name(text)]);
    assert_eq!(side("cross-source2"), Some(Side::Above));
    assert_eq!(side("cross-sink2"), Some(Side::Below));
    assert_eq!((side("source"), side("sink")), (Some(Side::Left), Some(Side::Right)));
}

#[test]
fn nothing_is_drawn_over_anything_else_or_outside() {
    let star = |leaves: usize| {
        resolved(&format!(
            "[topology]\nkind = \"star\"\nleaves = {leaves}\nlink = {{ rate = \"1Mbit/s\", loss = \"1%\" }}\n\
             [[flows]]\nname = \"f\"\nfrom = \"leaf1\"\nto = \"leaf2\"\nkind = \"bulk\"\n"
        ))
    };
    for scenario in [dumbbell(1), dumbbell(6), dumbbell(7), star(2), star(5), star(6)] {
        let graph = Graph::new(&scenario);
        let layout = layout::layout(&graph, &scenario);
        for one in 0..graph.nodes.len() {
            let (x, y) = layout.at(one);
            let half = layout.width(one) / 2.0;
            assert!(x - half >= 8.0 && x + half <= layout.size.0 - 8.0, "{one} at {x}");
            assert!(y >= 20.0 && y <= layout.size.1 - 20.0, "{one} at {y}");
            for other in 0..one {
                let (x2, y2) = layout.at(other);
                let apart = (x - x2).abs() >= half + layout.width(other) / 2.0
                    || (y - y2).abs() >= layout::BOX;
                assert!(apart, "{one} and {other}");
            }
        }
    }
}

#[test]
fn the_same_scenario_gives_the_same_picture() {
    let picture = |scenario: &Resolved| drawing(scenario).unwrap().picture.to_string();
    assert_eq!(picture(&dumbbell(5)), picture(&dumbbell(5)));
    assert_ne!(picture(&dumbbell(5)), picture(&dumbbell(4)));
}

#[test]
fn a_network_that_is_too_large_is_not_drawn() {
    let mut text = String::new();
    for router in 0..61 {
        text += &format!("[routers.r{router}]\n");
    }
    text += "[hosts.a]\n[hosts.b]\n[[links]]\nfrom = \"a\"\nto = \"r0\"\n[[links]]\nfrom = \"r60\"\nto = \"b\"\ndelay = \"1ms\"\n";
    for router in 0..60 {
        text += &format!("[[links]]\nfrom = \"r{router}\"\nto = \"r{}\"\n", router + 1);
    }
    text += "[[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nkind = \"bulk\"\n";
    assert!(drawing(&resolved(&text)).is_none());
}
