//! Questions that come over a pipe, and do not say to which call they belong.

use std::sync::Arc;

use orchestrator::{Answer, Asker, Call, CallResult, Error, Party};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::world::{Says, World, log, stdio, until};

const UNCLEAR: &str = "the server asked for input, which was not passed on: it cannot be told whose call it belongs to, for \
    others use the server too";
const CANCELLED: &str = r#"{"action":"cancel"}"#;

/// A server of the old kind, which writes down what it hears.
fn world() -> World {
    let world = World::new(&[("test", stdio(&[]))]);
    let path = world.path("log");
    world.rewrite(&[("test", stdio(&["--era", "legacy", "--log", path.to_str().unwrap()]))]);
    world
}

fn ada() -> Arc<Says> {
    let name: Map<String, Value> = serde_json::from_value(json!({"name": "Ada"})).unwrap();
    Says::new(Answer::Accepted(name))
}

fn is(party: &str, asker: Option<&Arc<Says>>) -> impl FnOnce(&mut Call) {
    let asker = asker.map(|asker| Arc::clone(asker) as Arc<dyn Asker>);
    move |call| (call.party, call.asker) = (Party::named(party), asker)
}

/// How many calls the server has heard of.
fn called(world: &World) -> usize {
    log(&world.path("log")).iter().filter(|line| line["method"] == "tools/call").count()
}

/// The server's questions that were answered, as it heard them.
fn answers(world: &World) -> Vec<Value> {
    let log = log(&world.path("log"));
    log.iter()
        .filter_map(|line| line["result"].get("action").map(|_| line["result"].clone()))
        .collect()
}

fn text(result: &CallResult) -> &str {
    result.raw["content"][0]["text"].as_str().unwrap()
}

/// A call that is open while something else happens.
async fn open_during(
    world: &World,
    change: impl FnOnce(&mut Call),
    act: impl Future<Output = ()>,
) -> CallResult {
    let (before, release) = (called(world), world.path("release"));
    let open = world.call_with("until", json!({"file": release}), change);
    let acting = async {
        until("it is open", || called(world) > before).await;
        act.await;
        std::fs::write(&release, "").unwrap();
    };
    let (open, ()) = tokio::join!(open, acting);
    std::fs::remove_file(release).unwrap();
    open.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_not_put_to_the_wrong_person() {
    let (world, one, other) = (world(), ada(), ada());
    // Whoever cannot ask is somebody too.
    for asker in [Some(&one), None] {
        let beside = open_during(&world, is("bob", Some(&other)), async {
            let asked = world.call_with("ask", json!({}), is("ann", asker)).await.unwrap();
            assert_eq!((text(&asked), &*asked.warnings), (CANCELLED, &*vec![UNCLEAR.to_owned()]));
        });
        assert_eq!(beside.await.warnings, [UNCLEAR]);
    }
    assert!(one.forms().is_empty() && other.forms().is_empty());
    world.orchestrator.close().await;
}

/// The server asks for the sake of a call that was given up, by its caller or because it took too long.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_call_that_was_given_up_is_not_put_to_somebody_else() {
    for is_late in [true, false] {
        let (world, one, other) = (world(), ada(), ada());
        world.orchestrator.tools("test").await.unwrap();
        let (go, cancelled) = (world.path("go"), CancellationToken::new());
        let asking = world.call_with("ask", json!({"file": go}), |call| {
            is("ann", Some(&one))(call);
            match is_late {
                true => call.timeout = Some(std::time::Duration::from_millis(300)),
                false => call.cancelled = cancelled.clone(),
            }
        });
        let cancelling = async {
            until("it is open", || called(&world) > 0).await;
            cancelled.cancel();
        };
        let (asked, ()) = tokio::join!(asking, cancelling);
        match asked {
            Err(Error::Timeout { .. }) => assert!(is_late),
            Err(Error::Cancelled { .. }) => assert!(!is_late),
            asked => panic!("{asked:?}"),
        }
        let beside = open_during(&world, is("bob", Some(&other)), async {
            std::fs::write(&go, "").unwrap();
            until("its question has an answer", || !answers(&world).is_empty()).await;
        });
        assert_eq!(beside.await.warnings, [UNCLEAR]);
        assert_eq!(answers(&world), [json!({"action": "cancel"})]);
        assert!(one.forms().is_empty() && other.forms().is_empty());
        world.orchestrator.close().await;
    }
}

/// They are one person's, whichever of them it belongs to; where one of them cannot ask, another one does.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_party_all_have_their_questions_asked() {
    let (world, says) = (world(), ada());
    let beside = open_during(&world, is("ann", None), async {
        let ask = || world.call_with("ask", json!({}), is("ann", Some(&says)));
        let (one, two, three) = tokio::join!(ask(), ask(), ask());
        for asked in [one, two, three] {
            let asked = asked.unwrap();
            assert!(text(&asked).contains("Ada") && asked.warnings.is_empty(), "{asked:?}");
        }
    });
    assert!(beside.await.warnings.is_empty());
    assert_eq!(says.forms().len(), 3);
    world.orchestrator.close().await;
}
