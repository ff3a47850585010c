//! Every way through a session, against a model that a child could keep.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Move {
    HandIn { is_good: bool },
    Decide { is_approved: bool },
    Back { to: usize },
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => proptest::bool::weighted(0.8).prop_map(|is_good| Move::HandIn { is_good }),
        2 => any::<bool>().prop_map(|is_approved| Move::Decide { is_approved }),
        1 => (0..STEPS.len()).prop_map(|to| Move::Back { to }),
    ]
}

const STEPS: [&str; 3] = ["write", "send", "file"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Against a model that knows three steps in a row, one of them with a gate: wherever somebody goes back to, the
    /// only way forward is through every step and past a person.
    #[test]
    fn no_way_leads_around_a_step(moves in proptest::collection::vec(any_move(), 1..30)) {
        let world = World::new();
        let sessions = world.sessions();
        sessions.start(&workflow(), start("s1")).unwrap();
        let (mut at, mut is_waiting, mut revision) = (0, false, 0);
        for (number, one) in moves.iter().enumerate() {
            match one {
                Move::HandIn { is_good } => {
                    let output = if *is_good { format!("Dear Ada, {number}") } else { " ".to_owned() };
                    let step = STEPS.get(at).copied().unwrap_or("file");
                    let advanced = sessions.advance("s1", revision, &submission(step, &output), 2);
                    prop_assert_eq!(advanced.is_ok(), at < STEPS.len());
                    match (at, is_good) {
                        (3, _) => {}
                        (1, true) => is_waiting = true,
                        (_, true) => (at, revision) = (at + 1, revision + 1),
                        (_, false) => (is_waiting, revision) = (false, revision + 1),
                    }
                }
                Move::Decide { is_approved } => {
                    let version = sessions.open("s1").unwrap().version;
                    let rule = if *is_approved { Sessions::approve } else { Sessions::decline };
                    let ruled = rule(&sessions, "s1", version, &decision(None), 3);
                    prop_assert_eq!(ruled.is_ok(), is_waiting);
                    if is_waiting {
                        at += usize::from(*is_approved);
                        (is_waiting, revision) = (false, revision + 1);
                    }
                }
                Move::Back { to } => {
                    let back = sessions.rewind("s1", revision, STEPS[*to], "anew", 4);
                    prop_assert_eq!(back.is_ok(), *to <= at, "back to {} from {}", to, at);
                    if *to <= at {
                        (at, is_waiting, revision) = (*to, false, revision + 1);
                    }
                }
            }
            let step = STEPS.get(at).map(|step| (*step).to_owned());
            prop_assert_eq!(place(&sessions, "s1"), (revision, step, is_waiting));
        }
        prop_assert_eq!(sessions.verify("s1").unwrap().flaws, Vec::<String>::new());
        prop_assert_eq!(place(&world.sessions(), "s1"), place(&sessions, "s1"));
    }
}
