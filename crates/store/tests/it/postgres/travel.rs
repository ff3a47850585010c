//! Sessions move between the databases, and are the same.

use store::{Append, NewEvent, NewSession, Store};

use super::prepare;
use crate::{adoption, append, assert_sound, complete, event, fill, open, session};

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_log_travels_to_and_fro() {
    let folder = tempfile::tempdir().unwrap();
    let here = open(&folder.path().join("here.db"));
    here.create_now(NewSession { key: Some("k".to_owned()), ..session("a") }).unwrap();
    fill(&here, "a", 1_200);
    let marked =
        NewEvent { digest: Some([0xab; 32]), ..event(r#"{"number":1.5,"text":"ü \" \\"}"#) };
    let last = Append { event: marked, head: complete(3), ..append("a", 1_200) };
    here.append_now(last).unwrap();

    let (there, _database) = prepare();
    let back = open(&folder.path().join("back.db"));
    let moved = |from: &Store, to: &Store| {
        let log = from.export("a").unwrap();
        let search =
            |event: &store::Event| event.body.contains("text").then(|| "needle".to_owned());
        to.import(&log, &adoption(), &search).unwrap();
        assert_sound(to, "a");
        let (before, after) = (from.meta("a").unwrap().unwrap(), to.meta("a").unwrap().unwrap());
        assert_eq!((after.version, after.head), (before.version + 1, before.head));
        assert!(after.is_imported && after.key.is_none() && after.owner == "bea");
        assert_eq!(to.search("needle", Some("bea"), 5).unwrap().len(), 1);
        assert_eq!(to.search("cellar", None, 5).unwrap().len(), 1);
        assert_eq!(to.import(&log, &adoption(), &|_| None), Err(store::Error::Exists));
    };
    moved(&here, &there);
    moved(&there, &back);
    assert_eq!(there.events("a", 1, 1_000), here.events("a", 1, 1_000));
    assert_eq!(there.append_now(append("a", 1_202)), Ok(1_203));
}
