//! A workflow that needs a newer workflowlookup than this one.

use super::Report;
use crate::definition::Workflow;
use crate::finding::Code;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let Some(wanted) = &workflow.min_server_version else {
        return;
    };
    let versions = semver::Version::parse(wanted)
        .and_then(|wanted| Ok((wanted, semver::Version::parse(crate::VERSION)?)));
    if let Ok((wanted, ours)) = versions
        && wanted > ours
    {
        let message = format!("the workflow needs workflowlookup {wanted}, but this is {ours}");
        let hint = Some("update workflowlookup, or lower `minServerVersion`".to_owned());
        report.add(Code::NewerServer, &"/minServerVersion", At::Value, message, hint);
    }
}
