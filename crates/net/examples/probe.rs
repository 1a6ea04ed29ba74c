//! throwaway probe
use std::io::{Read, Write};
use std::time::Instant;
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunOffload};
use transom_net::Stack;

fn main() {
    let mode = std::env::args().nth(1).unwrap_or("send".into());
    let mib: usize = std::env::args().nth(2).map_or(1024, |s| s.parse().unwrap());
    let ns = Namespace::new().unwrap();
    let tun = ns
        .run(|| {
            Tun::builder()
                .name("tp%d")
                .offload(TunOffload::Segmentation)
                .address("192.0.2.1/24".parse().unwrap())
                .open()
                .unwrap()
        })
        .unwrap();
    println!("{:?}", transom_device::Device::capabilities(&tun));
    let p = transom_net::Profile::default();
    let stack =
        Stack::builder().profile(p).address("192.0.2.2".parse().unwrap(), 24).start(tun).unwrap();
    let chunk = 256 * 1024;
    let total = mib << 20;
    match mode.as_str() {
        "send" => {
            let l = ns.run(|| std::net::TcpListener::bind("192.0.2.1:5001").unwrap()).unwrap();
            let t = std::thread::spawn(move || {
                let (mut s, _) = l.accept().unwrap();
                let mut buf = vec![0; 1 << 20];
                let mut n = 0;
                loop {
                    match s.read(&mut buf).unwrap() {
                        0 => break n,
                        k => n += k,
                    }
                }
            });
            let mut s = stack.connect("192.0.2.1:5001").unwrap();
            let buf = vec![7u8; chunk];
            let start = Instant::now();
            for _ in 0..total / chunk {
                s.write_all(&buf).unwrap();
            }
            s.shutdown(std::net::Shutdown::Write).unwrap();
            let n = s.read(&mut [0]).unwrap();
            let e = start.elapsed();
            println!("send {} Gb/s {n}", total as f64 * 8.0 / e.as_nanos() as f64);
            println!("{:?}", s.info());
            assert_eq!(t.join().unwrap(), total);
        }
        "recv" => {
            let l = stack.listen("192.0.2.2:5001").unwrap();
            let t = std::thread::spawn(move || {
                let mut s =
                    ns.run(|| std::net::TcpStream::connect("192.0.2.2:5001").unwrap()).unwrap();
                let buf = vec![7u8; chunk];
                for _ in 0..total / chunk {
                    s.write_all(&buf).unwrap();
                }
            });
            let (mut s, _) = l.accept().unwrap();
            let start = Instant::now();
            let mut buf = vec![0; 1 << 20];
            let mut n = 0;
            loop {
                match s.read(&mut buf).unwrap() {
                    0 => break,
                    k => n += k,
                }
            }
            let e = start.elapsed();
            println!("recv {} Gb/s", n as f64 * 8.0 / e.as_nanos() as f64);
            println!("{:?}", s.info());
            assert_eq!(n, total);
            t.join().unwrap();
        }
        "rr" => {
            let l = ns.run(|| std::net::TcpListener::bind("192.0.2.1:5001").unwrap()).unwrap();
            std::thread::spawn(move || {
                let (mut s, _) = l.accept().unwrap();
                s.set_nodelay(true).unwrap();
                let mut b = [0];
                while s.read(&mut b).unwrap() > 0 {
                    s.write_all(&b).unwrap();
                }
            });
            let mut s = stack.connect("192.0.2.1:5001").unwrap();
            s.set_nodelay(true).unwrap();
            let start = Instant::now();
            let n = 20000;
            for _ in 0..n {
                s.write_all(b"x").unwrap();
                s.read_exact(&mut [0]).unwrap();
            }
            println!("rr {} us", start.elapsed().as_nanos() as f64 / n as f64 / 1e3);
        }
        _ => {}
    }
}
