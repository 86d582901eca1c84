//! What comes from an outbox: the keys of its deliveries are held first, then what is new is added, in one transaction.

use std::collections::BTreeMap;

use acta_core::store::{Deliver, Delivered, Deliveries, Enqueue, NewJob};
use acta_core::{Error, JobId, Label, Result, Timestamp};

use super::calls::{Columns, enqueued};
use super::cells::millis;
use super::session::{NamespaceNumber, Session, params, statement};
use super::{PostgresStore, act, codec};

/// What is known of each delivery.
type Known = BTreeMap<Label, Delivered>;

impl PostgresStore {
    pub(super) async fn deliver_all(&self, deliver: Deliver) -> Result<Vec<Delivered>> {
        deliver.deliveries.check()?;
        let most = if let Deliveries::Arrive(arrivals) = &deliver.deliveries { arrivals.len() } else { 0 };
        let mut drawn = self.words().await;
        let salts = drawn.peek(most, JobId::salt).unwrap_or_else(|| self.salts(most));
        let (clock, given, namespace) = (self.clock.clone(), self.given_now(), deliver.namespace.clone());
        let answers = self.write(move |session| {
            session.all(statement!("begin"), &[])?;
            let (ns, _) = session.ensure_namespace(&deliver.namespace)?;
            match &deliver.deliveries {
                Deliveries::Arrive(arrivals) => {
                    let keys: Vec<&Label> = arrivals.iter().map(|(key, _)| key).collect();
                    let known = hold(session, ns, &keys, act::now(session, clock.as_deref())?)?;
                    let new = Arrivals::of(arrivals, &known);
                    let added = new.add(session, &deliver, salts, given)?;
                    keep(session, ns, &added, act::now(session, clock.as_deref())?)?;
                    Ok(answers(&keys, known, added))
                }
                Deliveries::Close(keys) => {
                    let keys: Vec<&Label> = keys.iter().collect();
                    let now = act::now(session, clock.as_deref())?;
                    let known = hold(session, ns, &keys, now)?;
                    let open = known.iter().filter(|(_, of)| **of == Delivered::Open);
                    let closed: Known = open.map(|(key, _)| (key.clone(), Delivered::Closed)).collect();
                    keep(session, ns, &closed, now)?;
                    Ok(answers(&keys, known, closed))
                }
                Deliveries::Reopen(keys) => {
                    let keys: Vec<&Label> = keys.iter().collect();
                    let known = hold(session, ns, &keys, act::now(session, clock.as_deref())?)?;
                    let gone = known.iter().filter(|(_, of)| matches!(of, Delivered::Closed | Delivered::Open));
                    let open: Known = gone.map(|(key, _)| (key.clone(), Delivered::Open)).collect();
                    let gone: Vec<&str> = open.keys().map(Label::as_str).collect();
                    session.execute(statement!("forget_deliveries"), params![ns => INT4, gone => TEXT_ARRAY])?;
                    Ok(answers(&keys, known, open))
                }
            }
        });
        let answers = answers.await?;
        let created = answers.iter().filter(|answer| matches!(answer, Delivered::Now { created: true, .. })).count();
        drawn.take(created);
        if created > 0 {
            self.wake.tell(&namespace);
        }
        Ok(answers)
    }
}

/// Takes hold of the keys, in their order, and says what is known of each.
fn hold(session: &Session, ns: NamespaceNumber, keys: &[&Label], now: Timestamp) -> Result<Known> {
    let texts: Vec<&str> = keys.iter().map(|key| key.as_str()).collect();
    let rows = session.all(statement!("hold_deliveries"), params![ns => INT4, texts => TEXT_ARRAY])?;
    let mut known = Known::new();
    for row in &rows {
        let is_new = codec::get::<&str>(row, 0)?.is_empty();
        let record = if is_new { None } else { Some(codec::key_record(row, 0)?) };
        let key = codec::label(row, 4)?.ok_or_else(|| Error::not_found("key", ""))?;
        known.insert(key, Delivered::of(record.as_ref(), now));
    }
    Ok(known)
}

fn keep(session: &Session, ns: NamespaceNumber, answers: &Known, now: Timestamp) -> Result<()> {
    let kept: Vec<_> = answers.iter().filter_map(|(key, answer)| Some((key, answer.record(now)?))).collect();
    if kept.is_empty() {
        return Ok(());
    }
    let keys: Vec<&str> = kept.iter().map(|(key, _)| key.as_str()).collect();
    let ids: Vec<&str> = kept.iter().map(|(_, record)| record.id.as_str()).collect();
    let states: Vec<i16> = kept.iter().map(|(_, record)| i16::from(record.state.code())).collect();
    let expiries: Vec<Option<i64>> = kept.iter().map(|(_, record)| millis(record.expires_at)).collect();
    let params = params![
        ns => INT4,
        keys => TEXT_ARRAY,
        ids => TEXT_ARRAY,
        states => INT2_ARRAY,
        expiries => INT8_ARRAY,
    ];
    session.execute(statement!("keep_deliveries"), params).map(|_| ())
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
        let rows = session.all(statement!("enqueue"), &columns.params());
        // The place of a refused one is told as in the whole call.
        let rows = rows.map_err(|fault| match fault {
            Error::At { index, source } => source.at(places.get(index).copied().unwrap_or(index)),
            other => other,
        })?;
        let added = enqueued(&rows)?.into_iter().map(Delivered::now);
        Ok(keys.into_iter().cloned().zip(added).collect())
    }
}
