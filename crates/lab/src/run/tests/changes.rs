//! Runs with profiles that a program has changed.

use super::*;
use std::sync::Mutex;
use transom_tcp::compose::compose;

/// The run of a scenario with a change.
fn changed(
    scenario: &Resolved,
    change: &(dyn Fn(&Name, &mut Profile) + Sync),
) -> Result<Observations, RunError> {
    let options = RunOptions { change, ..beside(Path::new("")) };
    simulate(scenario, 1, options, |_, _| true).map(|seen| seen.expect("it was not ended"))
}

/// A flow that requests and one that sends, between hosts that differ.
const BOTH: &str = r#"
[scenario]
name = "both"
duration = "5s"

[hosts.client]
profile = { tcp = "cubic" }
[hosts.server]
profile = { tcp = "reno" }

[[links]]
from = "client"
to = "server"
delay = "10ms"

[[flows]]
name = "upload"
from = "client"
to = "server"
kind = "transfer"
size = "1MB"
[[flows]]
name = "download"
from = "client"
to = "server"
kind = "request-response"
response = "100kB"
requests = 5
"#;

#[test]
fn a_change_gets_the_profile_of_whoever_sends_the_data() {
    let told = Mutex::new(Vec::new());
    let scenario = resolved(BOTH);
    let seen = changed(&scenario, &|flow, profile| {
        told.lock().unwrap().push((flow.to_string(), profile.congestion.name()));
    });
    // Requests are answered by the server, which sends the data.
    let expected = [("upload".to_owned(), "cubic"), ("download".to_owned(), "reno")];
    assert_eq!(told.into_inner().unwrap(), expected);
    assert_eq!(seen.unwrap(), run(&scenario, 1), "nothing was changed");
}

#[test]
fn a_change_is_of_the_flow_that_it_is_made_for() {
    let (alone, _) = DUMBBELL.split_once("[[flows]]\nname = \"file\"").unwrap();
    let scenario = resolved(alone);
    // Ten segments in each round trip of 24 ms are half of what the link carries.
    const BUFFER: usize = 14_480;
    let narrow = |wanted: &'static str| {
        move |flow: &Name, profile: &mut Profile| {
            if flow.as_str() == wanted {
                (profile.send_buffer, profile.max_send_buffer) = (BUFFER, BUFFER);
            }
        }
    };
    // Mbit/s of the last ten seconds.
    let rate = |seen: &Observations| {
        let samples = &seen.flows[0].samples;
        let at = |seconds| {
            let wanted = Instant::ZERO + Duration::from_secs(seconds);
            samples.iter().find(|one| one.at == wanted).unwrap().delivered
        };
        (at(30) - at(20)) as f64 * 8.0 / 10.0 / 1e6
    };
    let most = BUFFER as f64 * 8.0 / 0.024 / 1e6;
    let narrowed = rate(&changed(&scenario, &narrow("bulk")).unwrap());
    assert!((0.6..=1.0).contains(&(narrowed / most)), "{narrowed} of {most} Mbit/s");
    let other = changed(&scenario, &narrow("another")).unwrap();
    assert!(rate(&other) > 9.0, "{}", rate(&other));
    assert_eq!(other, run(&scenario, 1));
}

#[test]
fn a_changed_profile_that_does_not_work_names_its_flow() {
    let error = changed(&resolved(DUMBBELL), &|flow, profile| {
        if flow.as_str() == "file" {
            *profile = compose("sack").unwrap();
            profile.options.sack = false;
        }
    });
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("flow file: ") && error.contains("SACK option"), "{error}");
}
