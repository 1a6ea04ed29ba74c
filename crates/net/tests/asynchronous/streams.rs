//! Streams and listeners.

use crate::support::{connection, hosts, run};
use std::io::ErrorKind;
use std::sync::{Arc, Barrier};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use transom_net::tokio::{TcpListener, TcpStream};
use transom_net::{Bytes, Received};

#[test]
fn a_thousand_connections_without_a_thread_or_a_descriptor_each() {
    run(async {
        let (a, b) = hosts();
        let listener = TcpListener::bind(&b, "10.0.0.2:7").await.unwrap();
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let echo = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut input, mut output) = stream.split();
                    tokio::io::copy(&mut input, &mut output).await
                });
            }
        });
        let before = descriptors();
        let mut streams = Vec::new();
        for _ in 0..1000 {
            streams.push(TcpStream::connect(&a, "10.0.0.2:7").await.unwrap());
        }
        let tasks: Vec<_> = (0u32..)
            .zip(streams)
            .map(|(number, mut stream)| {
                tokio::spawn(async move {
                    for round in 0..3 {
                        let said = [number.to_be_bytes(), (round as u32).to_be_bytes()].concat();
                        stream.write_all(&said).await.unwrap();
                        let mut heard = [0; 8];
                        stream.read_exact(&mut heard).await.unwrap();
                        assert_eq!(heard, *said);
                    }
                    stream
                })
            })
            .collect();
        let mut kept = Vec::new();
        for task in tasks {
            kept.push(task.await.unwrap());
        }
        // Tests beside this one have a few.
        assert!(descriptors() < before + 100, "{} and {before}", descriptors());
        echo.abort();
    });
}

#[test]
fn halves_carry_data_both_ways_and_come_together_again() {
    run(async {
        let (a, b) = hosts();
        let (client, server) = connection(&a, &b).await;
        const BYTES: usize = 2 << 20;
        let (mut from_server, mut to_server) = client.into_split();
        let (mut from_client, mut to_client) = server.into_split();
        let data: Arc<[u8]> = (0..BYTES).map(|n| (n * 7) as u8).collect();
        let (up, down) = (Arc::clone(&data), Arc::clone(&data));
        let writers = [
            tokio::spawn(async move {
                to_server.write_all(&up).await.unwrap();
                to_server
            }),
            tokio::spawn(async move {
                to_client.write_all(&down).await.unwrap();
                to_client
            }),
        ];
        let mut heard = (vec![0; BYTES], vec![0; BYTES]);
        let (first, second) = tokio::join!(
            from_server.read_exact(&mut heard.0),
            from_client.read_exact(&mut heard.1)
        );
        assert_eq!((first.unwrap(), second.unwrap()), (BYTES, BYTES));
        assert!(heard.0 == *data && heard.1 == *data);
        let [to_server, to_client] = writers;
        let (to_server, to_client) = (to_server.await.unwrap(), to_client.await.unwrap());
        // Only halves of one stream fit together.
        let error = from_server.reunite(to_client).unwrap_err();
        let client = to_server.reunite(error.0).unwrap();
        assert_eq!(client.peer_addr().unwrap().ip().to_string(), "10.0.0.2");
        // A writing half that is dropped ends the stream.
        drop(error.1);
        let (mut rest, _keeps) = client.into_split();
        assert_eq!(rest.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn lines_are_read_from_the_memory_in_which_they_arrived() {
    run(async {
        let (a, b) = hosts();
        let (mut client, mut server) = connection(&a, &b).await;
        let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let sent = text.clone();
        let writer = tokio::spawn(async move {
            server.write_all(sent.as_bytes()).await.unwrap();
            server.shutdown().await.unwrap();
            server
        });
        // What was lent and not consumed is in front of everything else.
        let lent = {
            let (mut input, _) = client.split();
            input.fill_buf().await.unwrap().to_vec()
        };
        let mut seen = vec![0; 10];
        assert_eq!(client.peek(&mut seen).await.unwrap(), 10);
        assert_eq!(seen, lent[..10]);
        client.readable().await.unwrap();
        assert_eq!(client.try_read(&mut seen).unwrap(), 10);
        assert_eq!(seen, lent[..10]);
        let mut heard = String::from_utf8(seen).unwrap();
        let (mut input, _output) = client.split();
        while input.read_line(&mut heard).await.unwrap() > 0 {}
        assert_eq!(heard, text);
        drop(writer.await.unwrap());
    });
}

#[test]
fn a_stream_is_used_after_its_halves_in_the_same_scope() {
    run(async {
        let (a, b) = hosts();
        let (mut client, mut server) = connection(&a, &b).await;
        client.write_all(b"there and back").await.unwrap();
        client.shutdown().await.unwrap();
        let (mut input, mut output) = server.split();
        assert_eq!(tokio::io::copy(&mut input, &mut output).await.unwrap(), 14);
        // Both halves are still there: they have no destructor that would borrow the stream until the end of the scope.
        server.write_all(b" again").await.unwrap();
        server.shutdown().await.unwrap();
        let mut heard = String::new();
        client.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "there and back again");
    });
}

#[test]
fn every_byte_is_read_once() {
    run(async {
        let (a, b) = hosts();
        let (mut client, mut server) = connection(&a, &b).await;
        let data: Vec<u8> = (0..400_000).map(|n| (n % 251) as u8).collect();
        let sent = data.clone();
        let writer = tokio::spawn(async move {
            server.write_all(&sent).await.unwrap();
            server.shutdown().await.unwrap();
        });
        let mut heard = Vec::new();
        loop {
            let (mut input, _output) = client.split();
            // What is lent here stays in the stream, and two threads share it.
            let lent = input.fill_buf().await.unwrap().len();
            if lent == 0 {
                break;
            }
            let start = Barrier::new(2);
            let reader = || {
                start.wait();
                let mut byte = [0];
                let next = || client.try_read(&mut byte).is_ok_and(|n| n > 0).then(|| byte[0]);
                std::iter::from_fn(next).take(lent.div_ceil(2)).collect::<Vec<u8>>()
            };
            std::thread::scope(|scope| {
                let readers = [scope.spawn(reader), scope.spawn(reader)];
                readers.into_iter().for_each(|reader| heard.extend(reader.join().unwrap()));
            });
        }
        writer.await.unwrap();
        // In no order that is known: how often each byte came.
        let count = |bytes: &[u8]| {
            let mut counts = [0; 256];
            bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
            counts
        };
        assert_eq!(count(&heard), count(&data));
    });
}

#[test]
fn what_was_lent_is_read_first() {
    run(async {
        let (a, b) = hosts();
        let (mut client, mut server) = connection(&a, &b).await;
        server.write_all(b"one two three").await.unwrap();
        let (mut input, _output) = client.split();
        assert_eq!(input.fill_buf().await.unwrap(), b"one two three");
        input.consume(1);
        input.consume(1);
        assert_eq!(client.try_read(&mut [0; 2]).unwrap(), 2);
        let (mut input, _output) = client.split();
        assert_eq!(input.fill_buf().await.unwrap(), b"two three");
        let mut seen = [0; 4];
        assert_eq!(input.try_read(&mut seen).unwrap(), 4);
        // That is not consumed a second time.
        input.consume(4);
        assert_eq!(client.read_or_hole(&mut seen).unwrap(), Received::Bytes(4));
        assert_eq!(&seen, b"thre");
        assert_eq!(client.read_chunk().unwrap().unwrap(), "e");
        assert_eq!(client.read_chunk().unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn memory_is_written_without_a_copy() {
    run(async {
        let (a, b) = hosts();
        let (client, mut server) = connection(&a, &b).await;
        const BYTES: usize = 20 << 20;
        let data: Vec<u8> = (0..BYTES).map(|n| (n >> 7) as u8).collect();
        let mut bytes = Bytes::from(data.clone());
        let writer = tokio::spawn(async move {
            // The buffers do not hold all of it, so this has to wait for room.
            while !bytes.is_empty() {
                client.write_owned(&mut bytes).await.unwrap();
            }
        });
        let mut heard = Vec::new();
        server.read_to_end(&mut heard).await.unwrap();
        assert!(heard == data);
        writer.await.unwrap();
    });
}

#[test]
fn trying_does_not_wait() {
    run(async {
        let (a, b) = hosts();
        let (client, server) = connection(&a, &b).await;
        assert_eq!(client.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        client.writable().await.unwrap();
        let data = [5; 65_536];
        let mut written = 0;
        loop {
            match client.try_write(&data) {
                Ok(n) => written += n,
                Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        let mut read = 0;
        let mut buffer = [0; 65_536];
        while read < written {
            server.readable().await.unwrap();
            match server.try_read(&mut buffer) {
                Ok(n) => read += n,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        client.writable().await.unwrap();
    });
}

#[test]
fn errors_are_those_of_the_blocking_sockets() {
    run(async {
        let (a, b) = hosts();
        let refused = TcpStream::connect(&a, "10.0.0.2:9").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let (mut client, server) = connection(&a, &b).await;
        server.set_zero_linger().unwrap();
        drop(server);
        let reset = client.read(&mut [0]).await.unwrap_err();
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
        // It is reported once.
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(client.write(&[0]).await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        client.shutdown().await.unwrap();
    });
}
