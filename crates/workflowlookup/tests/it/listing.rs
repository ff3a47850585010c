//! `list`, `show`, `sources`: what there is and where it comes from.

use super::*;

fn with_two_sources() -> Place {
    let place = Place::new();
    place.write("workflows/a.json", definition("first", "First of the project"));
    place.write("workflows/deep/b.yaml", definition("handle-incident", "Our own way"));
    place.write("workflows/broken.json", "{ \"id\": \"broken\", ");
    place.trust();
    place
}

#[test]
fn list_shows_one_line_a_workflow() {
    let place = with_two_sources();
    insta::assert_snapshot!(place.run(&["list"]).shown());
    insta::assert_snapshot!(place.run(&["--no-bundled", "list"]).shown(), @"
    exit 0
    --- stdout
    first	1.0.0	general	First of the project
    handle-incident	1.0.0	general	Our own way
    --- stderr
    warning: one file cannot be used
      try: `workflowlookup sources` shows which, and why
    ");
}

#[test]
fn list_filters_by_words_and_category() {
    let place = with_two_sources();
    insta::assert_snapshot!(place.run(&["list", "RELEASE"]).shown(), @"
    exit 0
    --- stdout
    prepare-release	1.0.0	release	Prepare a Release
    --- stderr
    warning: one file cannot be used
      try: `workflowlookup sources` shows which, and why
    ");
    insta::assert_snapshot!(place.run(&["list", "--category", "general", "first"]).shown(), @"
    exit 0
    --- stdout
    first	1.0.0	general	First of the project
    --- stderr
    warning: one file cannot be used
      try: `workflowlookup sources` shows which, and why
    ");
    insta::assert_snapshot!(Place::new().run(&["list", "no-such-word"]).shown(), @"
    exit 0
    --- stderr
    warning: no workflow matches
      try: `workflowlookup list` without words shows all
    ");
}

#[test]
fn list_as_json_is_the_tools_result() {
    let place = Place::new();
    place.write("workflows/a.json", definition("first", "First"));
    insta::assert_snapshot!(place.run(&["--no-bundled", "list", "--json"]).shown(), @r#"
    exit 0
    --- stdout
    {
      "workflows": [
        {
          "id": "first",
          "name": "First",
          "description": "For a test",
          "category": "general",
          "version": "1.0.0"
        }
      ]
    }
    "#);
}

#[test]
fn show_is_readable() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["show", "refactor-safely"]).shown());
}

#[test]
fn show_as_json_is_the_definition() {
    let place = Place::new();
    for entry in fs::read_dir(repository().join("workflows")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let id = path.file_stem().unwrap().to_str().unwrap();
        let shown = place.run(&["show", id, "--json"]).json();
        if path.extension().unwrap() == "json" {
            let written: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(shown, written, "{id}");
        }
        assert_eq!(shown["id"], id);
    }
}

#[test]
fn an_unknown_id_suggests_the_nearest() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["show", "investigate-bugs"]).shown(), @"
    exit 1
    --- stderr
    error: no workflow has the id `investigate-bugs`
      try: did you mean `investigate-bug`?
    ");
    insta::assert_snapshot!(place.run(&["show", "quite-another-thing"]).shown(), @"
    exit 1
    --- stderr
    error: no workflow has the id `quite-another-thing`
      try: `workflowlookup list` shows what there is
    ");
    insta::assert_snapshot!(place.run(&["show", "../x", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32602,
        "message": "Invalid params",
        "data": {
          "details": "`../x` cannot be the id of a workflow"
        }
      }
    }
    "#);
}

#[test]
fn a_broken_workflow_answers_with_what_is_wrong() {
    let place = with_two_sources();
    insta::assert_snapshot!(place.run(&["show", "broken"]).shown(), @"
    exit 1
    --- stderr
    error: the workflow `broken` cannot be used: the file ends in the middle of a value
      try: `workflowlookup validate workflows/broken.json` shows all that is wrong
    ");
    insta::assert_snapshot!(place.run(&["next", "broken", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32002,
        "message": "Invalid workflow",
        "data": {
          "findings": [
            {
              "code": "W001",
              "column": 18,
              "file": "workflows/broken.json",
              "hint": "look for a missing bracket, brace or quote",
              "line": 1,
              "message": "the file ends in the middle of a value",
              "pointer": "",
              "severity": "error"
            }
          ],
          "workflowId": "broken"
        }
      }
    }
    "#);
}

#[test]
fn sources_show_what_hides_what() {
    let place = with_two_sources();
    insta::assert_snapshot!(place.run(&["sources"]).shown(), @"
    exit 0
    --- stdout
    bundled	9	bundled
    user	missing	[ROOT]/home/.local/share/workflowlookup/workflows
    project	3, 1 broken	workflows
    project	missing	.workflowlookup/workflows

    Hidden by a later file with the same id
      handle-incident: handle-incident.json by workflows/deep/b.yaml

    Findings
    error[W001]: the file ends in the middle of a value
     --> workflows/broken.json:1:18
      = try: look for a missing bracket, brace or quote
    `workflowlookup validate FILE` shows them in place
    ");
    let json = place.run(&["sources", "--json"]).json();
    let project = &json["sources"][2];
    assert_eq!(project["source"], "project");
    assert_eq!(project["files"][1]["usable"], false);
    assert_eq!(project["files"][1]["findings"][0]["code"], "W001");
    let bundled = json["sources"][0]["files"].as_array().unwrap();
    let hidden = bundled.iter().find(|file| file["id"] == "handle-incident").unwrap();
    assert_eq!(hidden["hiddenBy"], "workflows/deep/b.yaml");
}

#[test]
fn sources_stand_in_their_order() {
    let place = Place::new();
    let user = place.home().join(".local/share/workflowlookup/workflows");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("u.json"), definition("same", "User")).unwrap();
    let name = |arguments: &[&str], environment: Option<&str>| {
        let mut command = place.command(arguments);
        if let Some(value) = environment {
            command.env("WORKFLOW_STORAGE_PATH", value);
        }
        place.finish(command, "").json()["name"].as_str().unwrap().to_owned()
    };
    // All of them are in the project's folder, and so must be trusted.
    let trust = |options: &[&str], environment: Option<&str>| {
        let mut command = place.command(&[options, &["trust", "--yes"]].concat());
        command.envs(environment.map(|value| ("WORKFLOW_STORAGE_PATH", value)));
        assert_eq!(place.finish(command, "").status, 0);
    };
    let show = ["show", "same", "--json"];
    assert_eq!(name(&show, None), "User");
    place.write("workflows/p.json", definition("same", "Project"));
    assert_eq!(name(&show, None), "User");
    trust(&[], None);
    assert_eq!(name(&show, None), "Project");
    place.write(".workflowlookup/workflows/p.json", definition("same", "Hidden project"));
    trust(&[], None);
    assert_eq!(name(&show, None), "Hidden project");
    place.write("one/e.json", definition("same", "Environment one"));
    place.write("two/e.json", definition("same", "Environment two"));
    trust(&[], Some("one:two"));
    assert_eq!(name(&show, Some("one:two")), "Environment two");
    place.write("opt/o.json", definition("same", "Option"));
    trust(&["--workflows", "opt"], None);
    assert_eq!(name(&["--workflows", "opt", "show", "same", "--json"], Some("one:two")), "Option");
    assert_eq!(name(&["show", "same", "--json", "--workflows", "opt"], None), "Option");
}
