//! Futures that are dropped before they are ready have taken nothing and lost nothing.

use crate::support::{connection, hosts, run};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use transom_net::tokio::{TcpListener, TcpStream};

/// Polls once, and drops it.
macro_rules! give_up {
    ($future:expr) => {{
        let given_up = tokio::select! {
            biased;
            _ = $future => false,
            () = std::future::ready(()) => true,
        };
        assert!(given_up, "it did not wait");
    }};
}

#[test]
fn reading_writing_and_waiting() {
    run(async {
        let (a, b) = hosts();
        let (mut client, mut server) = connection(&a, &b).await;
        let mut buffer = [0; 64];
        give_up!(client.read(&mut buffer));
        give_up!(async { client.split().0.fill_buf().await.map(<[u8]>::len) });
        give_up!(client.peek(&mut buffer));
        give_up!(client.readable());
        server.write_all(b"all of it").await.unwrap();
        assert_eq!(client.read(&mut buffer).await.unwrap(), 9);
        assert_eq!(&buffer[..9], b"all of it");

        // A write that waits for room has written nothing.
        let data = vec![3; 1 << 20];
        let mut written = 0;
        loop {
            // The stack moves data to the peer meanwhile, so there may be room again by the time of the call.
            tokio::select! {
                biased;
                n = client.write(&data) => written += n.unwrap(),
                () = std::future::ready(()) => break,
            }
        }
        // The peer's window is full now as well: nothing makes room before it reads.
        loop {
            tokio::select! {
                biased;
                ready = client.writable() => {
                    ready.unwrap();
                    written += client.try_write(&data).unwrap_or(0);
                }
                () = std::future::ready(()) => break,
            }
        }
        client.shutdown().await.unwrap();
        let mut heard = Vec::new();
        server.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard.len(), written);
    });
}

#[test]
fn reading_in_a_race_with_a_timer() {
    run(async {
        let (a, b) = hosts();
        let (mut client, mut server) = connection(&a, &b).await;
        const BYTES: usize = 50_000;
        let writer = tokio::spawn(async move {
            for piece in 0..BYTES / 100 {
                server.write_all(&[piece as u8; 100]).await.unwrap();
                if piece % 10 == 0 {
                    tokio::time::sleep(Duration::from_micros(300)).await;
                }
            }
            server.shutdown().await.unwrap();
        });
        let mut heard = Vec::new();
        let mut buffer = [0; 777];
        loop {
            tokio::select! {
                n = client.read(&mut buffer) => match n.unwrap() {
                    0 => break,
                    n => heard.extend_from_slice(&buffer[..n]),
                },
                () = tokio::time::sleep(Duration::from_micros(100)) => {}
            }
        }
        writer.await.unwrap();
        let sent: Vec<u8> = (0..BYTES).map(|at| (at / 100) as u8).collect();
        assert_eq!(heard, sent);
    });
}

#[test]
fn accepting_and_connecting() {
    run(async {
        let (a, b) = hosts();
        let at = "10.0.0.2:7";
        let listener = TcpListener::bind(&b, at).await.unwrap();
        give_up!(listener.accept());
        let client = TcpStream::connect(&a, at).await.unwrap();
        let (server, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        drop((client, server));
        // Nobody is there: the attempt ends with its future.
        give_up!(TcpStream::connect(&a, "10.0.0.99:7"));
        let drained = tokio::task::spawn_blocking(move || a.drain(Duration::from_secs(20)));
        assert!(drained.await.unwrap());
    });
}

#[test]
fn a_waiting_task_may_be_aborted() {
    run(async {
        let (a, b) = hosts();
        let (client, mut server) = connection(&a, &b).await;
        let (mut input, _output) = client.into_split();
        let task = tokio::spawn(async move {
            let _ = input.read(&mut [0; 8]).await;
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        server.write_all(b"to nobody").await.unwrap();
    });
}
