//! Servers that want to know something from a person, and servers that want what we do not have.

use std::sync::Arc;
use std::time::Duration;

use orchestrator::{Answer, Asker, Error, Form, Wanted};
use serde_json::{Map, Value, json};

use crate::world::{Says, World, call, stdio};

fn ada() -> Map<String, Value> {
    serde_json::from_value(json!({"name": "Ada"})).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_reaches_the_person_behind_the_call() {
    for era in ["legacy", "modern"] {
        let world = World::new(&[("test", stdio(&["--era", era]))]);
        for (answer, said) in [
            (Answer::Accepted(ada()), json!({"action": "accept", "content": {"name": "Ada"}})),
            (Answer::Declined, json!({"action": "decline"})),
            (Answer::Cancelled, json!({"action": "cancel"})),
        ] {
            let says = Says::new(answer);
            let result = world
                .call_with("ask", json!({}), |call| call.asker = Some(says.clone()))
                .await
                .unwrap();
            let heard: Value =
                serde_json::from_str(result.raw["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!(heard, said, "{era}");
            let forms = says.forms();
            assert_eq!(
                (forms.len(), forms[0].server.as_str(), forms[0].message.as_str()),
                (1, "test", "who are you?")
            );
            let Wanted::Values { schema } = &forms[0].wanted else { panic!("{forms:?}") };
            assert_eq!(schema["required"], json!(["name"]));
        }
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_be_asked_the_question_is_cancelled() {
    let world =
        World::new(&[("old", stdio(&["--era", "legacy"])), ("new", stdio(&["--era", "modern"]))]);
    let result = world.orchestrator.call(call("old", "ask", json!({}))).await.unwrap();
    assert_eq!(result.raw["content"][0]["text"], r#"{"action":"cancel"}"#);
    insta::assert_snapshot!(result.warnings.join("\n"), @"the server asked for input, which was not passed on: this client cannot ask its user");
    let error = world.orchestrator.call(call("new", "ask", json!({}))).await.unwrap_err();
    assert!(matches!(error, Error::Unanswered { .. }), "{error}");
    assert!(error.to_string().contains("cannot ask its user"), "{error}");
    let error = world.orchestrator.read("new", "test://ask").await.unwrap_err();
    assert!(matches!(error, Error::Unanswered { .. }), "{error}");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_stop_asking_is_stopped() {
    let world = World::new(&[("test", stdio(&["--era", "modern"]))]);
    let says = Says::new(Answer::Accepted(ada()));
    let asked =
        world.call_with("ask_for_ever", json!({}), |call| call.asker = Some(says.clone())).await;
    assert!(matches!(asked, Err(Error::Unanswered { .. })), "{asked:?}");
    assert_eq!(says.forms().len(), 10);
    world.orchestrator.close().await;
}

/// Thinks for a while.
struct Thinks(Duration);

impl Asker for Thinks {
    fn ask(&self, _: Form) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(async {
            tokio::time::sleep(self.0).await;
            Answer::Accepted(ada())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_more_time_than_a_server() {
    for era in ["legacy", "modern"] {
        let world = World::new(&[("test", stdio(&["--era", era]))]);
        world.orchestrator.tools("test").await.unwrap();
        let asked = world.call_with("ask", json!({}), |call| {
            call.timeout = Some(Duration::from_secs(1));
            call.asker = Some(Arc::new(Thinks(Duration::from_secs(2))));
        });
        let result = asked.await.unwrap();
        assert!(result.raw["content"][0]["text"].as_str().unwrap().contains("Ada"));
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_that_waits_for_a_person_can_be_cancelled() {
    for era in ["legacy", "modern"] {
        let world = World::new(&[("test", stdio(&["--era", era]))]);
        world.orchestrator.tools("test").await.unwrap();
        let cancelled = tokio_util::sync::CancellationToken::new();
        let asked = world.call_with("ask", json!({}), |call| {
            call.cancelled = cancelled.clone();
            call.asker = Some(Arc::new(Thinks(Duration::from_secs(600))));
        });
        let cancelling = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancelled.cancel();
        };
        let (asked, ()) = tokio::join!(asked, cancelling);
        assert!(matches!(asked, Err(Error::Cancelled { .. })), "{era}: {asked:?}");
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_we_do_not_have_is_refused() {
    let world = World::new(&[("test", stdio(&["--era", "legacy"]))]);
    let answer: Value =
        serde_json::from_str(&world.text("want", json!({"method": "roots/list"})).await).unwrap();
    assert_eq!(answer["result"], json!({"roots": []}));
    let answer: Value =
        serde_json::from_str(&world.text("want", json!({"method": "ping"})).await).unwrap();
    assert_eq!(answer["result"], json!({}));
    for method in ["sampling/createMessage", "made/up"] {
        let answer: Value =
            serde_json::from_str(&world.text("want", json!({"method": method})).await).unwrap();
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    world.orchestrator.close().await;
}
