//! Tasks of Tokio that log what ran where: the ground truth for recordings. Prints segments: `TASK
//! TID BEGIN END`, code of a task between two of its waits, with times of CLOCK_MONOTONIC in
//! nanoseconds.
//!
//! `cargo run --example tasks [THREADS]`, in this directory.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tracing_subscriber::prelude::*;

static LOG: Mutex<Vec<(String, i32, u64, u64)>> = Mutex::new(Vec::new());

fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid address.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn compute(task: &str, microseconds: u64) {
    let (begin, since) = (now(), Instant::now());
    while since.elapsed() < Duration::from_micros(microseconds) {}
    // SAFETY: no arguments.
    let tid = unsafe { libc::gettid() };
    LOG.lock()
        .unwrap()
        .push((task.to_owned(), tid, begin, now()));
}

async fn worker(name: String, lock: Arc<tokio::sync::Mutex<u64>>) {
    for round in 0..5 {
        compute(&name, 50);
        tokio::time::sleep(Duration::from_millis(1)).await;
        compute(&name, 20);
        let mut held = lock.lock().await;
        compute(&name, 30);
        tokio::time::sleep(Duration::from_micros(100)).await;
        *held += round;
        drop(held);
        compute(&name, 10);
        tokio::task::yield_now().await;
    }
    compute(&name, 5);
}

async fn echo(listener: TcpListener) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut byte = [0];
    while stream.read(&mut byte).await.unwrap() > 0 {
        compute("echo", 10);
        stream.write_all(&byte).await.unwrap();
    }
}

async fn client(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    for byte in 0..5 {
        compute("client", 10);
        stream.write_all(&[byte]).await.unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).await.unwrap();
    }
}

async fn run() {
    compute("main", 10);
    let lock = Arc::new(tokio::sync::Mutex::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = vec![tokio::spawn(echo(listener)), tokio::spawn(client(port))];
    for number in 0..20 {
        tasks.push(tokio::spawn(worker(format!("w{number}"), lock.clone())));
    }
    for task in tasks {
        task.await.unwrap();
        compute("main", 1);
    }
    assert_eq!(*lock.lock().await, 200);
}

fn main() {
    tracing_subscriber::registry()
        .with(tracebraid_tokio::layer())
        .init();
    let threads = std::env::args()
        .nth(1)
        .map_or(2, |text| text.parse().unwrap());
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(threads).enable_all();
    runtime.build().unwrap().block_on(run());
    for (task, tid, begin, end) in LOG.lock().unwrap().iter() {
        println!("{task} {tid} {begin} {end}");
    }
}
