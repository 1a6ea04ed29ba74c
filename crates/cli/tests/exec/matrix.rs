//! Well-known programs on both sides: Transom's TCP under the server with a client of the kernel's, and the other way round. Each is run without and with the
//! extension Nice, as an ordinary user's, in a network of its own.

use super::{BOTH, available, directory, inside};

const REDIS: &str = r#"
R="redis-server --bind 0.0.0.0 --protected-mode no --save '' --loglevel warning"
names() { tail -n "$1" | cut -d, -f1; }
$T $R --port 6379 >/dev/null & server=$!
until redis-cli -h 10.9.0.2 ping 2>/dev/null | grep -q PONG; do sleep 0.05; done
redis-benchmark -h 10.9.0.2 -n 2000 -c 20 -t set,get --csv | names 2
redis-benchmark -h 10.9.0.2 -n 2000 -c 20 -P 16 -d 4096 -t set --csv | names 1
end $server; echo $?
$R --port 6380 >/dev/null & server=$!; listening 6380
$T redis-benchmark -h 10.9.0.1 -p 6380 -n 2000 -c 20 -t set,get --csv | names 2
end $server
"#;

#[test]
fn redis() {
    if !available(&["redis-server", "redis-cli", "redis-benchmark"]) {
        return;
    }
    for way in BOTH {
        let (_keep, path, _) = directory();
        let ended = inside(&path, &format!("{way}{REDIS}"));
        let expected = "\"SET\"\n\"GET\"\n\"SET\"\n0\n\"SET\"\n\"GET\"\n";
        assert_eq!(ended.text(), expected, "{way}{}", ended.stderr);
    }
}

/// As root, sshd wants to change to other users, which a network of one's own does not have. So it runs as an ordinary user, `tester`.
const SSH: &str = r#"
ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f me
cp me.pub authorized; chmod 600 authorized
{ cat /etc/passwd; echo "tester:x:1000:1000::$PWD:/bin/sh"; } >passwd; mount --bind passwd /etc/passwd
configure() { printf '%s\n' "Port $1" 'ListenAddress 0.0.0.0' "HostKey $PWD/host" "AuthorizedKeysFile $PWD/authorized" \
    'StrictModes no' 'UsePAM no' 'PidFile none' 'Subsystem sftp internal-sftp' >sshd_config; }
O="-F none -i me -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
D="unshare -U --map-user=1000 --map-group=1000 $(command -v sshd) -D -e -f $PWD/sshd_config"
configure 2222; $T $D 2>log & server=$!
until ssh $O -p 2222 tester@10.9.0.2 cat small 2>/dev/null; do sleep 0.1; done
scp -q $O -P 2222 tester@10.9.0.2:big copy1; cmp big copy1 && echo scp
rsync -a -e "ssh $O -p 2222" big tester@10.9.0.2:copy2; cmp big copy2 && echo rsync
end $server
configure 2223; $D 2>log & server=$!; listening 2223
$T ssh $O -p 2223 tester@10.9.0.1 cat small
$T scp -q $O -P 2223 big tester@10.9.0.1:copy3; cmp big copy3 && echo scp
$T rsync -a -e "ssh $O -p 2223" big tester@10.9.0.1:copy4; cmp big copy4 && echo rsync
end $server
"#;

#[test]
fn ssh_scp_and_rsync() {
    if !available(&["sshd", "ssh", "scp", "ssh-keygen", "rsync"]) {
        return;
    }
    for way in BOTH {
        let (_keep, path, _) = directory();
        let ended = inside(&path, &format!("{way}{SSH}"));
        let once = "hello\nscp\nrsync\n";
        assert_eq!(ended.text(), once.repeat(2), "{way}{}", ended.stderr);
    }
}

const RSYNC: &str = r#"
printf '%s\n' 'use chroot = no' 'reverse lookup = no' '[files]' "path = $PWD" 'read only = no' >rsyncd.conf
# As root it wants to change to other users: see above.
D="unshare -U --map-user=1000 --map-group=1000 rsync --daemon --no-detach --config=rsyncd.conf --log-file=log"
$T $D --port 8730 & server=$!
until rsync rsync://10.9.0.2:8730/ >/dev/null 2>&1; do sleep 0.05; done
rsync rsync://10.9.0.2:8730/files/big copy1; cmp big copy1 && echo from
end $server
$D --port 8731 & server=$!; listening 8731
$T rsync big rsync://10.9.0.1:8731/files/copy2; cmp big copy2 && echo to
end $server
"#;

#[test]
fn rsync_with_its_own_protocol() {
    if !available(&["rsync"]) {
        return;
    }
    for way in BOTH {
        let (_keep, path, _) = directory();
        let ended = inside(&path, &format!("{way}{RSYNC}"));
        assert_eq!(ended.text(), "from\nto\n", "{way}{}", ended.stderr);
    }
}

const BUSYBOX: &str = r#"
B=$(command -v busybox)
$T $B httpd -f -p 8000 & server=$!
answers http://10.9.0.2:8000/small; curl -sS http://10.9.0.2:8000/small
end $server
$B httpd -f -p 8001 & server=$!; listening 8001
$T $B wget -q -O - http://10.9.0.1:8001/small
$T $B wget -q -O copy http://10.9.0.1:8001/big; cmp copy big && echo same
echo text | $T $B nc 10.9.0.1 8001 | head -n 1 | tr -d '\r'
end $server
"#;

#[test]
fn busybox() {
    if !available(&["busybox"]) {
        return;
    }
    for way in BOTH {
        let (_keep, path, _) = directory();
        let ended = inside(&path, &format!("{way}{BUSYBOX}"));
        let expected = "hello\nhello\nsame\nHTTP/1.1 400 Bad Request\n";
        assert_eq!(ended.text(), expected, "{way}{}", ended.stderr);
    }
}
