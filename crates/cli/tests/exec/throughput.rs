//! Bulk data by iperf3, both ways and in both roles. How fast it is depends on the machine and is not judged.

use super::{BOTH, available, directory, inside};

#[test]
fn iperf3_both_ways() {
    if !available(&["iperf3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let ways =
        [(BOTH[0], ""), (BOTH[0], "-R"), (BOTH[0], "--bidir"), (BOTH[1], ""), (BOTH[1], "-R")];
    for (way, direction) in ways {
        let script = format!(
            "{way}iperf3 -s -1 >/dev/null & listening 5201
             $T iperf3 -c 10.9.0.1 {direction} -n 50M -J >client.json || cat client.json
             wait; grep -c '\"error\"' client.json"
        );
        assert_eq!(inside(&path, &script).text(), "0\n", "{way}{direction}");
    }
    let script = "$T iperf3 -s -1 >/dev/null & server=$!
        # Its exit status says nothing of errors.
        until iperf3 -c 10.9.0.2 -n 50M -J >client.json; ! grep -q '\"error\"' client.json; do sleep 0.1; done
        wait $server; grep -c '\"error\"' client.json";
    assert_eq!(inside(&path, script).text(), "0\n");
}
