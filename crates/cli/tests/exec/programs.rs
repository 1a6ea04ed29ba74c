//! More well-known programs: servers and clients of many kinds, and those that look closely at their sockets (haproxy, squid, dbus-daemon).
//!
//! `$T` runs a program over Transom. Each script prints the same without it.

use super::{available, directory, inside};

/// Waits for a server that speaks TCP and nothing that curl knows, at an address.
const HELPERS: &str = r#"
there() { until python3 -c "import socket; socket.create_connection(('$1', $2), 5).close()" 2>/dev/null; do sleep 0.05; done; }
web() { python3 -m http.server 8000 --bind 0.0.0.0 >/dev/null 2>&1 & listening 8000; }
# Sends what comes in and prints what comes back.
talk() { python3 -c "
import socket, sys
s = socket.create_connection(('$1', $2), 10); s.sendall(sys.stdin.buffer.read()); s.shutdown(1)
while data := s.recv(65536): sys.stdout.buffer.write(data)"; }
# An ordinary user, for servers that will not be root's.
U="unshare -U --map-user=1000 --map-group=1000"
export HOME=$PWD
# The interface is there before the command, so that the kernel's servers have their address.
ip tuntap add dev transom0 mode tun user 0 vnet_hdr; ip addr add 10.9.0.1/24 dev transom0; ip link set transom0 up
"#;

/// Runs a script that needs some programs.
#[track_caller]
fn says(programs: &[&str], script: &str, expected: &str) {
    if !available(&["python3"]) || !available(programs) {
        return;
    }
    let (_keep, path, _) = directory();
    let ended = inside(&path, &format!("{HELPERS}{script}"));
    assert_eq!(ended.text(), expected, "{}", ended.stderr);
}

#[test]
fn socat() {
    says(
        &["socat"],
        "$T socat TCP-LISTEN:7001,fork,reuseaddr EXEC:cat & server=$!; there 10.9.0.2 7001
        echo kernel | socat -t 5 - TCP:10.9.0.2:7001; end $server
        socat TCP-LISTEN:7002,fork,reuseaddr EXEC:'tr a-z A-Z' & listening 7002
        echo transom | $T socat -t 5 - TCP:10.9.0.1:7002
        echo bound | $T socat -t 5 - TCP:10.9.0.1:7002,bind=10.9.0.2,sndbuf=50000,keepalive
        $T socat -u FILE:big TCP-LISTEN:7003,reuseaddr & until socat -u TCP:10.9.0.2:7003 CREATE:copy 2>/dev/null; do sleep 0.05; done; cmp big copy && echo same",
        "kernel\nTRANSOM\nBOUND\nsame\n",
    );
}

#[test]
fn ncat() {
    says(
        &["ncat"],
        r#"
$T ncat -l 7001 --send-only <small & server=$!; until ncat --recv-only 10.9.0.2 7001 2>/dev/null | grep .; do sleep 0.1; done; wait $server
ncat -l 7002 --recv-only >got & server=$!; listening 7002; echo transom | $T ncat --send-only 10.9.0.1 7002; wait $server; cat got
$T ncat -w 5 10.9.0.1 9 </dev/null 2>&1 | grep -o 'Connection refused'
"#,
        "hello\ntransom\nConnection refused\n",
    );
}

const LIGHTTPD: &str = r#"
printf '%s\n' "server.document-root = \"$PWD\"" 'server.bind = "0.0.0.0"' "server.port = $1" 'server.max-keep-alive-requests = 100000' >lighttpd.conf
"#;

#[test]
fn lighttpd_with_ab_and_siege() {
    let script = format!(
        "conf() {{ {LIGHTTPD} }}
        conf 8080; $T lighttpd -D -f lighttpd.conf & server=$!; answers http://10.9.0.2:8080/small; curl -sS http://10.9.0.2:8080/small
        ab -q -n 200 -c 10 http://10.9.0.2:8080/small | grep -E 'Complete|Failed|Non-2xx'; ab -q -k -n 200 -c 10 http://10.9.0.2:8080/small | grep -E 'Complete|Failed|Non-2xx'
        curl -sS -o copy http://10.9.0.2:8080/big; cmp big copy && echo same
        end $server; conf 8081; lighttpd -D -f lighttpd.conf & server=$!; listening 8081
        $T ab -q -n 200 -c 10 http://10.9.0.1:8081/small | grep -E 'Complete|Failed|Non-2xx'
        $T siege -b -q -c 10 -r 20 --no-parser http://10.9.0.1:8081/small 2>&1 | grep -i 'failed_tra' | tr -dc '0-9\\n'
        end $server"
    );
    let ab = "Complete requests:      200\nFailed requests:        0\n";
    says(&["lighttpd", "ab", "siege"], &script, &format!("hello\n{ab}{ab}same\n{ab}0\n"));
}

/// Four connections for one file.
#[test]
fn aria2c() {
    let script = format!(
        "conf() {{ {LIGHTTPD} }}
        conf 8081; lighttpd -D -f lighttpd.conf & server=$!; listening 8081
        $T aria2c -q -x 4 -s 4 -k 1M -o copy http://10.9.0.1:8081/big; echo $?; cmp big copy && echo same; end $server"
    );
    says(&["lighttpd", "aria2c"], &script, "0\nsame\n");
}

/// Both kinds of data connection: to the server, and from it.
#[test]
fn vsftpd_and_lftp() {
    says(
        &["vsftpd", "lftp"],
        r#"
mkdir pub pub/in empty; cp big small pub; chmod a-w pub; me=$(id -un)
conf() { printf '%s\n' listen=YES background=NO "listen_port=$1" anonymous_enable=YES "ftp_username=$me" run_as_launching_user=YES "anon_root=$PWD/pub" no_anon_password=YES \
    seccomp_sandbox=NO isolate=NO isolate_network=NO one_process_model=YES write_enable=YES anon_upload_enable=YES connect_from_port_20=NO "secure_chroot_dir=$PWD/empty" >vsftpd.conf; }
fetch() { # an address, a port, what to run lftp with, a name
    for passive in on off; do
        $3 lftp -e "set net:max-retries 2; set net:timeout 20; set ftp:passive-mode $passive; get big -o $4-$passive; cd in; put small -o $4-$passive; cls -1 | grep -c $4-$passive; bye" "ftp://$1:$2" 2>&1
        cmp big $4-$passive && echo same
    done
}
conf 2121; $T vsftpd $PWD/vsftpd.conf & server=$!; there 10.9.0.2 2121; fetch 10.9.0.2 2121 "" kernel; end $server
conf 2122; vsftpd $PWD/vsftpd.conf & server=$!; listening 2122; fetch 10.9.0.1 2122 "$T" transom; kill $server
"#,
        &"1\nsame\n".repeat(4),
    );
}

#[test]
fn perl() {
    says(
        &["perl"],
        r#"
cat >s.pl <<'E'
use IO::Socket::INET; $SIG{CHLD} = 'IGNORE';
my $l = IO::Socket::INET->new(LocalPort => 7001, Listen => 50, ReuseAddr => 1) or die $!;
while (my $c = $l->accept) { next if fork; while (<$c>) { print $c uc } exit }
E
cat >c.pl <<'E'
use IO::Socket::INET; my $s = IO::Socket::INET->new(PeerAddr => "$ARGV[0]:$ARGV[1]", Timeout => 10) or die $!;
print $s "hello from " . $s->sockhost . "\n"; $s->shutdown(1); print while <$s>;
my $n = IO::Socket::INET->new(PeerAddr => "$ARGV[0]:9", Timeout => 10); print $n ? "in\n" : "$!\n";
E
$T perl s.pl & server=$!; there 10.9.0.2 7001; perl c.pl 10.9.0.2 7001; end $server
perl s.pl & listening 7001; $T perl c.pl 10.9.0.1 7001
"#,
        "HELLO FROM 10.9.0.1\nConnection refused\nHELLO FROM 10.9.0.2\nConnection refused\n",
    );
}

#[test]
fn ruby() {
    says(
        &["ruby"],
        r#"
cat >s.rb <<'E'
require 'socket'; l = TCPServer.new('0.0.0.0', 7001)
loop { c = l.accept; Thread.new { while line = c.gets; c.write line.upcase; end; c.close } }
E
cat >c.rb <<'E'
require 'socket'; s = Socket.tcp(ARGV[0], ARGV[1].to_i, connect_timeout: 10)
s.puts "hello from #{s.local_address.ip_address}"; s.close_write; print s.read
begin; Socket.tcp(ARGV[0], 9, connect_timeout: 10); rescue SystemCallError => e; puts e.class; end
E
$T ruby s.rb & server=$!; there 10.9.0.2 7001; ruby c.rb 10.9.0.2 7001; end $server
ruby s.rb & listening 7001; $T ruby c.rb 10.9.0.1 7001
"#,
        "HELLO FROM 10.9.0.1\nErrno::ECONNREFUSED\nHELLO FROM 10.9.0.2\nErrno::ECONNREFUSED\n",
    );
}

#[test]
fn php() {
    says(
        &["php"],
        r#"
echo '<?php echo strtoupper($_GET["q"]), " ", $_SERVER["REMOTE_ADDR"], "\n";' >i.php
$T php -q -S 0.0.0.0:8080 >/dev/null 2>&1 & server=$!; answers 'http://10.9.0.2:8080/i.php?q=x'; curl -sS 'http://10.9.0.2:8080/i.php?q=hello'; end $server
web; $T php -r 'echo file_get_contents("http://10.9.0.1:8000/small"), strlen(file_get_contents("http://10.9.0.1:8000/big")), "\n"; var_dump(@stream_socket_client("tcp://10.9.0.1:9", $n, $m, 10)); echo $m, "\n";'
"#,
        "HELLO 10.9.0.1\nhello\n20000000\nbool(false)\nConnection refused\n",
    );
}

/// Its programs are where distributions keep several versions.
#[test]
fn postgres() {
    says(
        &["unshare"],
        r#"
for directory in /usr/lib/postgresql/*/bin; do PATH=$directory:$PATH; done
for program in initdb postgres psql; do command -v $program >/dev/null || { echo "SKIPPED: $program is not installed" >&2; echo skipped; exit; }; done
$U initdb -D data -U tester --no-sync -A trust >/dev/null || exit
echo 'host all all 10.9.0.0/24 trust' >>data/pg_hba.conf
serve() { $1 $U postgres -D data -p $2 -c listen_addresses='*' -c unix_socket_directories= -c fsync=off >log 2>&1 & server=$!; }
ask() { psql -h $1 -p $2 -U tester -d postgres -Atc "create temp table t as select generate_series(1, 50000) as i; select sum(i), max(inet_client_addr()::text) from t" | tail -n 1; }
serve "$T" 5432; there 10.9.0.2 5432; until psql -h 10.9.0.2 -p 5432 -U tester -d postgres -c '' >/dev/null 2>&1; do sleep 0.1; done; ask 10.9.0.2 5432
end $server
serve "" 5433; until psql -h 10.9.0.1 -p 5433 -U tester -d postgres -c '' >/dev/null 2>&1; do sleep 0.1; done
$T psql -h 10.9.0.1 -p 5433 -U tester -d postgres -Atc "create temp table t as select generate_series(1, 50000) as i; select sum(i), max(inet_client_addr()::text) from t" | tail -n 1
end $server
"#,
        "1250025000|10.9.0.1/32\n1250025000|10.9.0.2/32\n",
    );
}

#[test]
fn memcached() {
    says(
        &["memcached"],
        r#"
ask() { printf 'set a 0 0 5\r\nhello\r\nget a\r\nquit\r\n' | talk $1 $2 | tr -d '\r'; }
$T memcached -u root -l 0.0.0.0 -p 11211 -U 0 & server=$!; there 10.9.0.2 11211; ask 10.9.0.2 11211; end $server
memcached -u root -l 0.0.0.0 -p 11212 -U 0 & listening 11212
printf 'set a 0 0 5\r\nhello\r\nget a\r\nquit\r\n' | $T sh -c 'exec python3 -c "
import socket, sys
s = socket.create_connection((\"10.9.0.1\", 11212), 10); s.sendall(sys.stdin.buffer.read())
while data := s.recv(65536): sys.stdout.buffer.write(data)"' | tr -d '\r'
"#,
        &"STORED\nVALUE a 0 5\nhello\nEND\n".repeat(2),
    );
}

#[test]
fn beanstalkd() {
    says(
        &["beanstalkd"],
        r#"
$T beanstalkd -l 0.0.0.0 -p 11300 & server=$!; there 10.9.0.2 11300
printf 'put 1 0 60 5\r\nhello\r\nreserve\r\nquit\r\n' | talk 10.9.0.2 11300 | tr -d '\r'; kill $server
"#,
        "INSERTED 1\nRESERVED 1 5\nhello\n",
    );
}

#[test]
fn mosquitto() {
    says(
        &["mosquitto", "mosquitto_pub", "mosquitto_sub"],
        r#"
conf() { printf '%s\n' "listener $1 0.0.0.0" 'allow_anonymous true' 'user root' >mosquitto.conf; }
conf 1883; $T mosquitto -c mosquitto.conf 2>/dev/null & server=$!; there 10.9.0.2 1883
mosquitto_pub -h 10.9.0.2 -t kept -r -q 1 -m kernel; mosquitto_sub -h 10.9.0.2 -t kept -q 1 -C 1 -W 20; end $server
conf 1884; mosquitto -c mosquitto.conf 2>/dev/null & server=$!; listening 1884
$T mosquitto_pub -h 10.9.0.1 -p 1884 -t kept -r -q 1 -m transom; $T mosquitto_sub -h 10.9.0.1 -p 1884 -t kept -q 1 -C 1 -W 20; end $server
"#,
        "kernel\ntransom\n",
    );
}

#[test]
fn tinyproxy() {
    says(
        &["tinyproxy"],
        r#"
printf '%s\n' 'Port 8888' 'Listen 0.0.0.0' 'Timeout 30' 'MaxClients 50' 'LogLevel Critical' "LogFile \"$PWD/log\"" 'Bind 10.9.0.2' >tinyproxy.conf; web
$T tinyproxy -d -c tinyproxy.conf >/dev/null & server=$!; there 10.9.0.2 8888
curl -sS -m 20 -x http://10.9.0.2:8888 http://10.9.0.1:8000/small; curl -sS -m 60 -x http://10.9.0.2:8888 -o copy http://10.9.0.1:8000/big; cmp big copy && echo same; kill $server
"#,
        "hello\nsame\n",
    );
}

#[test]
fn dropbear() {
    says(
        &["dropbear", "dbclient", "dropbearkey"],
        r#"
{ cat /etc/passwd; echo "tester:x:1000:1000::$PWD:/bin/sh"; } >passwd; mount --bind passwd /etc/passwd
dropbearkey -t ed25519 -f host >/dev/null 2>&1; dropbearkey -t ed25519 -f me 2>/dev/null | grep ^ssh- >key; mkdir -m 700 .ssh; cp key .ssh/authorized_keys; chmod 600 .ssh/authorized_keys
serve() { $1 $U dropbear -F -E -p $2 -r host -P $PWD/pid-$2 2>log & server=$!; }
serve "$T" 2222; there 10.9.0.2 2222; $U dbclient -y -i me -p 2222 tester@10.9.0.2 'cat small; cat big' 2>/dev/null </dev/null >copy; head -n 1 copy; tail -c 20000000 copy | cmp - big && echo same; end $server
serve "" 2223; listening 2223; $T $U dbclient -y -i me -p 2223 tester@10.9.0.1 'cat small' 2>/dev/null </dev/null; end $server
"#,
        "hello\nsame\nhello\n",
    );
}

#[test]
fn stunnel() {
    says(
        &["stunnel", "openssl"],
        r#"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=test 2>/dev/null; cat key.pem cert.pem >both.pem; chmod 600 both.pem; web
printf '%s\n' 'foreground = yes' 'debug = 3' 'pid =' '[s]' 'accept = 0.0.0.0:8443' 'connect = 10.9.0.1:8000' "cert = $PWD/both.pem" 'local = 10.9.0.2' >stunnel.conf
$T stunnel stunnel.conf 2>/dev/null & server=$!; there 10.9.0.2 8443
curl -ksS -m 20 https://10.9.0.2:8443/small; curl -ksS -m 60 -o copy https://10.9.0.2:8443/big; cmp big copy && echo same; kill $server
"#,
        "hello\nsame\n",
    );
}

/// `source` binds an address before it connects.
#[test]
fn haproxy_with_a_source_address() {
    says(
        &["haproxy", "ab"],
        r#"
conf() { printf '%s\n' defaults ' mode http' ' timeout connect 20s' ' timeout client 20s' ' timeout server 20s' ' retries 0' 'frontend f' ' bind 0.0.0.0:8090' ' default_backend b' 'backend b' ' http-reuse never' " server s 10.9.0.1:8000 source $1" >haproxy.cfg; }
mkdir www; cp small www; conf 10.9.0.2
python3 -c "
import http.server, socketserver
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = self.client_address[0].encode() + b'\n'; self.send_response(200); self.send_header('Content-Length', str(len(text))); self.end_headers(); self.wfile.write(text)
    def log_message(self, *_): pass
class S(http.server.ThreadingHTTPServer): request_queue_size = 200
S(('0.0.0.0', 8000), H).serve_forever()" & listening 8000
$T haproxy -db -f haproxy.cfg 2>/dev/null & server=$!; there 10.9.0.2 8090
curl -sS -m 20 http://10.9.0.2:8090/; ab -q -n 200 -c 10 http://10.9.0.2:8090/ | grep -E 'Complete|Failed|Non-2xx'; end $server
"#,
        "10.9.0.2\nComplete requests:      200\nFailed requests:        0\n",
    );
}

/// The same of a proxy that keeps a cache.
#[test]
fn squid_with_an_outgoing_address() {
    says(
        &["squid"],
        r#"
{ cat /etc/passwd; echo "tester:x:1000:1000::$PWD:/bin/sh"; } >passwd; mount --bind passwd /etc/passwd
printf '%s\n' 'http_port 0.0.0.0:3128' 'tcp_outgoing_address 10.9.0.2' 'http_access allow all' 'cache deny all' "pid_filename $PWD/pid" "access_log none" "cache_log $PWD/cache.log" "coredump_dir $PWD" \
    'visible_hostname test' 'shutdown_lifetime 0 seconds' 'pinger_enable off' 'netdb_filename none' 'server_persistent_connections off' 'cache_effective_user tester' 'dns_nameservers 127.0.0.1' >squid.conf; web
$T $U squid -N -f $PWD/squid.conf >/dev/null 2>&1 & server=$!; there 10.9.0.2 3128
for turn in $(seq 40); do curl -sS -m 20 -x http://10.9.0.2:3128 http://10.9.0.1:8000/small; done | sort | uniq -c | tr -s ' '
curl -sS -m 60 -x http://10.9.0.2:3128 -o copy http://10.9.0.1:8000/big; cmp big copy && echo same; kill $server
"#,
        " 40 hello\nsame\n",
    );
}

/// A bus that asks the kernel who its peer is. TCP does not say, so nobody is anybody.
#[test]
fn dbus_daemon_lets_no_stranger_in() {
    says(
        &["dbus-daemon"],
        r#"
cat >bus.conf <<E
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>tcp:host=HOST,bind=HOST,port=5599,family=ipv4</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>
E
# A stranger says that it is root, or nobody in particular (which is answered by a question), or somebody else.
cat >stranger.py <<'E'
import socket, sys
for who in (b'30', b'', b'31303030', b'3635353334'):
    s = socket.create_connection((sys.argv[1], 5599), 20); s.sendall(b'\0AUTH EXTERNAL ' + who + b'\r\n'); print(s.recv(200).split()[0].decode(), end=' ')
print()
E
sed s/HOST/10.9.0.1/g bus.conf >plain.conf; dbus-daemon --nofork --nopidfile --config-file=plain.conf & server=$!; listening 5599; python3 stranger.py 10.9.0.1; end $server
sed s/HOST/10.9.0.2/g bus.conf >under.conf; $T dbus-daemon --nofork --nopidfile --config-file=under.conf & server=$!; there 10.9.0.2 5599; python3 stranger.py 10.9.0.2; kill $server
"#,
        &"REJECTED DATA REJECTED REJECTED \n".repeat(2),
    );
}
