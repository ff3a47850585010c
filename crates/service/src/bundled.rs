//! The definitions inside the binary. A test keeps this list equal to the folder.

use catalog::Bundled;

macro_rules! bundled {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../workflows/", $name))),)*]
    };
}

pub const BUNDLED: &[Bundled] = bundled! {
    "ai-task-implementation.json"
    "build-feature.json"
    "handle-incident.json"
    "investigate-bug.json"
    "prepare-release.json"
    "refactor-safely.json"
    "review-change.json"
    "write-a-workflow.yaml"
    "write-documentation.json"
};

#[cfg(test)]
mod tests {
    use super::BUNDLED;

    #[test]
    fn the_list_is_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workflows");
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let listed: Vec<&str> = BUNDLED.iter().map(|(name, _)| *name).collect();
        assert_eq!(listed, names);
    }
}
