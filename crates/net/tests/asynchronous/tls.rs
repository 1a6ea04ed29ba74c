//! TLS by rustls over Transom: a real handshake with the `s_server` of OpenSSL on the kernel's TCP.

use crate::connector::Connector;
use crate::http::request;
use crate::support::{Kernel, run};
use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use transom_net::tokio::TcpStream;

/// A certificate for `transom.test` that signs itself, and its key. `false` without OpenSSL.
fn certify(directory: &Path) -> bool {
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]);
    openssl.args(["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=transom"]);
    openssl.args(["-addext", "subjectAltName=DNS:transom.test"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    match openssl.current_dir(directory).stderr(Stdio::null()).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            eprintln!("SKIPPED: openssl is not installed: {error}");
            return false;
        }
    }
    true
}

fn trusting(directory: &Path) -> Arc<ClientConfig> {
    let certificate = CertificateDer::from_pem_file(directory.join("cert.pem")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

#[test]
fn hyper_asks_openssl_over_tls() {
    let directory = tempfile::tempdir().unwrap();
    if !certify(directory.path()) {
        return;
    }
    let Some(kernel) = Kernel::beside() else { return };
    let mut server = Command::new("openssl");
    // It answers each request with a page about the session.
    server.args(["s_server", "-www", "-quiet", "-accept", "4433", "-cert", "cert.pem"]);
    server.args(["-key", "key.pem"]).current_dir(directory.path());
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Some(_server) = kernel.spawn(&mut server) else { return };
    run(async {
        let trusting = trusting(directory.path());
        let connector = TlsConnector::from(Arc::clone(&trusting));
        let name = |name: &'static str| ServerName::try_from(name).unwrap();
        let connect = || async {
            loop {
                // The server takes a moment to listen.
                match TcpStream::connect(&kernel.stack, Kernel::theirs(4433)).await {
                    Ok(stream) => return stream,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        let stream = connector.connect(name("transom.test"), connect().await).await.unwrap();
        let version = stream.get_ref().1.protocol_version();
        assert_eq!(version, Some(rustls::ProtocolVersion::TLSv1_3));
        let page = Request::builder().uri("/").header("host", "transom.test");
        let page = page.body(Full::default()).unwrap();
        let (status, body) = request(stream, page).await;
        assert_eq!(status, 200);
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains("TLSv1.3"), "{body}");

        // Another server is not believed.
        let error = connector.connect(name("other.test"), connect().await).await.unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");

        // The same by a client that takes a URI and makes its own connections.
        let address = Kernel::theirs(0).ip();
        let connector = Connector::new(kernel.stack.clone(), Some(address), Some(trusting));
        let client = Client::builder(TokioExecutor::new()).build::<_, Full<Bytes>>(connector);
        let answer = client.get("https://transom.test:4433/".parse().unwrap()).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("TLSv1.3"));
        let error = client.get("https://other.test:4433/".parse().unwrap()).await.unwrap_err();
        assert!(error.is_connect(), "{error:?}");
    });
}
