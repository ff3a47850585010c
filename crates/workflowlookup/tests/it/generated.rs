//! Documents that are made from the product itself. `cargo xtask generate` writes them anew.

use super::*;

fn assert_current(path: &str, text: &str) {
    let path = repository().join(path);
    if std::env::var_os("WORKFLOWLOOKUP_UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let current = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(current, text, "{} is stale: run `cargo xtask generate`", path.display());
}

#[test]
fn generated_command_line_page() {
    let place = Place::new();
    let help = |arguments: &[&str]| place.run(arguments).stdout;
    let main = help(&["--help"]);
    let commands: Vec<&str> = main
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() >= 9, "{commands:?}");
    let mut page = format!(
        "# The command line\n\nMade from `--help`.\n\nThe exit status is 0 where all is well, 1 where \
         something was refused, found wrong or is not valid, and 2 where we failed.\n\n```text\n{main}```\n"
    );
    for command in commands {
        let help = help(&[command, "--help"]);
        assert!(help.contains("Example"), "{command} has no example");
        page.push_str(&format!("\n## {command}\n\n```text\n{help}```\n"));
    }
    assert_current("docs/command-line.md", &page);
}
