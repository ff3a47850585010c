//! `next` and `check`: an agent's way through a workflow.

use serde_json::{Value, json};

use super::*;

const LOOPING: &str = r#"
id: sweep
name: Sweep
description: Sweeps rooms
version: 1.0.0
steps:
  - id: list-rooms
    title: List the rooms
    prompt: Put the rooms into `rooms`.
  - id: each-room
    type: loop
    title: Each room
    loop: { type: forEach, items: rooms, itemVar: room, maxIterations: 10 }
    body:
      - id: sweep-it
        title: Sweep
        prompt: Sweep the {{room}}.
        validationCriteria:
          - { type: contains, value: swept, message: Say that it is swept }
          - { type: length, min: 12, message: Say it in a few words }
  - id: rest
    title: Rest
    prompt: Rest.
"#;

fn looping() -> Place {
    let place = Place::new();
    place.write("workflows/sweep.yaml", LOOPING);
    place
}

#[test]
fn the_first_step_and_the_command_that_goes_on() {
    let place = looping();
    insta::assert_snapshot!(place.run(&["next", "sweep"]).shown(), @"
    exit 0
    --- stdout
    List the rooms (list-rooms)

    Put the rooms into `rooms`.

    Report in `context` what later steps use:
    - `rooms`: a list

    when it is done:
      workflowlookup next sweep --completed list-rooms
    ");
    let rooms = r#"rooms=["hall", "it's a \"den\""]"#;
    let done = place.run(&["next", "sweep", "--completed", "list-rooms", "--context", rooms]);
    insta::assert_snapshot!(done.shown(), @r#"
    exit 0
    --- stdout
    Sweep (sweep-it)

    Loop `each-room` (Each room): iteration 1 of 2.

    Sweep the hall.

    Checked for:
    - Say that it is swept
    - Say it in a few words (at least 12 characters)

    When this step is done, ask for the next one with the `state` of this answer merged into `context`, and leave `sweep-it` out of `completedSteps`.

    when it is done:
      workflowlookup next sweep --completed list-rooms --context '_loops={"each-room":{"done":["sweep-it"],"items":["hall","it'\''s a \"den\""],"iteration":1}}' --context 'rooms=["hall","it'\''s a \"den\""]'
    "#);
}

/// The last line of each answer, typed into a shell, leads through the whole workflow.
#[test]
fn the_command_that_goes_on_really_does() {
    let place = looping();
    let mut line =
        "workflowlookup next sweep --context 'rooms=[\"hall\", \"it'\\''s a den\"]'".to_owned();
    let mut steps = Vec::new();
    for _ in 0..10 {
        let program = env!("CARGO_BIN_EXE_workflowlookup");
        let script = line.replacen("workflowlookup", program, 1);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &script]).current_dir(place.project());
        shell.env_clear().env("HOME", place.home());
        let done = place.finish(shell, "");
        assert_eq!(done.status, 0, "{line}\n{}", done.shown());
        steps.push(done.stdout.lines().next().unwrap().to_owned());
        match done.stdout.trim_end().lines().last() {
            Some(last) if last.starts_with("  workflowlookup next") => {
                line = last.trim().to_owned()
            }
            _ => break,
        }
    }
    insta::assert_debug_snapshot!(steps, @r#"
    [
        "List the rooms (list-rooms)",
        "Sweep (sweep-it)",
        "Sweep (sweep-it)",
        "Rest (rest)",
        "The workflow is complete: every step is done or does not apply.",
    ]
    "#);
}

#[test]
fn an_agent_that_returns_what_it_was_given_walks_every_iteration() {
    let place = looping();
    let mut context = json!({"rooms": ["hall", "den"]});
    let mut completed: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    loop {
        let pairs: Vec<String> = context
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let completed_steps = completed.join(",");
        let mut arguments = vec!["next", "sweep", "--json", "--completed", &completed_steps];
        for pair in &pairs {
            arguments.extend(["--context", pair]);
        }
        let answer = place.run(&arguments).json();
        if answer["isComplete"] == true {
            assert_eq!(answer["step"], Value::Null);
            break;
        }
        let step = answer["step"]["id"].as_str().unwrap().to_owned();
        seen.push(step.clone());
        assert!(seen.len() < 10, "{seen:?}");
        match answer.get("state") {
            Some(state) if step == "sweep-it" => context["_loops"] = state["_loops"].clone(),
            Some(state) => {
                context["_loops"] = state["_loops"].clone();
                completed.push(step);
            }
            None => completed.push(step),
        }
    }
    assert_eq!(seen, ["list-rooms", "sweep-it", "sweep-it", "rest"]);
}

#[test]
fn check_says_what_is_missing() {
    let place = looping();
    place.write("out.txt", "clean");
    let check = ["check", "sweep", "sweep-it", "--output"];
    insta::assert_snapshot!(place.run(&[&check[..], &["out.txt"]].concat()).shown(), @r#"
    exit 1
    --- stdout
    not valid
      - Say that it is swept
      - Say it in a few words
    what to change:
      - Include the text "swept", spelt exactly so.
      - Write at least 7 more characters: it has 5, and needs 12.
    "#);
    insta::assert_snapshot!(place.run(&[&check[..], &["out.txt", "--json"]].concat()).shown(), @r#"
    exit 1
    --- stdout
    {
      "valid": false,
      "issues": [
        "Say that it is swept",
        "Say it in a few words"
      ],
      "suggestions": [
        "Include the text \"swept\", spelt exactly so.",
        "Write at least 7 more characters: it has 5, and needs 12."
      ]
    }
    "#);
    let done = place.run_with_input(&[&check[..], &["-"]].concat(), "The hall is swept.");
    insta::assert_snapshot!(done.shown(), @"
    exit 0
    --- stdout
    valid
    ");
}

#[test]
fn context_values_are_json_or_text() {
    let place = Place::new();
    let conditions = r#"
id: typed
name: Typed
description: Values keep their types
version: 1.0.0
steps:
  - { id: number, title: N, prompt: N, runCondition: { var: value, equals: 5 } }
  - { id: text, title: T, prompt: T, runCondition: { var: value, equals: "5" } }
  - { id: word, title: W, prompt: W, runCondition: { var: value, equals: five=5 } }
  - { id: list, title: L, prompt: L, runCondition: { var: value, contains: 5 } }
"#;
    place.write("workflows/typed.yaml", conditions);
    for (pair, step) in [
        ("value=5", "number"),
        ("value=\"5\"", "text"),
        ("value=five=5", "word"),
        ("value=[5]", "list"),
    ] {
        let answer = place.run(&["next", "typed", "--json", "--context", pair]).json();
        assert_eq!(answer["step"]["id"], step, "{pair}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = looping();
    insta::assert_snapshot!(place.run(&["next", "sweep", "--completed", "list-room"]).shown(), @"
    exit 1
    --- stderr
    error: the workflow has no step `list-room`
      try: did you mean `list-rooms`?
    ");
    let twice = ["next", "sweep", "--completed", "list-rooms", "--completed", "list-rooms"];
    insta::assert_snapshot!(place.run(&twice).shown(), @"
    exit 1
    --- stderr
    error: `--completed` repeats `list-rooms`
      try: name each completed step once
    ");
    insta::assert_snapshot!(place.run(&["next", "sweep", "--current", "nowhere-near"]).shown(), @"
    exit 1
    --- stderr
    error: the workflow has no step `nowhere-near`
      try: `workflowlookup show sweep` shows its steps
    ");
    let state = r#"_loops={"each-room": {"iteration": 99}}"#;
    insta::assert_snapshot!(place.run(&["next", "sweep", "--context", state, "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32005,
        "message": "State error",
        "data": {
          "completedSteps": [],
          "details": "`_loops` says about loop `each-room` what cannot be: iteration 99 of at most 10",
          "nearest": []
        }
      }
    }
    "#);
    insta::assert_snapshot!(place.run(&["check", "sweep", "sweep", "--output", "-"]).shown(), @"
    exit 1
    --- stderr
    error: the workflow has no step `sweep`
      try: did you mean `sweep-it`?
    ");
    insta::assert_snapshot!(place.run(&["check", "sweep", "rest", "--output", "gone.txt"]).shown(), @"
    exit 1
    --- stderr
    error: the output `gone.txt` cannot be read: No such file or directory (os error 2)
      try: name a file, or `-` for standard input
    ");
}

/// What the documents of the product's order print.
#[test]
fn the_bundled_task_workflow_begins_as_promised() {
    let place = Place::new();
    let answer = place
        .run(&["next", "ai-task-implementation", "--json", "--context", "taskId=TASK-123"])
        .json();
    assert_eq!(answer["step"]["id"], "understand");
    assert_eq!(answer["step"]["title"], "Deep understanding of task and codebase");
    assert_eq!(answer["step"]["requireConfirmation"], true);
    assert_eq!(answer["guidance"]["modelHint"], "model-with-strong-reasoning");
    assert_eq!(answer["guidance"]["requiresConfirmation"], true);
    let criteria = [
        "Clear understanding of requirements",
        "Identified affected files",
        "Documented assumptions",
    ];
    assert_eq!(answer["guidance"]["validationCriteria"], json!(criteria));
    assert_eq!(answer["isComplete"], false);
}
