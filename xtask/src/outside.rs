//! Test data that is not ours to publish, and so not part of this repository. Its tests run if its directory lies beside the
//! repository, or if a variable names another directory.

use std::ffi::OsString;

use crate::root;

struct Data {
    what: &'static str,
    /// Tells the tests where it is. They fail if it is not there.
    variable: &'static str,
    /// The usual directory, as seen from the repository.
    directory: &'static str,
    /// A part of the names of the tests that need it, and of no other tests.
    tests: &'static str,
}

const ALL: [Data; 2] = [
    Data {
        what: "the official MCP schemas",
        variable: "WORKFLOWLOOKUP_MCP_SCHEMAS",
        directory: "../shared/mcp-schema",
        tests: "official_schemas",
    },
    Data {
        what: "workflow files from the wild",
        variable: "WORKFLOWLOOKUP_CORPUS",
        directory: "../shared/corpus",
        tests: "files_from_the_wild",
    },
];

/// What is there, and which tests cannot run.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// Parts of the names of tests, for `--skip`.
    pub(crate) skipped: Vec<&'static str>,
    /// A line about each, for people.
    pub(crate) not_run: Vec<String>,
}

/// Looks for all of it.
pub(crate) fn find() -> Outside {
    let mut outside = Outside::default();
    for Data { what, variable, directory, tests } in ALL {
        let usual = root().join(directory);
        let named = std::env::var_os(variable);
        match named.or_else(|| usual.is_dir().then(|| usual.into_os_string())) {
            Some(place) => outside.variables.push((variable, place)),
            None => {
                outside.skipped.push(tests);
                outside.not_run.push(format!(
                    "not run: the tests named `*{tests}*`, which need {what}: there is no `{directory}`, and \
                     `{variable}` names no other directory"
                ));
            }
        }
    }
    outside
}
