//! What a job gives its process: how the payload of a run is written and read.

use acta_core::job::Identity;
use acta_core::{Json, Result};
use serde::Deserialize;

/// A job's own id and its input.
#[derive(Debug, PartialEq)]
pub(crate) struct Given {
    pub(crate) job_id: String,
    pub(crate) input: Json,
}

/// The payload of what `orchestrator run` has enqueued.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Payload {
    job_id: String,
    input: Json,
}

impl Given {
    /// The payload of a run.
    pub(crate) fn payload(&self) -> Result<Json> {
        Json::new(format!(r#"{{"jobId":"{}","input":{}}}"#, self.job_id, self.input))
    }

    /// What a claimed job gives. A run is known by its deduplication key, which is its job id; what somebody else has
    /// enqueued is all input, whatever it looks like, and has no id but the item's.
    pub(crate) fn of(identity: &Identity) -> Self {
        let key = identity.dedup_key.as_ref().map(acta_core::Label::as_str);
        match serde_json::from_str::<Payload>(identity.payload.as_str()) {
            Ok(Payload { job_id, input }) if key == Some(&job_id) => Self { job_id, input },
            Ok(_) | Err(_) => Self { job_id: identity.id.to_string(), input: identity.payload.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use acta_core::{JobId, Label, Timestamp};

    use super::*;

    fn given(payload: &str, key: Option<&str>) -> (String, String) {
        let identity = Identity {
            id: JobId::new("a-item-1").unwrap(),
            name: None,
            lane: None,
            key: None,
            dedup_key: key.map(|key| Label::new("key", key).unwrap()),
            payload: Json::new(payload).unwrap(),
            created_at: Timestamp::from_millis(0),
            backoff: None,
            lease: None,
            traceparent: None,
        };
        let Given { job_id, input } = Given::of(&identity);
        (job_id, input.to_string())
    }

    #[test]
    fn a_run_s_input_is_unwrapped_and_any_other_payload_is_the_input() {
        let input = Json::new("{ \"total\": 1.10 }").unwrap();
        let run = Given { job_id: "job-a-1-2".into(), input };
        let text = run.payload().unwrap().to_string();
        assert_eq!(given(&text, Some("job-a-1-2")), ("job-a-1-2".into(), "{ \"total\": 1.10 }".into()));
        let own = |text: &str| ("a-item-1".to_owned(), text.to_owned());
        for other in [&text, r#"{"jobId":"job-a-1-2","input":1,"more":2}"#, r#"{"input":1}"#, "[1, 2]", "null"] {
            assert_eq!(given(other, None), own(other));
            assert_eq!(given(other, Some("another key")), own(other));
        }
    }
}
