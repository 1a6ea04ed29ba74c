//! Servers that Transom's TCP serves, with clients of the kernel's.

use super::{BOTH, available, directory, inside};
use crate::support::sha256_of;

#[test]
fn python() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, digest) = directory();
    let script = "$T python3 -m http.server 8000 >/dev/null 2>&1 & server=$!
        answers http://10.9.0.2:8000/small
        curl -sS http://10.9.0.2:8000/small
        curl -sS http://127.0.0.1:8000/small
        curl -sS -o copy http://10.9.0.2:8000/big
        end $server; echo $?";
    for way in BOTH {
        let ended = inside(&path, &format!("{way}{script}")).success();
        assert_eq!(ended.text(), "hello\nhello\n143\n");
        assert_eq!(sha256_of(&path.join("copy")), digest);
    }
}

const NGINX: &str = "daemon off; pid PATH/pid; error_log stderr; worker_processes 2; user root;
    events { worker_connections 256; }
    http {
      access_log off; keepalive_requests 1000000; client_body_temp_path PATH/t1; proxy_temp_path PATH/t2;
      fastcgi_temp_path PATH/t3; uwsgi_temp_path PATH/t4; scgi_temp_path PATH/t5;
      server { listen 8080; root PATH; }
    }";

/// Two workers accept at one listener; a reload replaces them, and nothing is refused.
#[test]
fn nginx_with_two_workers_and_a_reload() {
    if !available(&["nginx", "wrk"]) {
        return;
    }
    let (_keep, path, digest) = directory();
    let file = path.join("nginx.conf");
    std::fs::write(&file, NGINX.replace("PATH", path.to_str().unwrap())).unwrap();
    let script = "$T nginx -e stderr -c $PWD/nginx.conf & server=$!
        answers http://10.9.0.2:8080/small
        curl -sS -o copy http://10.9.0.2:8080/big
        wrk -t 2 -c 40 -d 1s http://10.9.0.2:8080/small
        kill -HUP $(cat pid)
        wrk -t 2 -c 40 -d 1s http://10.9.0.2:8080/small
        curl -sS http://10.9.0.2:8080/small
        end $server; echo $?";
    for way in BOTH {
        let ended = inside(&path, &format!("{way}{script}")).success();
        let text = ended.text();
        assert!(text.ends_with("hello\n0\n"), "{text}{}", ended.stderr);
        assert_eq!(text.matches("Requests/sec").count(), 2, "{text}");
        assert!(!text.contains("Non-2xx"), "{text}");
        assert_eq!(sha256_of(&path.join("copy")), digest);
    }
}

/// The same the other way round: the kernel serves, and forty connections are Transom's.
#[test]
fn wrk() {
    if !available(&["nginx", "wrk"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let file = path.join("nginx.conf");
    std::fs::write(&file, NGINX.replace("PATH", path.to_str().unwrap())).unwrap();
    let script = "nginx -e stderr -c $PWD/nginx.conf & server=$!; listening 8080
        $T wrk -t 2 -c 40 -d 1s http://10.9.0.1:8080/small; end $server";
    for way in BOTH {
        let ended = inside(&path, &format!("{way}{script}"));
        let text = ended.text();
        assert!(text.contains("Requests/sec"), "{text}{}", ended.stderr);
        assert!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "{text}");
    }
}

const ASYNCIO: &str = r#"
import asyncio, sys
async def serve(reader, writer):
    data = await reader.read(100)
    writer.write(b"echo " + data)
    await writer.drain()
    writer.close()
async def server():
    async with await asyncio.start_server(serve, "0.0.0.0", 7000) as listener:
        await listener.serve_forever()
async def one(number):
    reader, writer = await asyncio.open_connection(sys.argv[1], 7000)
    writer.write(b"%d" % number)
    assert await reader.read() == b"echo %d" % number
    writer.close()
    await writer.wait_closed()
async def client():
    while True:
        try:
            await one(0)
            break
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)
    for _ in range(5):
        await asyncio.gather(*(one(number) for number in range(40)))
    print("all echoed")
asyncio.run(client() if len(sys.argv) > 1 else server())
"#;

#[test]
fn asyncio_on_both_sides() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("echo.py"), ASYNCIO).unwrap();
    let script = "$T python3 echo.py & server=$!
        python3 echo.py 10.9.0.2; end $server
        python3 echo.py & server=$!; $T python3 echo.py 10.9.0.1; end $server";
    for way in BOTH {
        let ended = inside(&path, &format!("{way}{script}"));
        assert_eq!(ended.text(), "all echoed\nall echoed\n", "{}", ended.stderr);
    }
}
