//! What becomes of the others, and of lists, while one host is away, and how soon that is known.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::wait_until;
use serde_json::Value;

use crate::Plan;
use crate::place::Place;
use crate::room::Room;

/// Far longer than any of it may take: what takes longer counts with this.
const LATEST: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Outage {
    pub(crate) what: &'static str,
    pub(crate) target: &'static str,
    /// From the moment in which it fell silent until it was not called `ok` any more, each time.
    pub(crate) known_after: Vec<Duration>,
    /// What was told by a hook on the other hosts with agtmux meanwhile.
    pub(crate) native: Vec<Duration>,
    /// How long `list panes` took meanwhile.
    pub(crate) lists: Vec<Duration>,
}

/// How a host is taken away, and given back.
type Change = fn(&Room);

const KINDS: [(&str, &str, Change, Change); 4] = [
    ("the link to a host with agtmux is cut", "vm2", |room| room.link().cut(), |room| room.link().mend()),
    (
        "the sshd of a host with agtmux is stopped",
        "vm2",
        |room| room.host("vm2").freeze(),
        |room| {
            room.host("vm2").thaw();
        },
    ),
    ("the sshd of a host with agtmux is killed", "vm2", |room| room.host("vm2").kill(), |room| room.host("vm2").up()),
    ("the sshd of a bare host is stopped", "vm3", |room| room.host("vm3").freeze(), |room| room.host("vm3").thaw()),
];

/// How long lists take while every host is well.
pub(crate) fn lists(room: &Room, plan: &Plan) -> Vec<Duration> {
    (0..plan.lists).map(|_| list(room)).collect()
}

pub(crate) fn measure(room: &Room, plan: &Plan) -> Vec<Outage> {
    let possible = KINDS.iter().filter(|(what, ..)| room.link.is_some() || !what.contains("link"));
    possible.map(|(what, target, away, back)| one(room, plan, (what, target), *away, *back)).collect()
}

fn one(room: &Room, plan: &Plan, (what, target): (&'static str, &'static str), away: Change, back: Change) -> Outage {
    eprintln!("{what}");
    let mut outage = Outage { what, target, known_after: Vec::new(), native: Vec::new(), lists: Vec::new() };
    for n in 1..=plan.outages {
        // It falls silent at any time between two of its words.
        thread::sleep(Duration::from_millis(700 * u64::from(n)));
        let began = Instant::now();
        away(room);
        while health(room, target) == "ok" && began.elapsed() < LATEST {
            outage.lists.push(list(room));
            thread::sleep(LOOK_EVERY);
        }
        outage.known_after.push(began.elapsed());
        if n == plan.outages {
            // While it is tried again and again.
            for place in room.places.iter().filter(|place| place.tells && place.target != target) {
                let told = place.lags(&room.lines, plan.rounds_away, &["running", "completed"], Place::says);
                outage.native.extend(told);
                outage.lists.extend(lists(room, plan));
            }
        }
        back(room);
        let connected = room.hub.agtmux().args(["target", "connect", target]).stdout(Stdio::null()).status();
        assert!(connected.is_ok(), "it is tried at once");
        wait_until("the host to be well again", LATEST, || health(room, target) == "ok");
    }
    outage
}

fn list(room: &Room) -> Duration {
    let began = Instant::now();
    let listed = room.hub.agtmux().args(["list", "panes", "--all", "--json"]).stdout(Stdio::null()).status();
    assert!(listed.is_ok_and(|status| status.success()), "a list is given");
    began.elapsed()
}

fn health(room: &Room, target: &str) -> String {
    let output = room.hub.agtmux().args(["target", "list", "--json"]).output().expect("it runs");
    let targets: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let found = targets["items"].as_array().into_iter().flatten().find(|item| item["name"] == target);
    found.and_then(|item| item["health"].as_str()).unwrap_or_default().to_owned()
}
