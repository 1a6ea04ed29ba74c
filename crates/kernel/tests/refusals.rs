//! What cannot be done is refused with the reason, and leaves nothing.

use transom_kernel::{Cgroup, Host, KernelError, Options};

use crate::support::{Net, controllers, named};

#[test]
fn an_extension_without_a_form_here_is_refused() {
    let Some(net) = Net::new() else { return };
    let names = controllers();
    for (text, word) in [
        ("rr", "dupthresh"),
        ("nice + efr", "dupthresh"),
        ("eifel", "rto"),
        ("rledbat", "rcv_wnd"),
        ("vegas(poll=send)", "SEND"),
    ] {
        let existing = Options { existing: true, ..Options::default() };
        let refused = Host::attach(&net.cgroup, &named(text), existing).unwrap_err();
        let said = refused.to_string();
        assert!(
            matches!(refused, KernelError::Refused(_)) && said.contains(word),
            "{text}: {said}"
        );
    }
    assert_eq!(controllers(), names);
}

#[test]
fn a_directory_that_is_no_control_group_is_refused() {
    for place in ["/tmp", "/nowhere"] {
        let error = Cgroup::open(place).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
}
