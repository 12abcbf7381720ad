//! The baseline: a minimal durable server without agents, states, redaction or readers. It commits each event as one
//! row before it acknowledges the event.

use std::io::{BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rusqlite::Connection;

use super::plan::LoadBenchPlan;
use super::send::{self, EventLoad, SendStats};
use super::setup::LoadBench;
use crate::harness::connection::read_message;

pub(crate) fn measure(bench: &LoadBench, plan: &LoadBenchPlan) -> SendStats {
    let socket = bench.world.dir().join("plain.sock");
    let listener = UnixListener::bind(&socket).expect("the directory is writable");
    let database = Connection::open(bench.world.dir().join("plain.db")).expect("the directory is writable");
    database.pragma_update(None, "journal_mode", "WAL").expect("the pragma is set");
    database.pragma_update(None, "synchronous", "NORMAL").expect("the pragma is set");
    database
        .execute_batch("CREATE TABLE events (n INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        .expect("the table is created");
    let database = Arc::new(Mutex::new(database));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let database = database.clone();
            thread::spawn(move || serve(stream, &database));
        }
    });
    send::run(&EventLoad::new(plan, plan.baseline_duration, &bench.runtimes), &socket, None).0
}

fn serve(stream: UnixStream, database: &Mutex<Connection>) {
    let mut stream = BufReader::new(stream);
    while let Ok(Some((_, body))) = read_message(&mut stream) {
        let body = String::from_utf8_lossy(&body);
        let written = database
            .lock()
            .expect("the lock is not poisoned")
            .prepare_cached("INSERT INTO events (body) VALUES (?1)")
            .and_then(|mut insert| insert.execute([body]));
        let status = if written.is_ok() { "202 Accepted" } else { "503 Service Unavailable" };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        if stream.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
