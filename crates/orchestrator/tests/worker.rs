//! `orchestrator worker`: real workers, real processes, whatever becomes of them.

mod common;

use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus};

use acta_core::history::Entry;
use acta_core::store::{Dedup, Enqueue, NewJob};
use acta_core::{Job, JobId, Json, Label, Name, Namespace, State};
use acta_testkit::block_on;
use common::Desk;

/// A worker that runs, and what it says.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    said: Vec<String>,
}

impl Running {
    /// Reads until a line contains all these parts.
    fn until_says(&mut self, parts: &[&str]) -> String {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            self.said.push(line.clone());
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
        }
        panic!("it never said {parts:?}: {:#?}", self.said);
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end; what it said in all.
    fn end(mut self) -> (ExitStatus, String) {
        self.said.extend(self.lines.by_ref().map(Result::unwrap));
        (self.child.wait().unwrap(), self.said.join("\n"))
    }

    /// Ends it politely, with nothing that runs.
    fn stop(self) {
        self.signal("-TERM");
        let (status, said) = self.end();
        assert_eq!(status.code(), Some(0), "{said}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only a test that failed has left it; a stopped one hears this, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A desk with a folder of definitions.
struct Shop {
    desk: Desk,
}

impl Shop {
    fn new() -> Self {
        let desk = Desk::new();
        std::fs::create_dir_all(desk.path().join("root/jobdefs")).unwrap();
        Self { desk }
    }

    /// Defines a shell command; its queue is `work`.
    fn define(&self, name: &str, script: &str, more: &str) -> PathBuf {
        let script = serde_json::to_string(script).unwrap();
        let text = format!(r#"{{"name": "{name}", "queue": "work", "command": ["sh", "-c", {script}]{more}}}"#);
        self.desk.write(&format!("root/jobdefs/{name}.json"), &text)
    }

    fn namespace() -> Namespace {
        Namespace::job_queue("work").unwrap()
    }

    /// Puts a job of this name into the queue.
    fn put(&self, name: &str, payload: &str) -> JobId {
        self.put_in(name, payload, None)
    }

    fn put_in(&self, name: &str, payload: &str, lane: Option<&str>) -> JobId {
        let job = NewJob {
            name: Some(Name::new("name", name).unwrap()),
            lane: lane.map(|lane| Label::new("lane", lane).unwrap()),
            ..NewJob::new(Json::new(payload).unwrap())
        };
        self.enqueue(job)
    }

    fn enqueue(&self, job: NewJob) -> JobId {
        let enqueue = Enqueue { namespace: Self::namespace(), jobs: vec![job] };
        block_on(self.desk.store().enqueue(enqueue)).unwrap().remove(0).id
    }

    /// Starts a worker on `work`.
    fn start(&self, arguments: &[&str]) -> Running {
        let arguments = [&["worker", "--queue", "work"], arguments].concat();
        let mut child = self.desk.start(&arguments);
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Running { child, lines, said: Vec::new() }
    }

    fn job(&self, id: &JobId) -> Job {
        block_on(self.desk.store().job(id.clone())).unwrap().job
    }

    fn state(&self, id: &JobId) -> State {
        self.job(id).standing.state
    }

    /// What has happened to a job beside its happy path, in words.
    fn history(&self, id: &JobId) -> Vec<String> {
        let entries: Vec<Entry> = block_on(self.desk.store().history(id.clone())).unwrap();
        entries.iter().map(|entry| format!("{:?} {:?}", entry.event, entry.fence)).collect()
    }

    /// A pipe with a name, for a job to say something, or to wait for something.
    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.desk.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// Waits for a line that a job writes into a pipe.
    fn hear(path: &PathBuf) -> String {
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.desk.path().join(name)).unwrap()
    }

    /// Tells the ledger the definitions: attempts and back-off are a job's from its enqueuing on.
    fn register(&self) {
        assert_eq!(self.once("1").code, Some(4));
    }

    fn once(&self, robots: &str) -> common::Ended {
        self.desk.run(&["worker", "--queue", "work", "--robots", robots, "--once"])
    }
}

/// Whether a process is there and no zombie.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// What `queues show` tells of the workers of `work`.
fn workers(shop: &Shop) -> Vec<serde_json::Value> {
    let shown = shop.desk.run(&["queues", "show", "--queue", "work", "--json"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    let told: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    told["workers"].as_array().unwrap().clone()
}

/// The same, once there are some: a worker shows itself while it begins.
fn listed(shop: &Shop) -> Vec<serde_json::Value> {
    let began = std::time::Instant::now();
    loop {
        let workers = workers(shop);
        if !workers.is_empty() {
            return workers;
        }
        assert!(began.elapsed() < std::time::Duration::from_mins(1), "it is never listed");
        std::thread::yield_now();
    }
}

#[test]
fn a_queue_shows_its_workers_until_they_have_ended() {
    let shop = Shop::new();
    shop.define("quick", "exit 0", "");
    let job = shop.put("quick", "1");
    let mut worker = shop.start(&["--robots", "3", "--robot", "r"]);
    worker.until_says(&["succeeded", job.as_str()]);
    let one = listed(&shop).remove(0);
    let pid = u64::from(worker.child.id());
    assert_eq!((one["robot"].as_str(), one["pid"].as_u64()), (Some("r"), Some(pid)));
    assert_eq!((one["concurrency"].as_u64(), one["lost"].as_bool()), (Some(3), Some(false)));
    let shown = shop.desk.run(&["queues", "show", "--queue", "work"]).out;
    assert!(shown.contains("last hour") && shown.contains(" here "), "{shown}");
    worker.stop();
    assert!(workers(&shop).is_empty(), "it said that it ended");
    // One that is killed says nothing: it is there until its silence has lasted long enough.
    let mut killed = shop.start(&["--robots", "1"]);
    let job = shop.put("quick", "2");
    killed.until_says(&["succeeded", job.as_str()]);
    assert_eq!(listed(&shop).len(), 1);
    killed.signal("-KILL");
    killed.end();
    assert_eq!(workers(&shop).len(), 1);
}

#[test]
fn each_end_has_its_outcome_and_a_line_of_its_own() {
    let shop = Shop::new();
    let script = r#"read code; echo "code $code" >&2; echo "[$code]" > "$ACTA_RESULT_FILE"; exit $code"#;
    shop.define("exits", script, "");
    let ids = ["0", "65", "3"].map(|code| shop.put("exits", code));
    let ended = shop.once("1");
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{ended:?}");
    let [done, business, system] = ids.map(|id| shop.job(&id));
    assert_eq!(done.standing.state, State::Succeeded);
    assert_eq!(done.detail.output, Some(Json::new("[0]").unwrap()));
    assert_eq!((business.standing.state, business.standing.business), (State::Failed, true));
    assert_eq!((system.standing.state, system.standing.business), (State::Failed, false));
    for (job, word) in [(&done, "succeeded"), (&business, "failed"), (&system, "failed")] {
        let id = &job.identity.id;
        assert!(ended.err.contains(&format!("Z started {id} exits (attempt 1 of 1)\n")), "{ended:?}");
        assert!(ended.err.contains(&format!("Z {word} {id} exits in ")), "{ended:?}");
    }
    assert_eq!(ended.err.lines().count(), 6, "{ended:?}");
    let logs = shop.desk.run(&["jobs", "logs", business.identity.id.as_str()]);
    assert_eq!(logs.out, "code 65\n");
}

#[test]
fn for_programs_each_line_is_json_and_hostile_text_stays_text() {
    let shop = Shop::new();
    shop.define("bad", r#"printf '{"message": "a\\u001b[2J\\nb"}' > "$ACTA_RESULT_FILE"; exit 1"#, "");
    let id = shop.put("bad", "null");
    let told = shop.once("1");
    assert!(told.err.contains(r"a\u{1b}[2J\u{a}b") && !told.err.contains('\u{1b}'), "{told:?}");
    shop.desk.run(&["jobs", "restart", id.as_str()]);
    let ended = shop.desk.run(&["worker", "--queue", "work", "--robots", "1", "--once", "--json"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let lines: Vec<serde_json::Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["event"], &lines[0]["name"], &lines[0]["attempt"]),
        (&"started".into(), &"bad".into(), &1.into())
    );
    assert_eq!((&lines[1]["event"], &lines[1]["outcome"]), (&"ended".into(), &"failed".into()));
    assert_eq!((&lines[1]["id"], &lines[1]["message"]), (&id.as_str().into(), &"a\u{1b}[2J\nb".into()));
    assert!(lines[1]["tookMs"].is_u64() && lines[1]["fence"] == 2);
}

#[test]
fn the_process_gets_what_run_would_give_it() {
    let shop = Shop::new();
    let script = r#"read input; echo "$ACTA_JOB_ID|$ACTA_ITEM_ID|$ACTA_QUEUE|$ACTA_ROBOT|$ACTA_ATTEMPT|$ACTA_FENCE|$input|$COLOUR|$SECRET""#;
    shop.define("show", script, r#", "input": "the definition's", "env": {"COLOUR": "blue"}"#);
    // What `run` has enqueued and nobody ran: its own input, not the definition's of now.
    let run_id = "job-work-abc-def";
    let dedup = Dedup { key: Label::new("job id", run_id).unwrap(), while_live: false };
    let payload = Json::new(format!(r#"{{"jobId":"{run_id}","input":{{ "a": 1.0 }}}}"#)).unwrap();
    let name = Some(Name::new("name", "show").unwrap());
    let run = shop.enqueue(NewJob { name, dedup: Some(dedup), ..NewJob::new(payload) });
    let other = shop.put("show", r#"{"jobId": "x", "input": 1}"#);
    let mut worker = shop.desk.command(&["worker", "--queue", "work", "--robots", "1", "--once", "--robot", "r7"]);
    let ended = worker.env("SECRET", "s").output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let log = |id: &JobId| shop.desk.run(&["jobs", "logs", id.as_str()]).out;
    assert_eq!(log(&run), format!("{run_id}|{run}|work|r7|1|1|{{ \"a\": 1.0 }}|blue|\n"));
    assert_eq!(log(&other), format!("{other}|{other}|work|r7|1|1|{{\"jobId\": \"x\", \"input\": 1}}|blue|\n"));
}

#[test]
fn several_run_at_once_and_never_more_than_the_robots() {
    let shop = Shop::new();
    // Each says that it is there and waits until it is let go, by pipes of its own.
    shop.define("meet", "read n; echo here > ../../there-$n; read line < ../../go-$n", "");
    let pipes = ["1", "2", "3"].map(|n| (shop.pipe(&format!("there-{n}")), shop.pipe(&format!("go-{n}"))));
    let ids = ["1", "2", "3"].map(|n| shop.put("meet", n));
    let mut worker = shop.start(&["--robots", "2"]);
    pipes[..2].iter().for_each(|(there, _)| assert_eq!(Shop::hear(there), "here"));
    let held = ids.iter().filter(|id| shop.state(id).is_held()).count();
    assert_eq!((held, shop.state(&ids[2])), (2, State::Ready), "two at once, and the third waits");
    std::fs::write(&pipes[1].1, "go\n").unwrap();
    worker.until_says(&["succeeded", ids[1].as_str()]);
    Shop::hear(&pipes[2].0);
    for number in [0, 2] {
        std::fs::write(&pipes[number].1, "go\n").unwrap();
        worker.until_says(&["succeeded", ids[number].as_str()]);
    }
    worker.stop();
    assert!(ids.iter().all(|id| shop.state(id) == State::Succeeded));
}

#[test]
fn a_lane_keeps_its_order_through_retries() {
    let shop = Shop::new();
    let script = r#"read n; echo "$n" >> ../../order; test "$n$ACTA_ATTEMPT" != 21"#;
    shop.define("lane", script, r#", "maxAttempts": 3, "backoff": "none""#);
    shop.register();
    for lane in ["a", "b"] {
        for number in ["1", "2", "3"] {
            shop.put_in("lane", number, Some(lane));
        }
    }
    let ended = shop.once("4");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.err.matches(" retried ").count(), 2, "{ended:?}");
    let order = shop.read("order");
    assert_eq!(order.lines().count(), 8, "{order}");
    let jobs = shop.desk.jobs();
    for lane in ["a", "b"] {
        let members = jobs.iter().filter(|found| found.job.identity.lane.as_ref().unwrap().as_str() == lane);
        let ends: Vec<_> = members.map(|found| (found.job.standing.state, found.job.standing.finished_at)).collect();
        assert!(ends.iter().all(|(state, _)| *state == State::Succeeded) && ends.is_sorted_by_key(|end| end.1));
    }
}

#[test]
fn attempts_end_and_then_it_is_failed() {
    let shop = Shop::new();
    shop.define("fails", "echo $ACTA_ATTEMPT $ACTA_FENCE; exit 1", r#", "maxAttempts": 3, "backoff": "none""#);
    shop.register();
    let id = shop.put("fails", "null");
    let ended = shop.once("1");
    assert_eq!((ended.code, ended.err.matches(" retried ").count()), (Some(0), 2), "{ended:?}");
    assert_eq!(shop.state(&id), State::Failed);
    assert_eq!(shop.desk.run(&["jobs", "logs", id.as_str()]).out, "1 1\n2 2\n3 3\n");
}

#[test]
fn a_timeout_ends_the_group_though_it_never_stops_writing() {
    let shop = Shop::new();
    shop.define("writes", "sleep 300 & echo $! > ../../pid; yes", r#", "timeout": "300ms""#);
    let id = shop.put("writes", "null");
    let ended = shop.once("1");
    assert!(ended.err.contains("it was ended after its timeout of 300ms"), "{ended:?}");
    assert_eq!(shop.state(&id), State::Failed);
    assert!(!is_alive(shop.read("pid").trim()));
}

#[test]
fn a_cancel_from_another_process_ends_the_group_and_nothing_else() {
    let shop = Shop::new();
    let there = shop.pipe("there");
    shop.define("waits", "trap '' TERM; sleep 300 & echo $! > ../../there; wait; sleep 300", "");
    shop.define("other", "read line < ../../go", "");
    let go = shop.pipe("go");
    let (id, other) = (shop.put("waits", "null"), shop.put("other", "null"));
    let mut worker = shop.start(&["--robots", "2"]);
    let sleeper = Shop::hear(&there);
    let asked = shop.desk.run(&["jobs", "cancel", id.as_str()]);
    assert!(asked.code == Some(0) && asked.out.contains("asked to stop"), "{asked:?}");
    worker.until_says(&["cancelled", id.as_str()]);
    assert_eq!(shop.state(&id), State::Cancelled);
    assert!(!is_alive(&sleeper), "it was killed with its group");
    assert!(shop.state(&other).is_held());
    std::fs::write(&go, "go\n").unwrap();
    worker.until_says(&["succeeded", other.as_str()]);
    worker.stop();
}

/// Stops a worker while it has no write under way: one that is stopped in the middle of a write keeps SQLite's lock.
fn stop_between_writes(shop: &Shop, worker: &Running) {
    let halt = || {
        worker.signal("-STOP");
        let stat = format!("/proc/{}/stat", worker.child.id());
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            std::thread::yield_now();
        }
    };
    match shop.desk.provider() {
        "file" => {
            let lock = std::fs::File::open(shop.desk.path().join("root/.lock")).unwrap();
            lock.lock().unwrap();
            halt();
        }
        "sqlite" => {
            let lock = rusqlite::Connection::open(shop.desk.path().join("root/acta.db")).unwrap();
            lock.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
            lock.execute_batch("BEGIN IMMEDIATE").unwrap();
            halt();
            lock.execute_batch("COMMIT").unwrap();
        }
        // A server's locks go with the statement, which ends without its client.
        _ => halt(),
    }
}

#[test]
fn c013_a_worker_that_was_away_kills_its_process_and_settles_nothing() {
    let shop = Shop::new();
    let (there, go) = (shop.pipe("there"), shop.pipe("go"));
    let script = r"echo $$ > ../../there; test $ACTA_FENCE = 1 && sleep 300; read line < ../../go";
    shop.define("long", script, r#", "lease": "1s", "maxAttempts": 1"#);
    let id = shop.put("long", "null");
    let mut first = shop.start(&["--robots", "1", "--robot", "first"]);
    let process = Shop::hear(&there);
    stop_between_writes(&shop, &first);
    let mut second = shop.start(&["--robots", "1", "--robot", "second"]);
    Shop::hear(&there);
    assert!(is_alive(&process), "nobody could end it meanwhile");
    first.signal("-CONT");
    let line = first.until_says(&["lost", id.as_str()]);
    assert!(line.contains("lease lost"), "{line}");
    assert!(!is_alive(&process));
    let job = shop.job(&id);
    assert!(job.standing.state.is_held() && job.standing.claimed_by.unwrap().as_str() == "second");
    std::fs::write(&go, "go\n").unwrap();
    second.until_says(&["succeeded", id.as_str()]);
    let job = shop.job(&id);
    assert_eq!((job.standing.state, job.standing.fence), (State::Succeeded, 2));
    let history = shop.history(&id);
    assert!(history.len() == 1 && history[0].to_lowercase().contains("lost"), "{history:?}");
    first.stop();
    second.stop();
}

#[test]
fn a_job_of_a_worker_that_was_killed_is_taken_by_the_next() {
    let shop = Shop::new();
    let there = shop.pipe("there");
    let script = r"test $ACTA_FENCE = 1 || exit 0; echo $$ > ../../there; exec sleep 300";
    shop.define("long", script, r#", "lease": "1s""#);
    let id = shop.put("long", "null");
    let first = shop.start(&["--robots", "1"]);
    let process = Shop::hear(&there);
    first.signal("-KILL");
    first.end();
    assert!(shop.state(&id).is_held());
    let mut second = shop.start(&["--robots", "1"]);
    second.until_says(&["succeeded", id.as_str()]);
    second.stop();
    let job = shop.job(&id);
    assert_eq!((job.standing.state, job.standing.fence, job.standing.attempts), (State::Succeeded, 2, 2));
    Command::new("kill").args(["-KILL", &process]).status().unwrap();
}

#[test]
fn asked_to_end_it_claims_no_more_and_lets_jobs_finish() {
    let shop = Shop::new();
    let (there, go) = (shop.pipe("there"), shop.pipe("go"));
    shop.define("waits", "echo here > ../../there; read line < ../../go", "");
    let ids = [shop.put("waits", "null"), shop.put("waits", "null")];
    let mut worker = shop.start(&["--robots", "1", "--grace", "10m"]);
    Shop::hear(&there);
    worker.signal("-TERM");
    worker.until_says(&["shutting down: 1 running"]);
    std::fs::write(&go, "go\n").unwrap();
    let (status, said) = worker.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("succeeded {}", ids[0])), "{said}");
    let job = shop.job(&ids[1]);
    assert_eq!((job.standing.state, job.standing.attempts), (State::Ready, 0));
}

#[test]
fn beyond_the_grace_the_group_is_ended_and_only_then_the_job_is_given_back() {
    let shop = Shop::new();
    let there = shop.pipe("there");
    // It refuses to end, and notes that it is alive as long as it is.
    let script = "trap '' TERM; echo $$ > ../../there; while :; do echo alive >> ../../alive; sleep 0.02; done";
    shop.define("stays", script, r#", "maxAttempts": 1"#);
    let id = shop.put("stays", "null");
    let mut worker = shop.start(&["--robots", "1", "--grace", "50ms"]);
    let process = Shop::hear(&there);
    worker.signal("-TERM");
    worker.until_says(&["released", id.as_str()]);
    assert!(!is_alive(&process), "dead before it is given back");
    let (status, said) = worker.end();
    assert_eq!(status.code(), Some(0), "{said}");
    let job = shop.job(&id);
    assert_eq!((job.standing.state, job.standing.attempts), (State::Ready, 0), "at no cost");
}

#[test]
fn a_second_signal_kills_at_once() {
    let shop = Shop::new();
    let there = shop.pipe("there");
    shop.define("stays", "trap '' TERM; sleep 300 & echo $! > ../../there; while :; do sleep 0.05; done", "");
    let id = shop.put("stays", "null");
    let mut worker = shop.start(&["--robots", "1", "--grace", "10m"]);
    let sleeper = Shop::hear(&there);
    worker.signal("-INT");
    worker.until_says(&["shutting down"]);
    worker.signal("-INT");
    let (status, said) = worker.end();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(!is_alive(&sleeper));
    let job = shop.job(&id);
    assert_eq!((job.standing.state, job.standing.attempts), (State::Ready, 0), "{said}");
}

#[test]
fn once_ends_when_there_is_nothing_more_and_says_where_there_was_nothing() {
    let shop = Shop::new();
    shop.define("work", "true", "");
    assert_eq!(shop.once("2").code, Some(4), "no such queue yet");
    let id = shop.put("work", "null");
    let later = shop.put("someone-else", "null");
    assert_eq!(shop.once("2").code, Some(0));
    assert_eq!((shop.state(&id), shop.state(&later)), (State::Succeeded, State::Ready));
    assert_eq!(shop.once("2").code, Some(4), "only another's");
}

#[test]
fn two_workers_share_a_queue_by_names() {
    let shop = Shop::new();
    let (a, b) = (shop.define("a", "true", ""), shop.define("b", "true", ""));
    let jobs: Vec<(&str, JobId)> =
        ["a", "b", "a", "b", "a"].into_iter().map(|name| (name, shop.put(name, "null"))).collect();
    let mut workers: Vec<Running> = [(&a, "ra"), (&b, "rb")]
        .into_iter()
        .map(|(path, robot)| shop.start(&["--robots", "1", "--robot", robot, "--jobdefs", path.to_str().unwrap()]))
        .collect();
    for (name, _) in &jobs {
        workers[usize::from(*name == "b")].until_says(&["succeeded"]);
    }
    for (name, id) in &jobs {
        let job = shop.job(id);
        assert_eq!((job.standing.state, job.standing.fence), (State::Succeeded, 1));
        assert_eq!(job.standing.claimed_by.unwrap().as_str(), format!("r{name}"));
    }
    workers.into_iter().for_each(Running::stop);
}

#[test]
fn wrong_definitions_are_refused_before_anything_is_claimed() {
    let shop = Shop::new();
    let worker = |arguments: &[&str]| {
        let ended = shop.desk.run(&[&["worker", "--queue", "work", "--robots", "1", "--once"], arguments].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        ended.err
    };
    assert!(worker(&[]).contains("no job definition whose queue is work"));
    let good = shop.define("good", "true", "");
    let id = shop.put("good", "null");
    shop.desk.write("root/jobdefs/bad.json", "{\n  \"name\": \"bad\",\n  \"comand\": [\"true\"]\n}\n");
    let told = worker(&[]);
    assert!(told.contains("bad.json: line 3, column 10: unknown field `comand`"), "{told}");
    assert!(told.contains("hint: nothing was claimed"), "{told}");
    std::fs::remove_file(shop.desk.path().join("root/jobdefs/bad.json")).unwrap();
    std::fs::copy(&good, shop.desk.path().join("root/jobdefs/again.json")).unwrap();
    let told = worker(&[]);
    assert!(told.contains("again.json") && told.contains("good.json") && told.contains("both define good"), "{told}");
    std::fs::remove_file(shop.desk.path().join("root/jobdefs/again.json")).unwrap();
    assert!(worker(&["--jobdefs", "nowhere"]).contains("nowhere"));
    assert!(worker(&["--grace", "soon"]).contains("--grace"));
    assert_eq!((shop.state(&id), shop.job(&id).standing.fence), (State::Ready, 0));
    let other = shop.desk.write("other.json", r#"{"name": "other", "command": ["true"]}"#);
    let told = worker(&["--jobdefs", other.to_str().unwrap()]);
    assert!(told.contains("skipping") && told.contains("its queue is other"), "{told}");
    let both = [good.to_str().unwrap(), other.to_str().unwrap(), good.to_str().unwrap()];
    let arguments = [&["worker", "--queue", "work", "--robots", "1", "--once", "--jobdefs"], &both[..]].concat();
    let ended = shop.desk.run(&arguments);
    assert!(ended.code == Some(0) && ended.err.contains("other.json: its queue is other"), "{ended:?}");
    assert_eq!(shop.state(&id), State::Succeeded);
}

#[test]
fn a_transaction_is_processing_while_its_process_runs() {
    let shop = Shop::new();
    let (there, go) = (shop.pipe("there"), shop.pipe("go"));
    shop.define("work", "echo here > ../../there; read line < ../../go; exit 65", "");
    let added = shop.desk.run(&["buildout", "add", "--transactions", "work", "--payload", "1", "--name", "work"]);
    let id = JobId::new(added.out.trim()).unwrap();
    let worker = shop.desk.start(&["worker", "--transactions", "work", "--robots", "1", "--once"]);
    Shop::hear(&there);
    assert_eq!(shop.state(&id), State::Running);
    std::fs::write(&go, "go\n").unwrap();
    assert_eq!(common::wait(worker).code, Some(0));
    let shown = shop.desk.run(&["jobs", "show", id.as_str()]);
    assert!(shown.out.contains("business-exception"), "{shown:?}");
}
