//! What the library offers to tests of applications.

use std::time::Duration;

use acta::testing::TestLedger;
use acta::{Context, Job, JobError, State, Worker};
use acta_core::store::Outcome;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Welcome {
    to: String,
}

impl Job for Welcome {
    const NAME: &'static str = "welcome";
    const QUEUE: &'static str = "mails";
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Remind {
    to: String,
}

impl Job for Remind {
    const NAME: &'static str = "remind";
    const QUEUE: &'static str = "mails";
}

fn welcome(to: &str) -> Welcome {
    Welcome { to: to.into() }
}

/// What an application would have: its first mail makes a second, which waits a day.
fn mailer(test: &TestLedger) -> Worker {
    let ledger = test.ledger().clone();
    Worker::new(test.ledger(), "mails")
        .handle(move |mail: Welcome, _: Context| {
            let ledger = ledger.clone();
            async move {
                let remind = Remind { to: mail.to };
                ledger.prepare(&remind).delay(Duration::from_hours(24)).enqueue().await?;
                Ok(())
            }
        })
        .handle(|mail: Remind, context: Context| async move {
            context.sleep(Duration::from_hours(1)).await?;
            match mail.to.as_str() {
                "nobody" => Err(JobError::business("no-address", "nobody is there")),
                "panic" => panic!("no"),
                _ => Ok(mail.to.len()),
            }
        })
}

#[tokio::test]
async fn handlers_run_when_the_test_says_so_and_time_is_the_test_s() {
    let test = TestLedger::new();
    let worker = mailer(&test);
    assert!(test.enqueued::<Welcome>().await.unwrap().is_empty());
    let id = test.ledger().enqueue(&welcome("ada")).await.unwrap().id;
    test.ledger().enqueue(&welcome("bob")).await.unwrap();
    assert_eq!(test.enqueued::<Welcome>().await.unwrap(), [welcome("ada"), welcome("bob")]);
    assert!(test.enqueued::<Remind>().await.unwrap().is_empty());

    let ran = test.run(&worker).await.unwrap();
    assert_eq!((ran.len(), &ran[0]), (2, &(id.clone(), Outcome::Succeeded(None))));
    assert_eq!(test.state(&id).await.unwrap(), State::Succeeded);
    assert_eq!(test.enqueued::<Remind>().await.unwrap(), [Remind { to: "ada".into() }, Remind { to: "bob".into() }]);
    assert!(test.run(&worker).await.unwrap().is_empty(), "the rest is for tomorrow");

    let before = test.now();
    test.advance(Duration::from_hours(24));
    assert_eq!(test.now().since_ms(before), 86_400_000);
    let ran = test.run(&worker).await.unwrap();
    assert!(ran.iter().all(|(_, outcome)| matches!(outcome, Outcome::Snooze(_))), "{ran:?}");
    test.advance(Duration::from_hours(1));
    let ran = test.run(&worker).await.unwrap();
    assert_eq!(ran.len(), 2);
    assert_eq!(test.item(&ran[0].0).await.unwrap().output.unwrap().as_str(), "3");
}

#[tokio::test]
async fn failures_and_panics_are_what_they_are_to_a_worker() {
    let test = TestLedger::new();
    let worker = mailer(&test);
    for to in ["nobody", "panic"] {
        let remind = Remind { to: to.into() };
        test.ledger().prepare(&remind).max_attempts(1).enqueue().await.unwrap();
    }
    test.run(&worker).await.unwrap();
    test.advance(Duration::from_hours(1));
    let ran = test.run(&worker).await.unwrap();
    let messages: Vec<String> = ran
        .into_iter()
        .map(|(_, outcome)| match outcome {
            Outcome::Failed(failure) => failure.message,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(messages, ["nobody is there", "the handler panicked: no"]);
    assert!(test.enqueued::<Remind>().await.unwrap().is_empty());
}
