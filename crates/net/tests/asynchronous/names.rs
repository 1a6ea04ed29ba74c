//! Names of hosts, several addresses, and the end of a stack.

use crate::support::{hosts, run};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use transom_net::ConnectOptions;
use transom_net::tokio::{TcpListener, TcpStream, drain};

#[test]
fn each_address_of_a_list_is_tried() {
    run(async {
        let (a, b) = hosts();
        let listener = TcpListener::bind(&b, ("10.0.0.2", 0)).await.unwrap();
        let open = listener.local_addr().unwrap();
        // Nobody listens at the first.
        let closed = SocketAddr::new(open.ip(), open.port() ^ 1);
        let addresses = [closed, open];
        let stream = TcpStream::connect(&a, &addresses[..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        let refused = TcpStream::connect(&a, &[closed, closed][..]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let nowhere: [SocketAddr; 0] = [];
        let error = TcpStream::connect(&a, &nowhere[..]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn names_are_looked_up() {
    run(async {
        let (a, _b) = hosts();
        // The system knows the name, and it is no address of the stack.
        let error = TcpListener::bind(&a, "localhost:80").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        // RFC 6761 section 6.4: nobody has such a name.
        TcpStream::connect(&a, "nobody.invalid:80").await.unwrap_err();
        TcpStream::connect(&a, "no port").await.unwrap_err();
    });
}

#[test]
fn connections_come_from_the_chosen_address() {
    run(async {
        let (a, b) = hosts();
        let listener = TcpListener::bind(&b, "10.0.0.2:0").await.unwrap();
        let local = "10.0.0.1:4000".parse().unwrap();
        let options = ConnectOptions::default().with_local(Some(local));
        let at = listener.local_addr().unwrap();
        let (stream, accepted) =
            tokio::join!(TcpStream::connect_with(&a, at, &options), listener.accept());
        assert_eq!(stream.unwrap().local_addr().unwrap(), local);
        assert_eq!(accepted.unwrap().1, local);
    });
}

#[test]
fn a_stack_is_drained_when_its_connections_have_ended() {
    run(async {
        let (a, b) = hosts();
        let listener = TcpListener::bind(&b, "10.0.0.2:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stream, accepted) = tokio::join!(TcpStream::connect(&a, at), listener.accept());
        assert!(!drain(&a, Duration::from_millis(1)).await.unwrap(), "one is open");
        drop((stream, accepted));
        assert!(drain(&a, Duration::from_secs(60)).await.unwrap());
    });
}
