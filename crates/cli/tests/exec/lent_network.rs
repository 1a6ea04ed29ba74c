//! The network for the sockets of an ordinary user's programs, where the system gives such users no user namespace: a broker lends one.

use crate::broker::script;

/// A process in a `chroot` gets no user namespace (user_namespaces(7)). The rest of the machine is not changed for that.
const USER: &str = r#"
mkdir root; mount --rbind / root || exit 99; cp "$T" served
C="chroot $PWD/root setpriv --reuid 65534 --regid 65534 --clear-groups"
$C unshare -U true 2>/dev/null && exit 99
python3 -m http.server -d www -b 192.0.2.1 8000 >kernel 2>&1 & background="$background $!"
until curl -s -m 5 -o /dev/null http://192.0.2.1:8000/; do sleep 0.05; done
"#;

#[test]
fn a_broker_lends_a_network() {
    let Some(said) = script(&format!(
        r#"{USER}
TRANSOM_BROKER=$PWD/socket $C $PWD/served exec --side kernel -- curl -sS -m 60 http://192.0.2.1:8000/file >copy; echo $?
cmp copy www/file && echo same
grep -c '"event":"network"' broker
"#
    )) else {
        return;
    };
    assert_eq!(said, "0\nsame\n1\n");
}

/// The message names both ways, and why each of them is closed.
#[test]
fn without_a_broker_the_message_says_what_is_missing() {
    let Some(said) = script(&format!(
        r#"{USER}
TRANSOM_BROKER=/nowhere $C $PWD/served exec --side kernel -- true 2>said; echo $?
grep -o 'no user namespace' said; grep -o 'no broker answers at /nowhere' said
# A broker that lends nothing to this user says so.
C="chroot $PWD/root setpriv --reuid 65533 --regid 65533 --clear-groups"; chmod 666 socket
TRANSOM_BROKER=$PWD/socket $C $PWD/served exec --side kernel -- true 2>said; echo $?
grep -o 'no user namespace' said; grep -o 'the policy has no rule for user 65533' said
"#
    )) else {
        return;
    };
    let expected = "1\nno user namespace\nno broker answers at /nowhere\n1\nno user namespace\nthe policy has no rule for user 65533\n";
    assert_eq!(said, expected);
}
