//! Programs whose runtimes make system calls of their own, or wait in their own way.

use super::{BOTH, available, directory, inside};

const SERVER: &str =
    "python3 -m http.server 8000 --bind 0.0.0.0 >/dev/null 2>&1 &\nlistening 8000\n";

const GO: &str = r#"package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	if os.Args[1] == "serve" {
		fmt.Println(http.ListenAndServe(":8001", http.FileServer(http.Dir("."))))
		return
	}
	answer, err := http.Get(os.Args[1])
	if err != nil { fmt.Println(err); os.Exit(1) }
	n, err := io.Copy(io.Discard, answer.Body)
	fmt.Println(n, err)
}
"#;

/// No C library, so nothing that could be preloaded.
#[test]
fn static_go() {
    if !available(&["python3", "go"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("main.go"), GO).unwrap();
    let script = "export GOCACHE=$(go env GOCACHE)
        export HOME=$PWD GOFLAGS=-mod=mod GOTELEMETRY=off CGO_ENABLED=0
        go build -o fetch main.go || exit 1
        for way in '' '--extension nice'; do
            T=\"$TRANSOM exec $way --\"
            $T ./fetch http://10.9.0.1:8000/big
            $T ./fetch serve & server=$!
            answers http://10.9.0.2:8001/small
            curl -sS http://10.9.0.2:8001/small
            end $server
        done";
    let ended = inside(&path, &format!("{SERVER}{script}"));
    assert_eq!(ended.text(), "20000000 <nil>\nhello\n".repeat(2), "{}", ended.stderr);
}

const JAVA: &str = r#"import java.net.*; import java.net.http.*;
public class Fetch { public static void main(String[] a) throws Exception {
  var request = HttpRequest.newBuilder(URI.create(a[0])).build();
  var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofByteArray());
  System.out.println(answer.body().length);
  System.out.println(URI.create(a[0]).toURL().openStream().readAllBytes().length);
} }
"#;

#[test]
fn java() {
    if !available(&["python3", "java"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("Fetch.java"), JAVA).unwrap();
    for way in BOTH {
        let script = format!("{way}{SERVER}$T java Fetch.java http://10.9.0.1:8000/big");
        let ended = inside(&path, &script);
        assert_eq!(ended.text(), "20000000\n20000000\n", "{}", ended.stderr);
    }
}

const JAVA_SERVER: &str = r#"import com.sun.net.httpserver.*; import java.net.*; import java.nio.file.*;
public class Serve { public static void main(String[] a) throws Exception {
  var server = HttpServer.create(new InetSocketAddress(8001), 50);
  server.createContext("/", exchange -> {
    var body = Files.readAllBytes(Path.of(exchange.getRequestURI().getPath().substring(1)));
    exchange.sendResponseHeaders(200, body.length);
    try (var out = exchange.getResponseBody()) { out.write(body); }
  });
  server.start();
} }
"#;

#[test]
fn java_serves() {
    if !available(&["java"]) {
        return;
    }
    let (_keep, path, digest) = directory();
    std::fs::write(path.join("Serve.java"), JAVA_SERVER).unwrap();
    for way in BOTH {
        let script = format!(
            "{way}$T java Serve.java & server=$!
            answers http://10.9.0.2:8001/small
            curl -sS http://10.9.0.2:8001/small; curl -sS -o copy http://10.9.0.2:8001/big
            curl -sS http://127.0.0.1:8001/small; end $server"
        );
        let ended = inside(&path, &script);
        assert_eq!(ended.text(), "hello\nhello\n", "{}", ended.stderr);
        assert_eq!(crate::support::sha256_of(&path.join("copy")), digest);
    }
}

const NODE: &str = r#"
const http = require('http');
if (process.argv[2] == 'serve') http.createServer((_, r) => r.end('hello\n')).listen(8001);
else {
  let left = 20;
  const next = () => http.get(process.argv[2], r => {
    r.resume();
    r.on('end', () => --left ? next() : console.log('done'));
  });
  next();
}
"#;

#[test]
fn node() {
    if !available(&["python3", "node"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("http.js"), NODE).unwrap();
    let script = "$T node http.js http://10.9.0.1:8000/small
        $T node http.js serve & server=$!
        answers http://10.9.0.2:8001/
        curl -sS http://10.9.0.2:8001/; curl -sSg 'http://[::1]:8001/'
        kill $server";
    for way in BOTH {
        let ended = inside(&path, &format!("{way}{SERVER}{script}"));
        assert_eq!(ended.text(), "done\nhello\nhello\n", "{}", ended.stderr);
    }
}
