use std::ops::RangeInclusive;

use super::*;

const EPHEMERAL: RangeInclusive<u16> = 32768..=60999;

fn policy(text: &str) -> Result<Policy, PolicyError> {
    text.parse()
}

fn caller(user: u32) -> Caller {
    Caller { user, groups: vec![user + 100], known: true }
}

#[test]
fn the_file_says_which_user_may_hold_which_port() {
    let policy = policy(
        r#"
        uplinks = ["eth0", "eth1.10"]
        metrics = "127.0.0.1:9470"
        most-devices = 7
        [[allow]]
        user = 1000
        ports = "8000-8999, 443"
        addresses = ["192.0.2.0/24", "2001:db8::1"]
        devices = 2
        packets-per-second = 1000
        [[allow]]
        group = 1101
        ports = "22"
        ephemeral = false
        "#,
    )
    .unwrap();
    assert_eq!((policy.most_devices, Policy::default().most_devices), (7, MOST_DEVICES));
    let may = |user, address: &str, port| {
        policy.allows(&caller(user), address.parse().unwrap(), port, &EPHEMERAL)
    };
    assert_eq!(may(1000, "192.0.2.7", 443), Some(0));
    assert_eq!(may(1000, "192.0.2.7", 40000), Some(0));
    assert_eq!(may(1000, "2001:db8::1", 8999), Some(0));
    assert_eq!(may(1000, "2001:db8::2", 8999), None);
    assert_eq!(may(1000, "192.0.3.1", 8000), None);
    assert_eq!(may(1000, "192.0.2.7", 22), None);
    assert_eq!(may(1001, "192.0.3.1", 22), Some(1));
    assert_eq!(may(1001, "192.0.3.1", 40000), None);
    assert_eq!(may(7, "192.0.2.7", 40000), None);
    assert_eq!(policy.first(&caller(1000)).unwrap().devices, 2);
    assert!(policy.first(&caller(7)).is_none());
}

#[test]
fn a_rule_can_be_written_as_one_argument() {
    let text = "user:1000,ports:8000-8999+443,address:2001:db8::/32,devices:2,rate:5";
    let rule = text.parse::<Rule>().unwrap();
    assert_eq!(rule.subject, Subject::User(1000));
    assert_eq!(rule.ports.to_string(), "8000-8999, 443");
    assert_eq!(rule.addresses, ["2001:db8::/32".parse().unwrap()]);
    assert_eq!((rule.devices, rule.packets_per_second), (2, Some(5)));
    assert_eq!("user:root".parse::<Rule>().unwrap().subject, Subject::User(0));
    assert_eq!("everybody".parse::<Rule>().unwrap().subject, Subject::Everybody);
}

#[test]
fn an_error_names_the_wrong_value() {
    for (text, word) in [
        ("ports:80", "everybody"),
        ("user:no-such-user-here,ports:80", "no-such-user-here"),
        ("user:0,ports:80-70", "80-70"),
        ("user:0,ports:0", "`0`"),
        ("user:0,ports:65536", "65536"),
        ("user:0,port:80", "ports"),
        ("user:0,devices:many", "many"),
        ("user:0,devices:70000", "devices"),
        ("user:0,rate:0", "packets-per-second"),
        ("user:0,peer:10.0.0.0/40", "10.0.0.0/40"),
        ("user:0,ephemeral:maybe", "maybe"),
    ] {
        let error = text.parse::<Rule>().unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
    assert!(policy("uplink = []").is_err());
    let error = policy("[[allow]]\nuser = 1\n[[allow]]\nports = \"1\"").unwrap_err();
    assert!(error.to_string().contains("rule 2"), "{error}");
}

#[test]
fn a_network_contains_only_addresses_of_its_ip_version() {
    let has = |network: &str, address: &str| {
        network.parse::<IpPrefix>().unwrap().contains(address.parse().unwrap())
    };
    assert!(has("0.0.0.0/0", "255.1.2.3") && !has("0.0.0.0/0", "::1"));
    assert!(has("::/0", "::1") && has("2001:db8::/32", "2001:db8:ffff::"));
    assert!(has("10.1.2.3/8", "10.9.9.9") && !has("10.1.2.3/32", "10.1.2.2"));
}

#[test]
fn a_rule_for_everybody_names_nobody() {
    let policy =
        policy("[[allow]]\nuser = 5\n[[allow]]\ngroup = 107\n[[allow]]\neverybody = true\n");
    let policy = policy.unwrap();
    assert!(policy.names(&caller(5)) && policy.names(&caller(7)) && !policy.names(&caller(9)));
    // A subordinate number with the group of its user.
    assert!(!policy.names(&Caller { known: false, ..caller(7) }));
    assert!(policy.names(&Caller { known: false, ..caller(5) }));
}
