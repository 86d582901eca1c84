//! The worker's decisions, by examples.

use super::*;
use crate::clock::Timestamp;
use crate::job::{Detail, FailureKind, Identity, KeyHold, Standing};
use crate::json::Json;
use crate::random::Seeded;
use crate::state::State;
use crate::store::Failure;

/// How long the leases of these tests are.
const LEASE_MS: i64 = 30_000;

/// A job that was just handed out under `fence`.
pub(super) fn job(name: &str, fence: u64) -> Job {
    let now = Timestamp::from_millis(1_000_000);
    let identity = Identity {
        id: JobId::new(name).unwrap(),
        name: None,
        lane: None,
        key: None,
        dedup_key: None,
        payload: Json::null(),
        created_at: now,
        backoff: None,
        lease: None,
        traceparent: None,
    };
    let standing = Standing {
        state: State::Claimed,
        place: 1,
        priority: 50,
        lane: None,
        lane_paused: false,
        paused: false,
        cancel_requested: false,
        attempts: 1,
        max_attempts: 3,
        retryable: true,
        fence,
        lost_leases: 0,
        run_at: None,
        expires_at: None,
        wait_until: None,
        lease_expires_at: Some(now.plus_ms(LEASE_MS)),
        claimed_by: None,
        claimed_at: Some(now),
        finished_at: None,
        retention: None,
        prune_at: None,
        business: false,
        settled: None,
        key_hold: KeyHold::None,
        has_detail: false,
    };
    Job { row: 1, identity, standing, detail: Detail::default() }
}

pub(super) fn unavailable() -> Error {
    Error::Unavailable { place: "the ledger".into(), why: "is out of reach".into() }
}

fn lost(ticket: &Ticket) -> Error {
    let id = ticket.id.clone();
    Error::LeaseLost { id, given: String::new(), fence: ticket.fence + 1, state: State::Claimed, holder: None }
}

fn closed() -> Error {
    Error::Closed { place: "the ledger".into(), why: "was moved".into() }
}

/// A worker and its clock, driven by hand.
struct Shop {
    worker: Worker,
    now_ms: u64,
    random: Seeded,
}

impl Shop {
    fn with(settings: Settings) -> Self {
        Self { worker: Worker::new(settings), now_ms: 0, random: Seeded::new(7) }
    }

    fn of(slots: usize) -> Self {
        Self::with(Settings { slots, ..Settings::default() })
    }

    fn on(&mut self, events: Vec<Event>) -> Vec<String> {
        self.worker.step(self.now_ms, events, &mut self.random).iter().map(told).collect()
    }

    fn at(&mut self, now_ms: u64) -> Vec<String> {
        self.now_ms = now_ms;
        self.on(vec![Event::Tick])
    }

    /// The first claim, answered by these jobs.
    fn begin(&mut self, jobs: Vec<Job>) -> Vec<String> {
        self.on(vec![]);
        self.on(vec![claimed(1, jobs)])
    }
}

fn claimed(number: u64, claimed: Vec<Job>) -> Event {
    Event::Exchanged { number, answer: Ok(Exchanged { settled: Vec::new(), claimed, next_in_ms: None }) }
}

fn settled(number: u64, answers: Vec<Result<SettleAnswer>>) -> Event {
    Event::Exchanged { number, answer: Ok(Exchanged { settled: answers, claimed: Vec::new(), next_in_ms: None }) }
}

fn failed(number: u64, fault: Error) -> Event {
    Event::Exchanged { number, answer: Err(fault) }
}

fn returned(job: &Job) -> Event {
    Event::Returned(Ticket::of(job), Outcome::Succeeded(None))
}

#[expect(clippy::unnecessary_wraps, reason = "it is always given as one of several answers")]
fn done() -> Result<SettleAnswer> {
    Ok(SettleAnswer { state: State::Succeeded, run_at: None })
}

#[expect(clippy::unnecessary_wraps, reason = "it is always given as one of several answers")]
fn beat(cancel_requested: bool) -> Result<Beat> {
    Ok(Beat { lease_expires_at: Timestamp::from_millis(1), cancel_requested })
}

/// An action in a word or two.
fn told(action: &Action) -> String {
    let ids = |tickets: Vec<&Ticket>| tickets.iter().map(|ticket| ticket.id.to_string()).collect::<Vec<_>>().join("+");
    match action {
        Action::Exchange { settlements, wanted, .. } => {
            let outcomes: Vec<String> = settlements
                .iter()
                .map(|(ticket, outcome)| match outcome {
                    Outcome::Succeeded(_) => ticket.id.to_string(),
                    Outcome::Release => format!("-{}", ticket.id),
                    other => format!("{}:{other:?}", ticket.id),
                })
                .collect();
            format!("settle [{}] claim {wanted}", outcomes.join(" "))
        }
        Action::Start(job) => format!("start {}", job.identity.id),
        Action::Tell(ticket, word) => format!("tell {} {word:?}", ticket.id),
        Action::Heartbeat(tickets) => format!("beat {}", ids(tickets.iter().collect())),
        Action::Note(Note::Settled(ticket, ..)) => format!("settled {}", ticket.id),
        Action::Note(Note::Lost(ticket, _)) => format!("lost {}", ticket.id),
        Action::Note(Note::Dropped(ticket, ..)) => format!("dropped {}", ticket.id),
        Action::Note(Note::Failing(_, _)) => "failing".into(),
        Action::Note(Note::Recovered) => "recovered".into(),
        Action::Note(Note::Abandoned(ticket)) => format!("abandoned {}", ticket.id),
        Action::End => "end".into(),
    }
}

#[test]
fn a_claim_fills_the_free_slots_and_results_travel_with_the_next() {
    let mut shop = Shop::of(3);
    assert_eq!(shop.on(vec![]), ["settle [] claim 3"]);
    assert!(shop.on(vec![Event::Changed]).is_empty(), "one exchange at a time");
    let jobs = [job("a", 1), job("b", 1), job("c", 1)];
    assert_eq!(shop.on(vec![claimed(1, jobs[..2].to_vec())]), ["start a", "start b", "settle [] claim 1"]);
    // What returns while the exchange is under way waits for the next, and travels together.
    assert!(shop.on(vec![returned(&jobs[0])]).is_empty());
    assert!(shop.on(vec![returned(&jobs[1])]).is_empty());
    assert_eq!(shop.on(vec![claimed(2, Vec::new())]), ["settle [a b] claim 3"]);
    assert_eq!(shop.on(vec![settled(3, vec![done(), done()])]), ["settled a", "settled b"]);
    assert!(shop.worker.awaits_changes());
    assert_eq!(shop.on(vec![Event::Changed]), ["settle [] claim 3"]);
}

#[test]
fn a_full_worker_claims_nothing_until_a_slot_is_free() {
    let mut shop = Shop::of(1);
    assert_eq!(shop.begin(vec![job("a", 1)]), ["start a"]);
    assert!(shop.on(vec![Event::Changed]).is_empty());
    assert!(!shop.worker.awaits_changes());
    assert_eq!(shop.on(vec![returned(&job("a", 1))]), ["settle [a] claim 1"]);
}

#[test]
fn it_looks_by_itself_after_the_poll_or_at_the_instant_it_was_told() {
    let mut shop = Shop::of(1);
    assert!(shop.begin(vec![]).is_empty());
    let poll_ms = shop.worker.alarm_ms().unwrap();
    assert!((900..=1_100).contains(&poll_ms), "{poll_ms}");
    assert!(shop.at(poll_ms - 1).is_empty());
    assert_eq!(shop.at(poll_ms), ["settle [] claim 1"]);
    let answer = Exchanged { settled: Vec::new(), claimed: Vec::new(), next_in_ms: Some(300) };
    shop.on(vec![Event::Exchanged { number: 2, answer: Ok(answer) }]);
    assert_eq!(shop.worker.alarm_ms(), Some(poll_ms + 300));
}

#[test]
fn all_leases_are_extended_in_one_call_at_a_third_of_the_shortest() {
    let mut shop = Shop::of(2);
    let mut short = job("short", 1);
    short.standing.lease_expires_at = Some(Timestamp::from_millis(1_000_000 + 9_000));
    assert_eq!(shop.begin(vec![job("a", 1), short]), ["start a", "start short"]);
    assert_eq!(shop.worker.alarm_ms(), Some(3_000));
    assert!(shop.at(2_999).is_empty());
    assert_eq!(shop.at(3_000), ["beat a+short"]);
    assert!(shop.at(5_000).is_empty());
    shop.on(vec![Event::Beaten(Ok(vec![beat(false), beat(false)]))]);
    assert_eq!(shop.worker.alarm_ms(), Some(6_000), "counted from when the call began");
}

#[test]
fn a_long_lease_is_extended_as_often_as_cancels_are_to_be_heard_of() {
    let mut shop = Shop::with(Settings { slots: 1, beat_ms: 2_000, ..Settings::default() });
    shop.begin(vec![job("a", 1)]);
    assert_eq!(shop.worker.alarm_ms(), Some(2_000));
    assert_eq!(shop.at(2_000), ["beat a"]);
    let mut shop = Shop::with(Settings { slots: 1, beat_ms: 20_000, ..Settings::default() });
    shop.begin(vec![job("a", 1)]);
    assert!(shop.at(9_999).is_empty());
    assert_eq!(shop.at(10_000), ["beat a"], "never later than at a third");
}

#[test]
fn who_works_until_idle_ends_when_a_claim_left_nothing_and_nothing_runs() {
    let of_two = || Shop::with(Settings { slots: 2, until_idle: true, ..Settings::default() });
    assert_eq!(of_two().begin(vec![]), ["end"]);
    let mut shop = of_two();
    shop.begin(vec![job("a", 1)]);
    assert_eq!(shop.on(vec![returned(&job("a", 1))]), ["settle [a] claim 2"], "it may have promoted another");
    let promoted = Exchanged { settled: vec![done()], claimed: vec![job("b", 1)], next_in_ms: None };
    assert_eq!(shop.on(vec![Event::Exchanged { number: 2, answer: Ok(promoted) }]), ["settled a", "start b"]);
    assert_eq!(shop.on(vec![returned(&job("b", 1))]), ["settle [b] claim 2"]);
    assert_eq!(shop.on(vec![failed(3, unavailable())]), ["failing"], "a call that was not done says nothing");
    let again_ms = shop.worker.alarm_ms().unwrap();
    assert_eq!(shop.at(again_ms), ["settle [b] claim 2"]);
    let put_off = Exchanged { settled: vec![done()], claimed: Vec::new(), next_in_ms: Some(5_000) };
    let answer = Event::Exchanged { number: 4, answer: Ok(put_off) };
    assert_eq!(shop.on(vec![answer]), ["recovered", "settled b", "end"], "what is put off is not waited for");
}

#[test]
fn a_requested_cancel_is_passed_on_once() {
    let mut shop = Shop::of(1);
    shop.begin(vec![job("a", 1)]);
    shop.at(10_000);
    assert_eq!(shop.on(vec![Event::Beaten(Ok(vec![beat(true)]))]), ["tell a Cancel"]);
    shop.at(20_000);
    assert!(shop.on(vec![Event::Beaten(Ok(vec![beat(true)]))]).is_empty());
    assert_eq!(shop.on(vec![returned(&job("a", 1))]), ["settle [a] claim 1"], "its success still counts");
}

#[test]
fn who_lost_a_lease_is_told_and_its_result_is_dropped() {
    let mut shop = Shop::of(1);
    shop.begin(vec![job("a", 1)]);
    shop.at(10_000);
    let fault = lost(&Ticket::of(&job("a", 1)));
    assert_eq!(shop.on(vec![Event::Beaten(Ok(vec![Err(fault)]))]), ["tell a Lost", "lost a"]);
    assert!(shop.at(40_000).is_empty(), "it is not renewed, and its handler has the slot");
    assert_eq!(shop.on(vec![returned(&job("a", 1))]), ["settle [] claim 1"]);
}

#[test]
fn only_leases_that_are_still_held_are_extended() {
    let mut shop = Shop::of(2);
    shop.begin(vec![job("a", 1), job("b", 1)]);
    shop.at(10_000);
    let fault = lost(&Ticket::of(&job("a", 1)));
    shop.on(vec![Event::Beaten(Ok(vec![Err(fault), beat(false)]))]);
    assert_eq!(shop.at(20_000), ["beat b"]);
}

#[test]
fn after_a_claim_that_got_all_it_wanted_there_may_be_more() {
    let mut shop = Shop::with(Settings { slots: 1, poll_ms: 3_600_000, ..Settings::default() });
    shop.begin(vec![job("a", 1)]);
    shop.at(10_000);
    let fault = lost(&Ticket::of(&job("a", 1)));
    shop.on(vec![Event::Beaten(Ok(vec![Err(fault)]))]);
    assert_eq!(shop.on(vec![returned(&job("a", 1))]), ["settle [] claim 1"], "long before the poll");
}

#[test]
fn heartbeats_that_fail_are_repeated_and_lose_nothing() {
    let mut shop = Shop::of(1);
    shop.begin(vec![job("a", 1)]);
    shop.at(10_000);
    assert_eq!(shop.on(vec![Event::Beaten(Err(unavailable()))]), ["failing"]);
    let again_ms = shop.worker.alarm_ms().unwrap();
    assert!((10_090..=10_110).contains(&again_ms), "{again_ms}");
    assert_eq!(shop.at(again_ms), ["beat a"]);
}

#[test]
fn an_outage_is_survived_with_a_growing_capped_pause() {
    let mut shop = Shop::of(1);
    shop.begin(vec![job("a", 1)]);
    let mut pauses = Vec::new();
    shop.on(vec![returned(&job("a", 1))]);
    for number in 2..12 {
        assert_eq!(shop.on(vec![failed(number, unavailable())]), ["failing"]);
        let again_ms = shop.worker.alarm_ms().unwrap();
        pauses.push(again_ms - shop.now_ms);
        assert!(shop.at(again_ms - 1).is_empty());
        assert_eq!(shop.at(again_ms), ["settle [a] claim 1"]);
    }
    assert!(pauses[0] <= 110 && pauses[9] > 4_000 && pauses.iter().all(|pause| *pause <= 5_500), "{pauses:?}");
    assert_eq!(shop.on(vec![settled(12, vec![done()])]), ["recovered", "settled a"]);
}

#[test]
fn a_result_is_tried_until_its_lease_would_lapse_and_then_dropped_and_told() {
    let mut shop = Shop::of(1);
    shop.begin(vec![job("a", 1)]);
    shop.on(vec![returned(&job("a", 1))]);
    shop.now_ms = LEASE_MS.unsigned_abs() - 1;
    assert_eq!(shop.on(vec![failed(2, unavailable())]), ["failing"]);
    let again_ms = shop.worker.alarm_ms().unwrap();
    assert_eq!(shop.at(again_ms), ["settle [a] claim 1"], "one more, though it is late");
    assert_eq!(shop.on(vec![failed(3, unavailable())]), ["failing", "dropped a"]);
}

#[test]
fn a_refused_result_is_dropped_and_told_and_the_others_are_settled() {
    let mut shop = Shop::of(2);
    let jobs = [job("a", 1), job("b", 1)];
    shop.begin(jobs.to_vec());
    assert_eq!(shop.on(vec![returned(&jobs[0]), returned(&jobs[1])]), ["settle [a b] claim 2"]);
    let answers = vec![Err(lost(&Ticket::of(&jobs[0]))), done()];
    assert_eq!(shop.on(vec![settled(2, answers)]), ["dropped a", "settled b"]);
}

#[test]
fn a_refused_claim_is_repeated_later_and_results_go_without_it() {
    let mut shop = Shop::of(2);
    shop.begin(vec![job("a", 1)]);
    shop.on(vec![returned(&job("a", 1))]);
    assert_eq!(shop.on(vec![failed(2, closed())]), ["failing", "settle [a] claim 0"]);
    assert_eq!(shop.on(vec![settled(3, vec![done()])]), ["settled a"]);
    let again_ms = shop.worker.alarm_ms().unwrap();
    assert!((4_500..=5_500).contains(&again_ms), "{again_ms}");
    assert!(shop.on(vec![Event::Changed]).is_empty(), "nor because something changed");
    assert_eq!(shop.at(again_ms), ["settle [] claim 2"]);
    assert_eq!(shop.on(vec![claimed(4, Vec::new())]), ["recovered"]);
}

#[test]
fn a_shutdown_lets_jobs_finish_and_claims_no_more() {
    let mut shop = Shop::of(2);
    shop.begin(vec![job("a", 1)]);
    assert!(shop.on(vec![Event::ShutDown]).is_empty());
    assert!(shop.on(vec![Event::Changed]).is_empty());
    assert_eq!(shop.on(vec![returned(&job("a", 1))]), ["settle [a] claim 0"]);
    assert_eq!(shop.on(vec![settled(2, vec![done()])]), ["settled a", "end"]);
    assert_eq!(shop.worker.alarm_ms(), None);
}

#[test]
fn what_a_claim_brings_after_the_shutdown_began_is_given_back_unworked() {
    let mut shop = Shop::of(2);
    shop.on(vec![]);
    shop.on(vec![Event::ShutDown]);
    assert_eq!(shop.on(vec![claimed(1, vec![job("a", 1)])]), ["settle [-a] claim 0"]);
    assert_eq!(shop.on(vec![settled(2, vec![done()])]), ["settled a", "end"]);
}

#[test]
fn after_the_grace_handlers_are_told_and_only_those_that_return_are_released() {
    let mut shop = Shop::of(3);
    let jobs = [job("a", 1), job("b", 1), job("c", 1)];
    shop.begin(jobs.to_vec());
    shop.on(vec![Event::ShutDown]);
    shop.at(10_000);
    shop.on(vec![Event::Beaten(Ok(vec![beat(false), beat(false), beat(false)]))]);
    shop.at(20_000);
    shop.on(vec![Event::Beaten(Ok(vec![beat(false), beat(false), beat(false)]))]);
    assert!(shop.at(24_999).is_empty());
    assert_eq!(shop.at(25_000), ["tell a Stop", "tell b Stop", "tell c Stop"]);
    let gave_up = Outcome::Failed(Failure::new(FailureKind::System, "told to stop"));
    let given_up = Event::Returned(Ticket::of(&jobs[0]), gave_up);
    assert_eq!(shop.on(vec![given_up, returned(&jobs[1])]), ["settle [-a b] claim 0"]);
    assert_eq!(shop.on(vec![settled(2, vec![done(), done()])]), ["settled a", "settled b"]);
    assert_eq!(shop.worker.alarm_ms(), Some(28_000));
    assert_eq!(shop.at(28_000), ["abandoned c", "end"]);
}

#[test]
fn a_shutdown_in_an_outage_ends_all_the_same() {
    let mut shop = Shop::of(1);
    shop.begin(vec![job("a", 1)]);
    shop.on(vec![Event::ShutDown, returned(&job("a", 1))]);
    let mut ended_ms = None;
    for _ in 0..100 {
        let mut told = shop.on(vec![failed(shop.worker.last_flight, unavailable())]);
        if let Some(alarm_ms) = shop.worker.alarm_ms() {
            told.extend(shop.at(alarm_ms));
        }
        if told.contains(&"end".to_owned()) {
            assert!(told.contains(&"dropped a".to_owned()));
            ended_ms = Some(shop.now_ms);
            break;
        }
    }
    assert!(ended_ms.is_some_and(|at_ms| (28_000..34_000).contains(&at_ms)), "{ended_ms:?}");
}
