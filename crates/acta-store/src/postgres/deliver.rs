//! What comes from an outbox: what is new is added, and then the keys of its deliveries, in one transaction. Of two that add the same
//! at a time the second one is refused at the keys, and begins anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use acta_core::store::{Deliver, Delivered, Deliveries, Enqueue, NewJob};
use acta_core::{Error, JobId, Label, Result, Timestamp};

use super::calls::{Columns, enqueued};
use super::cells::millis;
use super::session::{NamespaceNumber, Session, params, statement};
use super::{PostgresStore, act, codec, fault};

/// What is known of each delivery.
type Known = BTreeMap<Label, Delivered>;

impl PostgresStore {
    pub(super) async fn deliver_all(&self, deliver: Deliver) -> Result<Vec<Delivered>> {
        deliver.deliveries.check()?;
        let most = if let Deliveries::Arrive(arrivals) = &deliver.deliveries { arrivals.len() } else { 0 };
        let mut drawn = self.words().await;
        let salts = drawn.peek(most, JobId::salt).unwrap_or_else(|| self.salts(most));
        let (clock, given, deliver) = (self.clock.clone(), self.given_now(), Arc::new(deliver));
        let mut tries = 1;
        let answers = loop {
            let (deliver, clock, salts) = (Arc::clone(&deliver), clock.clone(), salts.clone());
            let done = self.write(move |session| {
                session.all(statement!("begin"), &[])?;
                let (ns, _) = session.ensure_namespace(&deliver.namespace)?;
                let now = act::now(session, clock.as_deref())?;
                Desk { session, ns, now }.deliver(&deliver, salts, given)
            });
            match done.await {
                Err(fault) if tries < TRIES && is_contended(&fault) => tries += 1,
                done => break done?,
            }
        };
        let created = answers.iter().filter(|answer| matches!(answer, Delivered::Now { created: true, .. })).count();
        drawn.take(created);
        if created > 0 {
            self.wake.tell(&deliver.namespace);
        }
        Ok(answers)
    }
}

/// How often a call is tried that somebody else has come before with the same deliveries.
const TRIES: usize = 5;
const CONTENDED: &str = "somebody else delivers the same just now";

fn is_contended(fault: &Error) -> bool {
    matches!(fault, Error::Unavailable { why, .. } if why == CONTENDED)
}

/// A transaction, the namespace that it works on, and its instant.
struct Desk<'s> {
    session: &'s Session,
    ns: NamespaceNumber,
    now: Timestamp,
}

impl Desk<'_> {
    fn deliver(&self, deliver: &Deliver, salts: Vec<String>, given: Option<i64>) -> Result<Vec<Delivered>> {
        let keys: Vec<&Label> = match &deliver.deliveries {
            Deliveries::Arrive(arrivals) => arrivals.iter().map(|(key, _)| key).collect(),
            Deliveries::Close(keys) | Deliveries::Reopen(keys) => keys.iter().collect(),
        };
        let known = self.known(&keys)?;
        let is_open = |key: &Label| known.get(key).is_none_or(|of| *of == Delivered::Open);
        let changed = match &deliver.deliveries {
            Deliveries::Arrive(arrivals) => {
                let added = Arrivals::of(arrivals, &known).add(self.session, deliver, salts, given)?;
                self.keep(&added)?;
                added
            }
            Deliveries::Close(keys) => {
                let open = keys.iter().filter(|key| is_open(key));
                let closed: Known = open.map(|key| (key.clone(), Delivered::Closed)).collect();
                self.keep(&closed)?;
                closed
            }
            Deliveries::Reopen(keys) => {
                let gone = keys.iter().filter(|key| is_open(key) || known.get(key) == Some(&Delivered::Closed));
                let open: Known = gone.map(|key| (key.clone(), Delivered::Open)).collect();
                let gone: Vec<&str> = open.keys().map(Label::as_str).collect();
                let params = params![self.ns => INT4, gone => TEXT_ARRAY, self.now.as_millis() => INT8];
                self.session.execute(statement!("forget_deliveries"), params)?;
                open
            }
        };
        Ok(answers(&keys, known, changed))
    }

    /// What is known of each; nothing is held by that.
    fn known(&self, keys: &[&Label]) -> Result<Known> {
        let texts: Vec<&str> = keys.iter().map(|key| key.as_str()).collect();
        let rows = self.session.all(statement!("known_deliveries"), params![self.ns => INT4, texts => TEXT_ARRAY])?;
        let mut known = Known::new();
        for row in &rows {
            let record = codec::key_record(row, 0)?;
            let key = codec::label(row, 4)?.ok_or_else(|| Error::not_found("key", ""))?;
            known.insert(key, Delivered::of(Some(&record), self.now));
        }
        Ok(known)
    }

    /// Keeps the answers. Who comes second has looked too early: nothing of its call counts.
    fn keep(&self, answers: &Known) -> Result<()> {
        let now = self.now;
        let kept: Vec<_> = answers.iter().filter_map(|(key, answer)| Some((key, answer.record(now)?))).collect();
        if kept.is_empty() {
            return Ok(());
        }
        let keys: Vec<&str> = kept.iter().map(|(key, _)| key.as_str()).collect();
        let ids: Vec<&str> = kept.iter().map(|(_, record)| record.id.as_str()).collect();
        let states: Vec<i16> = kept.iter().map(|(_, record)| i16::from(record.state.code())).collect();
        let expiries: Vec<Option<i64>> = kept.iter().map(|(_, record)| millis(record.expires_at)).collect();
        let params = params![
            self.ns => INT4,
            keys => TEXT_ARRAY,
            ids => TEXT_ARRAY,
            states => INT2_ARRAY,
            expiries => INT8_ARRAY,
            now.as_millis() => INT8,
        ];
        if self.session.execute(statement!("keep_deliveries"), params)? < kept.len() as u64 {
            return Err(fault::unavailable(self.session.place(), CONTENDED.into()));
        }
        Ok(())
    }
}

/// The answers in the order of the keys: each new one once, and from then on as known.
fn answers(keys: &[&Label], known: Known, mut changed: Known) -> Vec<Delivered> {
    let mut known = known;
    let answer = |key: &&Label| {
        let Some(answer) = changed.remove(*key) else { return known.get(*key).cloned().unwrap_or(Delivered::Open) };
        let later = match &answer {
            Delivered::Now { id, .. } => Delivered::Before(id.clone()),
            other => other.clone(),
        };
        known.insert((*key).clone(), later);
        answer
    };
    keys.iter().map(answer).collect()
}

/// What is new of a call, each delivery once.
struct Arrivals<'a> {
    /// Its place in the call.
    places: Vec<usize>,
    keys: Vec<&'a Label>,
    jobs: Vec<NewJob>,
}

impl<'a> Arrivals<'a> {
    fn of(arrivals: &'a [(Label, NewJob)], known: &Known) -> Self {
        let mut new = Self { places: Vec::new(), keys: Vec::new(), jobs: Vec::new() };
        let mut seen = std::collections::BTreeSet::new();
        for (place, (key, job)) in arrivals.iter().enumerate() {
            if known.get(key).is_none_or(|of| *of == Delivered::Open) && seen.insert(key) {
                new.places.push(place);
                new.keys.push(key);
                new.jobs.push(job.clone());
            }
        }
        new
    }

    fn add(self, session: &Session, deliver: &Deliver, salts: Vec<String>, now: Option<i64>) -> Result<Known> {
        if self.jobs.is_empty() {
            return Ok(Known::new());
        }
        let Self { places, keys, jobs } = self;
        let enqueue = Enqueue { namespace: deliver.namespace.clone(), jobs };
        let columns = Columns::of(&enqueue, salts, now);
        let family = Some(deliver.namespace.family());
        let rows = session.all_in(family, statement!("enqueue"), &columns.params());
        // The place of a refused one is told as in the whole call.
        let rows = rows.map_err(|fault| match fault {
            Error::At { index, source } => source.at(places.get(index).copied().unwrap_or(index)),
            other => other,
        })?;
        let added = enqueued(&rows)?.into_iter().map(Delivered::now);
        Ok(keys.into_iter().cloned().zip(added).collect())
    }
}
