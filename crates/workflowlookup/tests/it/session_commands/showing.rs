//! `session show`, in each of its forms.

use super::*;

#[test]
fn show_tells_what_happened() {
    let place = with_sessions();
    insta::assert_snapshot!(place.run(&["session", "show", FINISHED]).shown(), @r#"
    exit 0
    --- stdout
    Mend a Fault
      session      7k2m3v9xq0b8d5fgh1jn
      workflow     mend-a-fault 1.2.0
      goal         Users are logged out after a minute
      owner        ann
      status       complete
      revision     8
      began        2026-03-02T09:01:01Z
      last touched 2026-03-02T09:12:12Z

    Context
      area = "login"
      severity = "low"

    History
       1  2026-03-02T09:01:01Z  began at `understand`
       2  2026-03-02T09:02:02Z  `understand` not accepted [superseded by 8]
          - Name the cause
          - Say it in a sentence
       3  2026-03-02T09:03:03Z  `understand` accepted, attempt 2; then `plan` [superseded by 8]
          │ The cause: the token is held against the wrong clock.
       4  2026-03-02T09:04:04Z  `plan` handed in, to be confirmed by a person [superseded by 8]
          │ Restart the server every minute.
       5  2026-03-02T09:05:05Z  `plan` rejected by ann through the client, which vouched for its user (unverified): that is no fix [superseded by 8]
       6  2026-03-02T09:06:06Z  `plan` handed in, attempt 2, to be confirmed by a person [superseded by 8]
          │ 1. Use one clock ```rust let now = clock.now(); ``` 2. Test it
       7  2026-03-02T09:07:07Z  `plan` approved by ann on the command line: the plan is sound; then `mend` [superseded by 8]
       8  2026-03-02T09:08:08Z  went back to `understand`: the clock was right after all
          supersedes events 2 to 7
       9  2026-03-02T09:09:09Z  `understand` accepted; then `plan`
          │ The cause: the cookie ends after sixty seconds.
      10  2026-03-02T09:10:10Z  `plan` handed in, to be confirmed by a person
          │ Let the cookie live for a day.
      11  2026-03-02T09:11:11Z  `plan` approved by ann through the client, which vouched for its user (unverified); then `mend`
      12  2026-03-02T09:12:12Z  `mend` accepted; that was the last step
          │ Done in `session.rs`; the test that failed passes.

    12 events, all as they were written
    "#);
    insta::assert_snapshot!(place.run(&["session", "show", COPY]).shown(), @r#"
    exit 0
    --- stdout
    Mend a Fault
      session      7k2mzt5s9a4c6e8g0hpr
      workflow     mend-a-fault 1.2.0
      goal         Users are logged out after a minute
      owner        ann
      status       running
      stands at    step `plan` (Plan the fix), after 1 failed attempt
      revision     1
      began        2026-03-02T09:13:13Z
      last touched 2026-03-02T09:16:16Z
      copied from  session `7k2m3v9xq0b8d5fgh1jn` after its event 9: try a shorter life

    Context
      area = "login"
      severity = "low"

    History
      1  2026-03-02T09:13:13Z  began as a copy at `plan`
      2  2026-03-02T09:14:14Z  `plan` handed in, to be confirmed by a person
         │ An hour.
      3  2026-03-02T09:15:15Z  `plan` handed in, to be confirmed by a person
         │ Two hours.
      4  2026-03-02T09:16:16Z  `plan` rejected by bob with a token

    4 events, all as they were written
    "#);
    insta::assert_snapshot!(place.run(&["session", "show", WAITING]).shown(), @r#"
    exit 0
    --- stdout
    Mend a Fault
      session      c4r8t2w6y0a1e3g5h7kp
      workflow     mend-a-fault 1.2.0
      goal         Mend the | *printer* �[31mapproved
      owner        bob
      status       waiting
      stands at    step `plan` (Plan the fix)
      revision     1
      began        2026-03-02T09:17:17Z
      last touched 2026-03-02T09:19:19Z

    Waiting for a person
      the output of step `plan` (Plan the fix), version 3:
      │ Pick it up:
      │ ````
      │ ```
      │ sh pick.sh
      │ ````
      │ Then print.\u007f\u202e
      and what it reports besides:
      │ paper = ["A4","A3"]
      decide with:
        workflowlookup session approve c4r8t2w6y0a1e3g5h7kp
        workflowlookup session reject c4r8t2w6y0a1e3g5h7kp

    Context
      floor = 2

    History
      1  2026-03-02T09:17:17Z  began at `understand`
      2  2026-03-02T09:18:18Z  `understand` accepted; then `plan`
         │ The cause: paper.�[2J It is on the floor.
      3  2026-03-02T09:19:19Z  `plan` handed in, to be confirmed by a person
         │ Pick it up: ```` ``` sh pick.sh ```` Then print.��

    3 events, all as they were written
    "#);
}

#[test]
fn show_as_markdown_is_a_report_for_a_review() {
    let place = with_sessions();
    let report = |id: &str| place.run(&["session", "show", id, "--markdown"]).shown();
    insta::assert_snapshot!(report(FINISHED), @r#"
    exit 0
    --- stdout
    # Session report: Mend a Fault

    | | |
    |---|---|
    | Goal | Users are logged out after a minute |
    | Workflow | `mend-a-fault` 1.2.0 |
    | Session | `7k2m3v9xq0b8d5fgh1jn` |
    | Owner | ann |
    | Status | complete |
    | Revision | 8 |
    | Began | 2026-03-02T09:01:01Z |
    | Last touched | 2026-03-02T09:12:12Z |

    ## Steps

    ### 1. **Superseded:** Understand the fault (`understand`)

    > The session went back at event 8: this does not count any more.

    Accepted 2026-03-02T09:03:03Z.

    ```
    The cause: the token is held against the wrong clock.
    ```

    Tried before:

    - Attempt 1, 2026-03-02T09:02:02Z: not accepted
      - Name the cause
      - Say it in a sentence

      ```
      It is slow
      ```

    ### 2. **Superseded:** Plan the fix (`plan`)

    > The session went back at event 8: this does not count any more.

    Approved 2026-03-02T09:07:07Z by ann on the command line: the plan is sound.

    ````
    1. Use one clock

    ```rust
    let now = clock.now();
    ```

    2. Test it
    ````

    Tried before:

    - Attempt 1, 2026-03-02T09:05:05Z: rejected by ann through the client, which vouched for its user (unverified): that is no fix

      ```
      Restart the server every minute.
      ```

    ### Back to Understand the fault (`understand`)

    Event 8, 2026-03-02T09:08:08Z: the clock was right after all. It supersedes events 2 to 7.

    ### 3. Understand the fault (`understand`)

    Accepted 2026-03-02T09:09:09Z.

    ```
    The cause: the cookie ends after sixty seconds.
    ```

    ### 4. Plan the fix (`plan`)

    Approved 2026-03-02T09:11:11Z by ann through the client, which vouched for its user (unverified).

    ```
    Let the cookie live for a day.
    ```

    ### 5. Mend it (`mend`)

    Accepted 2026-03-02T09:12:12Z.

    ```
    Done in `session.rs`; the test that failed passes.
    ```

    ## Context

    ```json
    {
      "area": "login",
      "severity": "low"
    }
    ```

    ---

    Verified: the chain of 12 events holds, and their replay leads here.
    "#);
    insta::assert_snapshot!(report(COPY), @r#"
    exit 0
    --- stdout
    # Session report: Mend a Fault

    | | |
    |---|---|
    | Goal | Users are logged out after a minute |
    | Workflow | `mend-a-fault` 1.2.0 |
    | Session | `7k2mzt5s9a4c6e8g0hpr` |
    | Owner | ann |
    | Status | running |
    | Stands at | Plan the fix (`plan`) |
    | Revision | 1 |
    | Began | 2026-03-02T09:13:13Z |
    | Last touched | 2026-03-02T09:16:16Z |
    | Copied from | session `7k2m3v9xq0b8d5fgh1jn` after its event 9: try a shorter life |
    | Done before the copy | `understand` |

    ## Steps

    ### 1. Plan the fix (`plan`)

    Not done: no output was accepted.

    Tried so far:

    - Attempt 1, 2026-03-02T09:14:14Z: handed in anew before it was decided about

      ```
      An hour.
      ```

    - Attempt 1, 2026-03-02T09:16:16Z: rejected by bob with a token

      ```
      Two hours.
      ```

    ## Context

    ```json
    {
      "area": "login",
      "severity": "low"
    }
    ```

    ---

    Verified: the chain of 4 events holds, and their replay leads here.
    "#);
    insta::assert_snapshot!(report(WAITING), @r#"
    exit 0
    --- stdout
    # Session report: Mend a Fault

    | | |
    |---|---|
    | Goal | Mend the \| \*printer\* �\[31mapproved |
    | Workflow | `mend-a-fault` 1.2.0 |
    | Session | `c4r8t2w6y0a1e3g5h7kp` |
    | Owner | bob |
    | Status | waiting |
    | Stands at | Plan the fix (`plan`) |
    | Revision | 1 |
    | Began | 2026-03-02T09:17:17Z |
    | Last touched | 2026-03-02T09:19:19Z |

    ## Waiting for a person

    Plan the fix (`plan`) passed its checks, and a person has to confirm its output, version 3:

    `````
    Pick it up:
    ````
    ```
    sh pick.sh
    ````
    Then print.��
    `````

    It reports besides:

    ```json
    {
      "paper": [
        "A4",
        "A3"
      ]
    }
    ```

    ## Steps

    ### 1. Understand the fault (`understand`)

    Accepted 2026-03-02T09:18:18Z.

    ```
    The cause: paper.�[2J It is on the floor.
    ```

    ### 2. Plan the fix (`plan`)

    Handed in 2026-03-02T09:19:19Z; it waits for a person to confirm it.

    ## Context

    ```json
    {
      "floor": 2
    }
    ```

    ---

    Verified: the chain of 3 events holds, and their replay leads here.
    "#);
}

/// What somebody tried in vain is shown as far as it tells something; what a person has read is shown whole.
#[test]
fn a_report_has_what_was_not_taken() {
    let place = Place::new();
    let steps = r#"
id: tidy
name: Tidy
description: Tidies
version: 1.0.0
steps:
  - id: only
    title: Only
    prompt: Do it.
    requireConfirmation: true
    validationCriteria: [{ type: contains, value: mess, message: Name it }]
"#;
    place.write("workflows/tidy.yaml", steps);
    let most = "x".repeat(4_095);
    let long = "# y\n".repeat(2_000);
    let input =
        format!("{most}äöü\n.\n```\n# no\n\n- no\n.\na mess\n{long}.\nn too long\na mess\n.\ny\n");
    let done = place.run_with_input(&["run", "tidy"], &input);
    assert_eq!(done.status, 0, "{}", done.shown());
    let id = done.stdout.lines().find_map(|line| line.strip_prefix("session: ")).unwrap();
    let report = place.run(&["session", "show", id, "--markdown"]).stdout;
    let cut = format!("  ```\n  {most}\n  ```\n\n  6 bytes left out here");
    assert!(report.contains(&cut), "{report}");
    assert!(report.contains("  ````\n  ```\n  # no\n\n  - no\n  ````\n"), "{report}");
    assert_eq!(report.matches("\n  # y").count(), 2_000, "{report}");
}

#[test]
fn show_as_json_has_everything() {
    let place = with_sessions();
    insta::assert_snapshot!(place.run(&["session", "show", WAITING, "--json"]).shown(), @r#"
    exit 0
    --- stdout
    {
      "sessionId": "c4r8t2w6y0a1e3g5h7kp",
      "workflowId": "mend-a-fault",
      "workflowName": "Mend a Fault",
      "workflowVersion": "1.2.0",
      "goal": "Mend the | *printer*\n\u001b[31mapproved",
      "owner": "bob",
      "sharedWith": [],
      "isStrict": false,
      "status": "waiting",
      "stepId": "plan",
      "revision": 1,
      "attempts": 0,
      "began": "2026-03-02T09:17:17Z",
      "touched": "2026-03-02T09:19:19Z",
      "waiting": {
        "version": 3,
        "stepId": "plan",
        "output": "Pick it up:\n````\n```\nsh pick.sh\n````\nThen print.\u007f\u202e",
        "context": {
          "paper": [
            "A4",
            "A3"
          ]
        }
      },
      "loopGate": null,
      "imported": null,
      "context": {
        "floor": 2
      },
      "completed": [
        "understand"
      ],
      "forkedFrom": null,
      "events": [
        {
          "number": 1,
          "time": "2026-03-02T09:17:17Z",
          "stepId": "understand",
          "attempt": null,
          "supersededBy": null,
          "isUnverified": false,
          "event": {
            "type": "started",
            "workflowId": "mend-a-fault",
            "goal": "Mend the | *printer*\n\u001b[31mapproved",
            "context": {},
            "place": {
              "step": "understand"
            }
          }
        },
        {
          "number": 2,
          "time": "2026-03-02T09:18:18Z",
          "stepId": "understand",
          "attempt": 1,
          "supersededBy": null,
          "isUnverified": false,
          "event": {
            "type": "accepted",
            "submission": {
              "step": "understand",
              "output": "The cause: paper.\u001b[2J It is on the floor.",
              "context": {
                "floor": 2
              }
            },
            "place": {
              "step": "plan",
              "completed": [
                "understand"
              ]
            }
          }
        },
        {
          "number": 3,
          "time": "2026-03-02T09:19:19Z",
          "stepId": "plan",
          "attempt": 1,
          "supersededBy": null,
          "isUnverified": false,
          "event": {
            "type": "submitted",
            "submission": {
              "step": "plan",
              "output": "Pick it up:\n````\n```\nsh pick.sh\n````\nThen print.\u007f\u202e",
              "context": {
                "paper": [
                  "A4",
                  "A3"
                ]
              }
            }
          }
        }
      ],
      "flaws": []
    }
    "#);
    let shown = place.run(&["session", "show", FINISHED, "--json"]).json();
    let exported: serde_json::Value = serde_json::from_str(&exported("finished")).unwrap();
    for (at, event) in exported["events"].as_array().unwrap().iter().enumerate() {
        assert_eq!(shown["events"][at]["event"], event["body"]);
    }
    assert_eq!(shown["events"][2]["supersededBy"], 8);
    assert_eq!(shown["events"][2]["attempt"], 2);
    let copy = place.run(&["session", "show", COPY, "--json"]).json();
    let from = json!({"session": FINISHED, "version": 9, "reason": "try a shorter life"});
    assert_eq!(copy["forkedFrom"], from);
}
