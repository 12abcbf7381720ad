//! The plainest server that could be relied on: no agents, no states, no secrets taken out, nobody who watches. Each event
//! is one row, committed before it is acknowledged.

use std::io::{BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rusqlite::Connection;

use crate::connection::read_message;
use crate::plan::LoadBenchPlan;
use crate::send::{self, EventLoad, SendStats};
use crate::setup::LoadBench;

pub(crate) fn measure(room: &LoadBench, plan: &LoadBenchPlan) -> SendStats {
    let socket = room.world.dir().join("plain.sock");
    let listener = UnixListener::bind(&socket).expect("the world is writable");
    let database = Connection::open(room.world.dir().join("plain.db")).expect("the world is writable");
    database.pragma_update(None, "journal_mode", "WAL").expect("set");
    database.pragma_update(None, "synchronous", "NORMAL").expect("set");
    database.execute_batch("CREATE TABLE events (n INTEGER PRIMARY KEY, body TEXT NOT NULL)").expect("made");
    let database = Arc::new(Mutex::new(database));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let database = database.clone();
            thread::spawn(move || serve(stream, &database));
        }
    });
    send::run(&EventLoad::new(plan, plan.baseline_duration, &room.runtimes), &socket, None).0
}

fn serve(stream: UnixStream, database: &Mutex<Connection>) {
    let mut stream = BufReader::new(stream);
    while let Ok(Some((_, body))) = read_message(&mut stream) {
        let body = String::from_utf8_lossy(&body);
        let written = database
            .lock()
            .expect("nobody panics with it")
            .prepare_cached("INSERT INTO events (body) VALUES (?1)")
            .and_then(|mut insert| insert.execute([body]));
        let status = if written.is_ok() { "202 Accepted" } else { "503 Service Unavailable" };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        if stream.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
