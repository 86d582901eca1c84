//! Rows of an outbox.

use super::staged::Options;
use super::{Held, KNOWN_FOR, Reason};
use crate::clock::Timestamp;
use crate::error::Error;
use crate::json::Json;
use crate::name::{Label, Name, Namespace};
use crate::store::{Dedup, NewJob};

/// A row, as the application has staged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number, in the order of staging.
    pub id: i64,
    /// What names it and no other row, given at staging.
    pub message: String,
    /// The queue, as its path.
    pub namespace: String,
    /// The job definition.
    pub name: Option<String>,
    /// JSON.
    pub payload: String,
    /// The line that it stands in, in the outbox and in the ledger.
    pub lane: Option<String>,
    /// The application's own deduplication key.
    pub dedup_key: Option<String>,
    /// What else is said of the job, as a JSON object.
    pub options: Option<String>,
    /// How often the ledger has refused it.
    pub refusals: u32,
    /// When it was staged, by the source's clock.
    pub staged_at: Timestamp,
    /// When it was last let out of quarantine: then it had not arrived.
    pub requeued_at: Option<Timestamp>,
    /// Whether rows of its line were parked behind it when it was looked at.
    pub has_behind: bool,
}

/// A row as the ledger takes it.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Where to.
    pub namespace: Namespace,
    /// The key of its delivery.
    pub key: Label,
    /// The job.
    pub job: NewJob,
}

/// The key of a delivery: of which outbox, and which row of it. Neither is ever given twice, so that two shops never collide and a
/// table that was restored or truncated repeats nothing.
pub fn delivery_key(source: &str, message: &str) -> Result<Label, Error> {
    Label::new("delivery", &format!("outbox:{source}:{message}"))
}

impl Row {
    /// The line that orders it, if it names one.
    pub fn line(&self) -> Option<(&str, &str)> {
        self.lane.as_deref().map(|lane| (self.namespace.as_str(), lane))
    }

    /// What the ledger is to take, or why it is put into quarantine.
    pub fn judge(&self, source: &str, held: Held) -> Result<Arrival, Reason> {
        // At the earliest it has arrived then.
        let since = held.since.max(self.requeued_at.unwrap_or(self.staged_at));
        if held.now.since_ms(since) > KNOWN_FOR.as_millis() {
            return Err(Reason::OutcomeUnknown);
        }
        self.arrival(source).map_err(|fault| Reason::Malformed(fault.to_string()))
    }

    fn arrival(&self, source: &str) -> Result<Arrival, Error> {
        let options: Options = match &self.options {
            None => Options::default(),
            // An array would be taken for the fields in their order.
            Some(text) if !text.trim_start().starts_with('{') => {
                return Err(Error::invalid("options", text, "is no JSON object"));
            }
            Some(text) => {
                let wrong =
                    |fault: serde_json::Error| Error::invalid("options", text, format!("can't be read: {fault}"));
                serde_json::from_str(text).map_err(wrong)?
            }
        };
        let text = |what, text: &Option<String>| text.as_deref().map(|text| Label::new(what, text)).transpose();
        let while_live = options.while_live.unwrap_or(false);
        let job = NewJob {
            name: self.name.as_deref().map(|name| Name::new("name", name)).transpose()?,
            lane: text("lane", &self.lane)?,
            priority: options.priority,
            run_at: options.run_at,
            expires_at: options.expires_at,
            lease: options.lease,
            key: options.key,
            dedup: text("dedup_key", &self.dedup_key)?.map(|key| Dedup { key, while_live }),
            max_attempts: options.max_attempts,
            retryable: options.retryable,
            backoff: options.backoff,
            traceparent: options.traceparent,
            payload: Json::new(&self.payload)?,
        };
        let namespace: Namespace = self.namespace.parse()?;
        job.check(namespace.family(), None)?;
        Ok(Arrival { namespace, key: delivery_key(source, &self.message)?, job })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Backoff, Span, TOMBSTONE};
    use crate::relay::Staged;
    use crate::traceparent::Traceparent;

    fn row() -> Row {
        Row {
            id: 1,
            message: "6f1c".into(),
            namespace: "transactions/mail".into(),
            name: Some("send".into()),
            payload: "{\"to\": 1.0}".into(),
            lane: Some("a".into()),
            dedup_key: None,
            options: None,
            refusals: 0,
            staged_at: Timestamp::from_millis(0),
            requeued_at: None,
            has_behind: false,
        }
    }

    fn held(since_ms: i64, now_ms: i64) -> Held {
        Held { since: Timestamp::from_millis(since_ms), now: Timestamp::from_millis(now_ms) }
    }

    fn wrong(row: &Row) -> String {
        row.judge("shop", held(0, 0)).unwrap_err().to_string()
    }

    #[test]
    fn a_row_becomes_the_job_that_it_names() {
        let options = r#"{"maxAttempts": 4, "lease": "2m", "key": "INV-1", "whileLive": true, "backoff": "none"}"#;
        let row = Row { options: Some(options.into()), dedup_key: Some("once".into()), ..row() };
        let Arrival { namespace, key, job } = row.judge("shop", held(0, 0)).unwrap();
        assert_eq!((namespace.to_string(), key.as_str()), ("transactions/mail".into(), "outbox:shop:6f1c"));
        assert_eq!(job.payload.as_str(), "{\"to\": 1.0}");
        assert_eq!((job.max_attempts, job.lease), (Some(4), Some(Span::from_millis(120_000))));
        assert_eq!(job.dedup, Some(Dedup { key: Label::new("key", "once").unwrap(), while_live: true }));
        assert_eq!((job.key, job.lane), (Label::new("key", "INV-1").ok(), Label::new("lane", "a").ok()));
    }

    #[test]
    fn what_is_staged_comes_out_as_it_went_in() {
        let label = |text: &str| Label::new("label", text).ok();
        let job = NewJob {
            name: Name::new("name", "send").ok(),
            lane: label("a \"quoted\" lane"),
            priority: Some(7),
            run_at: Some(Timestamp::from_millis(1_700_000_000_123)),
            expires_at: Some(Timestamp::from_millis(1_800_000_000_000)),
            lease: Some(Span::from_millis(90_000)),
            key: label("INV-1"),
            dedup: label("once").map(|key| Dedup { key, while_live: true }),
            max_attempts: Some(3),
            retryable: Some(false),
            backoff: Some(Backoff::None),
            traceparent: Traceparent::new("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").ok(),
            ..NewJob::new(Json::new("{\"n\":  1.0}").unwrap())
        };
        let namespace: Namespace = "mail".parse().unwrap();
        for job in [job, NewJob::new(Json::null())] {
            let Staged { namespace, name, payload, lane, dedup_key, options } = Staged::of(&namespace, &job).unwrap();
            let row = Row { namespace, name, payload, lane, dedup_key, options, ..row() };
            let arrival = row.judge("shop", held(0, 0)).unwrap();
            assert_eq!(format!("{:?}", arrival.job), format!("{job:?}"));
        }
        let job = NewJob { priority: Some(7), ..NewJob::new(Json::null()) };
        assert!(Staged::of(&"queues/mail".parse().unwrap(), &job).is_err(), "refused where it is staged");
    }

    #[test]
    fn what_is_no_job_is_told_at_once() {
        for (row, what) in [
            (Row { payload: "{".into(), ..row() }, "JSON"),
            (Row { namespace: "../x".into(), ..row() }, "../x"),
            (Row { lane: Some("a\0".into()), ..row() }, "lane"),
            (Row { name: Some(String::new()), ..row() }, "name"),
            (Row { options: Some("{\"color\": 1}".into()), ..row() }, "color"),
            (Row { options: Some("{\"priority\": 5}".into()), ..row() }, "priority"),
            (Row { options: Some("[]".into()), ..row() }, "options"),
        ] {
            let told = wrong(&row);
            assert!(told.starts_with("malformed: ") && told.contains(what), "{what}: {told}");
        }
    }

    #[test]
    fn a_row_that_may_have_arrived_too_long_ago_is_not_delivered() {
        assert!(KNOWN_FOR < TOMBSTONE, "a day before the ledger forgets");
        let late = KNOWN_FOR.as_millis();
        assert!(row().judge("shop", held(0, late)).is_ok());
        assert_eq!(row().judge("shop", held(0, late + 1)).unwrap_err(), Reason::OutcomeUnknown);
        assert!(row().judge("shop", held(1, late + 1)).is_ok(), "nobody has delivered before");
        let requeued = Row { requeued_at: Some(Timestamp::from_millis(1)), ..row() };
        assert!(requeued.judge("shop", held(0, late + 1)).is_ok(), "it had not arrived by then");
    }
}
