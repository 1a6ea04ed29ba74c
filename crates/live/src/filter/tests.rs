use super::*;
use crate::row::Process;
use crate::row::tests::row;
use transom_tcp::{LimitedBy, Untold};

fn chooses(filter: &str, row: &Row) -> bool {
    filter.parse::<Filter>().unwrap_or_else(|error| panic!("{filter}: {error}")).chooses(row)
}

#[test]
fn connections_are_chosen_as_ss_does() {
    let mut web = row(7, 1, "10.1.2.3:443", "192.0.2.9:50000");
    web.tcp.limited_by = LimitedBy::CongestionWindow;
    web.tcp.untold.remove(Untold::LIMIT);
    web.layers = vec!["nice".into()];
    for filter in [
        "",
        "  ",
        "state established",
        "state connected",
        "sport = :443",
        "sport 443",
        "sport eq 443 and dport gt 49999",
        "sport=:443&&dport>=50000",
        "( sport = :80 or sport = :443 ) and dst 192.0.2.0/24",
        "(sport = :80 or sport = :443) dst 192.0.2.9",
        "src 10.0.0.0/8",
        "src = 10.1.2.3:443",
        "src 10.0.0.0/8:443",
        "src :443",
        "dst != 192.0.2.8",
        "dst 0.0.0.0/0",
        "not kernel",
        "! state listen",
        "process program",
        "process 7",
        "limit cwnd",
        "extension",
        "extension nice and transom",
        "state listen or state established",
        "not not transom",
    ] {
        assert!(chooses(filter, &web), "{filter}");
    }
    for filter in [
        "state listen",
        "state syn-recv",
        "state bucket",
        "sport != 443",
        "sport < 443",
        "sport = :443 and dport = :443",
        "src 11.0.0.0/8",
        "src ::/0",
        "dst 192.0.2.9:1",
        "kernel",
        "process 70",
        "limit pacing",
        "extension cm",
        "not extension",
        "not (transom or kernel)",
        "kernel or state listen and sport = :443",
    ] {
        assert!(!chooses(filter, &web), "{filter}");
    }
    let processes = [(3, "sshd"), (7, "sh")];
    let processes = processes.map(|(pid, name)| Process { pid, name: name.into() }).to_vec();
    web.source = Source::Kernel { user: 0, processes };
    assert_eq!(web.source.name(), "sshd[3]+1");
    for filter in ["process sshd", "process sh and kernel", "process 7", "process = 3"] {
        assert!(chooses(filter, &web), "{filter}");
    }
    assert!(!chooses("process 33 or process ssh", &web));
    let six = row(7, 1, "[2001:db8::1]:22", "[::ffff:10.0.0.1]:9");
    for filter in [
        "src 2001:db8::/32",
        "src [2001:db8::1]:22",
        "src [2001:db8::]/32:22",
        "src 2001:db8::1",
        "dst 10.0.0.0/8",
    ] {
        assert!(chooses(filter, &six), "{filter}");
    }
}

#[test]
fn a_wrong_filter_is_refused_with_the_reason() {
    for (text, why) in [
        ("state", "`state` needs a value"),
        ("state open", "there is no state `open`"),
        ("port 80", "`port` is no condition"),
        ("sport", "`` is no port"),
        ("sport = :70000", "`:70000` is no port"),
        ("sport = http", "`http` is no port"),
        ("dst 10.0.0.0/33", "`10.0.0.0/33` is no address"),
        ("dst example.org", "`example.org` is no address"),
        ("src < 10.0.0.1", "compared by = or !="),
        ("(kernel", "a bracket is not closed"),
        ("kernel)", "`)` is not expected here"),
        ("kernel and", "the filter ends too early"),
        ("or", "`or` is no condition"),
        ("not", "the filter ends too early"),
    ] {
        let error = text.parse::<Filter>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    assert!("(".repeat(1000).parse::<Filter>().unwrap_err().to_string().contains("brackets"));
    assert!("! ".repeat(500).parse::<Filter>().is_err());
    assert!("kernel ".repeat(1000).parse::<Filter>().unwrap_err().to_string().contains("1024"));
    assert!("é√ 💥".parse::<Filter>().is_err());
}
