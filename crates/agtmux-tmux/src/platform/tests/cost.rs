//! Measures how much CPU time the watches cost. Run these tests by hand: `cargo test --release -p agtmux-tmux cost --
//! --ignored --nocapture --test-threads 1`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::PlatformFixture;
use super::pty::Pty;
use crate::platform::WatchToken;

const WATCHED: usize = 1000;
const BUSY: usize = 20;
const LENGTH: Duration = Duration::from_secs(10);

/// The CPU time of the current thread. The watcher runs in this thread, but the writer does not.
fn own_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("time goes forward")
}

async fn count_signals(fixture: &mut PlatformFixture) -> usize {
    let (mut signals, end) = (0, tokio::time::Instant::now() + LENGTH);
    while tokio::time::timeout_at(end, fixture.signals.recv()).await.is_ok() {
        signals += 1;
    }
    signals
}

async fn measure(what: &str, fixture: &mut PlatformFixture) {
    let (switches, cpu) = (switches_of_this_thread(), own_cpu_time());
    let signals = count_signals(fixture).await;
    let (switches, cpu) = (switches_of_this_thread() - switches, own_cpu_time() - cpu);
    let percent = cpu.as_secs_f64() / LENGTH.as_secs_f64() * 100.0;
    println!("{what}: {percent:.4} % of a core ({cpu:?}), {switches} switches, {signals} signals in {LENGTH:?}");
}

fn switches_of_this_thread() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("this thread runs");
    let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
    counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum()
}

/// Writes to each terminal ten times a second until `stop` is set. The terminals take turns, so that the writes are
/// spread evenly.
fn keep_busy(ptys: Vec<Pty>, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let pause = Duration::from_millis(100) / u32::try_from(ptys.len()).expect("a few");
        let mut next = Instant::now();
        for pty in ptys.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
            pty.write();
            next += pause;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    })
}

#[tokio::test]
#[ignore = "a measurement"]
async fn cost_of_watching() {
    let mut fixture = PlatformFixture::native();
    let mut ptys: Vec<_> = (0..WATCHED).map(|_| Pty::open()).collect();
    let begun = Instant::now();
    for (number, pty) in ptys.iter().enumerate() {
        fixture.watcher.watch_terminal(WatchToken(number as u64), &pty.path).expect("a pty can be watched");
    }
    println!("watching {WATCHED} terminals took {:?}", begun.elapsed());
    measure("1000 idle terminals", &mut fixture).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = keep_busy(ptys.split_off(WATCHED - BUSY), stop.clone());
    measure("1000 terminals, 20 of them busy", &mut fixture).await;
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("no panic in the writer");
}

#[tokio::test]
#[ignore = "a measurement"]
async fn latency_of_a_write() {
    let (mut fixture, sent) = (PlatformFixture::native(), Arc::new(Mutex::new(Instant::now())));
    let ptys: Vec<_> = (0..200).map(|_| Pty::open()).collect();
    for (number, pty) in ptys.iter().enumerate() {
        fixture.watcher.watch_terminal(WatchToken(number as u64), &pty.path).expect("a pty can be watched");
    }
    let writer = std::thread::spawn({
        let sent = sent.clone();
        move || {
            for pty in &ptys {
                std::thread::sleep(Duration::from_millis(250));
                *sent.lock().expect("no panic elsewhere") = Instant::now();
                pty.write();
            }
            ptys
        }
    });
    let mut took = Vec::new();
    for number in 0..200 {
        fixture.until(crate::platform::PlatformSignal::Wrote(WatchToken(number))).await;
        took.push(sent.lock().expect("no panic elsewhere").elapsed());
        fixture.until(crate::platform::PlatformSignal::Wrote(WatchToken(number))).await;
    }
    took.sort_unstable();
    println!("write to signal: p50 {:?}, p99 {:?}", took[100], took[198]);
    drop(writer.join());
}

#[tokio::test]
#[ignore = "a measurement"]
async fn cost_of_process_trees() {
    for (name, fixture) in [("native", PlatformFixture::native()), ("portable", PlatformFixture::portable())] {
        let mut children: Vec<_> =
            (0..200).map(|_| std::process::Command::new("sleep").arg("1000").spawn().expect("sleep starts")).collect();
        let roots: Vec<_> = children.iter().map(std::process::Child::id).collect();
        let begun = Instant::now();
        let trees = fixture.processes.trees(&roots).expect("readable");
        println!("{name}: trees of {} roots took {:?}", trees.len(), begun.elapsed());
        let begun = Instant::now();
        assert_eq!(roots.iter().filter_map(|&root| fixture.processes.foreground_pgrp(root)).count(), 0);
        println!("{name}: foreground group of one took {:?}", begun.elapsed() / 200);
        let begun = Instant::now();
        let reported = roots.iter().filter_map(|&root| fixture.processes.wakeups(root)).count();
        println!("{name}: wakeups of one took {:?} ({reported} reported)", begun.elapsed() / 200);
        for child in &mut children {
            child.kill().expect("our own child");
            child.wait().expect("our own child");
        }
    }
}
