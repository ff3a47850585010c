//! The table of finding codes. A code never changes its meaning and is never used again. The pages in
//! `docs/findings/` are generated from this table.

use super::Severity;

macro_rules! codes {
    ($($variant:ident $name:literal $severity:ident $title:literal $explanation:literal)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable name, such as `W012`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What is wrong, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// Why it matters and what to do.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)* }
            }
        }
    };
}

codes! {
    Syntax "W001" Error "the file is not JSON or YAML"
        "The file could not be read as JSON (or as YAML, where its name ends in `.yaml` or `.yml`). Nothing else in it is looked at until this is mended."
    Encoding "W002" Error "the file is not UTF-8 text"
        "Definitions are UTF-8. A file saved as UTF-16 or in a local encoding must be saved again as UTF-8."
    ByteOrderMark "W003" Warning "the file begins with a byte order mark"
        "The mark is skipped, but other tools stumble over it. Save the file as UTF-8 without it."
    TooLarge "W004" Error "the file is too large"
        "A definition holds at most 1 MiB. The file was not read."
    TooDeep "W005" Error "the file nests too deeply"
        "Objects and lists may nest 64 levels deep, and loops may stand 32 levels inside each other, by name or not, which no honest definition needs."
    TooManyValues "W006" Error "aliases make the file too large"
        "A YAML file may come to at most 100,000 values once its aliases are expanded, and an alias must not stand inside the value that it names."
    DuplicateKey "W007" Error "a key stands twice in one object"
        "Of two equal keys one would be lost without a word. Remove or rename one of them."
    Missing "W010" Error "a required field is missing"
        "The object lacks a field that it cannot do without."
    WrongType "W011" Error "a value is of the wrong type"
        "The field expects another kind of value: a text, a number, true or false, a list or an object."
    UnknownField "W012" Error "an unknown field"
        "The field does not exist at this place. Fields are never silently ignored: a misspelt one would change nothing, and nobody would notice."
    NotAllowed "W013" Error "a value that is not one of those allowed"
        "The field takes one of a few fixed values."
    BadId "W014" Error "an id that cannot be used"
        "Ids have 3 to 64 characters: lower-case letters, digits, `-` and `_`, with at most one dot inside."
    TextLength "W015" Error "a text that is empty or too long"
        "The text must not be empty, and a name, a title, a description or a prompt has a largest length."
    BadVersion "W016" Error "a version that is not semantic"
        "Versions have three numbers, such as `1.0.0`, and may add a pre-release such as `1.0.0-rc.1`."
    Repeated "W017" Error "an entry stands twice in a list"
        "Preconditions, questions and advice are unique within their list."
    Empty "W018" Error "a list that must not be empty"
        "A workflow needs at least one step, and so does the body of a loop."
    OutOfRange "W019" Error "a number out of range"
        "`maxIterations` is between 1 and 1000, `count` between 0 and 1000, and the `min` and `max` of a rule are not negative."
    NewerServer "W020" Error "the workflow needs a newer workflowlookup"
        "`minServerVersion` is higher than the version that reads the file. Update workflowlookup, or lower the field if the workflow does not need what is newer."
    DuplicateStep "W021" Error "two steps have the same id"
        "Step ids are unique across the whole workflow, bodies of loops included: an agent names the steps it has completed by their ids."
    UnknownBody "W022" Error "a loop's body names no step"
        "A loop's `body` is a list of steps or the id of a step at the top level of the workflow. This id is not there."
    Unbounded "W023" Error "a loop is not bounded"
        "Every loop says in `maxIterations` how often it may run at most, so that no agent is caught in it."
    Endless "W024" Error "a loop that cannot end by itself"
        "A `while` condition that always holds, an `until` condition that never does, or a body that leads back to the loop itself: only the bound would end it. If a fixed number of rounds is meant, use `for`."
    NeverRuns "W025" Error "a step that can never run"
        "The condition contradicts itself, or is false whatever the context holds, so the step would be skipped every time, or the rule would never apply. Or a loop counts to 0."
    LoopLacks "W026" Error "a loop lacks what its kind needs"
        "`while` and `until` need a `condition`, `for` a `count`, `forEach` an `items` variable."
    NoEffectOnLoop "W027" Warning "a field has no effect on this kind of loop"
        "The field belongs to another kind of loop and is not looked at."
    CutShort "W028" Warning "a loop's bound is below its count"
        "`count` is larger than `maxIterations`, so the bound always ends the loop early."
    UnknownOperator "W030" Error "an unknown operator in a condition"
        "Conditions know `equals`, `not_equals`, `gt`, `gte`, `lt`, `lte`, `in`, `contains`, `and`, `or` and `not`. An unknown one would otherwise be false without a word."
    NoVariable "W031" Error "a comparison without a variable"
        "A comparison needs `var`, the context variable that it looks at."
    UnknownRule "W040" Error "an unknown type of rule"
        "Rules are of type `contains`, `regex`, `length` or `schema`. The workflow can be used, but the output of this step cannot be checked."
    RuleLacks "W041" Error "a rule lacks what its type needs"
        "`contains` needs a `value`, `regex` a `pattern`, `length` a `min` or a `max`, `schema` a `schema`, and every rule a `message`. The workflow can be used, but the output of this step cannot be checked."
    LengthRange "W042" Error "a length that nothing can have"
        "`min` is larger than `max`, so no output passes."
    BadPattern "W043" Error "a pattern that cannot be used"
        "The pattern or its flags are malformed, or the pattern is too large to compile. Patterns are written in JavaScript's flavour."
    InlineFlags "W044" Warning "flags inside a pattern"
        "`(?i)` is taken as the flag, but JavaScript itself rejects it. Write `flags` instead."
    BadSchema "W045" Error "a malformed JSON Schema in a rule"
        "The schema of the rule is not valid under its meta-schema, or refers to something outside itself. The workflow can be used, but the output of this step cannot be checked."
    NothingChecked "W046" Warning "a check that checks nothing"
        "An empty composition has no member that could fail, every output contains the empty text, and a rule whose condition never holds drops out each time."
    NoEffectOnRule "W048" Warning "a field has no effect on this type of rule"
        "The field belongs to another type of rule and is not looked at."
    ExpensiveRule "W049" Warning "a rule that may take too long"
        "Every call may take a bounded number of steps. This rule may need more for an output of moderate size, and then the output is neither accepted nor rejected: the call is refused with -32004. A schema is expensive where definitions refer to others twice, over and over, or where alternatives repeat the same reference at each level of a value; a pattern, where repetitions inside repetitions meet a back-reference. Write what the alternatives share once, beside them; check less with one pattern."
    UnsetVariable "W050" Warning "a template variable that nothing sets"
        "No loop binds the variable, no condition reads it and no text tells the agent about it, so the slot will most likely stay unfilled. Often it is a misspelt name."
    BadTemplate "W051" Warning "a slot that cannot be filled"
        "Between the braces stands a variable or a dotted path, optionally plus or minus a whole number. Anything else reaches the agent as it is written."
    UndeclaredVariable "W052" Error "a variable that is not declared"
        "The workflow declares its `variables`, and a condition, loop, template or `reports` uses one that is not among them. It would always be absent, so the path would silently change. Often it is a misspelt name."
    UnreportedVariable "W053" Warning "a variable that no step reports"
        "The variable is used, and no step lists it in `reports`. It is known only if the client passes it when the session starts. List it in the `reports` of the step that finds it out."
    ImpossibleValue "W054" Error "a value that the variable cannot have"
        "A condition compares a declared variable with a value that its declaration excludes, or a loop needs a list or a number and the variable is declared as something else. The comparison would never hold."
    GateMayVanish "W055" Error "a gate that may disappear"
        "Whether a person is asked depends on a variable that no earlier step must report: where it is missing, the condition does not hold and nobody is asked. List it in the `reports` of an earlier step that always runs, without `?`. A report of a conditional step counts only if that step runs whenever the gate does; one inside a loop that may run zero times does not count behind it. A `while` or `until` loop begins without what only its own steps report. A path such as `release.kind` needs a `schema` with every part in `required`."
    UnreportedGate "W056" Warning "a gate that depends on an undeclared variable"
        "Whether a person is asked depends on a variable that nothing makes the agent report: where it is missing, the condition does not hold and nobody is asked. Declare it in `variables`, and list it in the `reports` of an earlier step."
    BadDeclaration "W057" Error "a declaration that cannot be used"
        "A declared variable has a `type`, or a `schema` instead. `values` are for a `string`, `number` or `integer`, `items` for a `list`. The names `steps`, `children`, `wr` and `_loops` are the session's own. A step reports a variable once."
    UnknownOutput "W058" Error "a reference to an output that does not exist"
        "`{{steps.ID.output}}` is the accepted output of the step `ID`. No step has this id, or it is a loop: then refer to a step of its body."
    OutputMayBeMissing "W059" Warning "a reference to an output that may be missing"
        "The step may not have run when the text is shown: it comes later, or is the step itself, or its condition need not hold, or its loop may have no iteration. Then the slot reaches the agent as it is written. Refer to a step that always runs before, or give both steps the same `runCondition`."
    LongText "W060" Warning "a text longer than recommended"
        "Long texts work, but agents follow short ones better: prompts up to 2048 characters, questions, advice and messages up to 256. Split the step, or move detail into `guidance`."
    ReservedName "W061" Warning "a reserved name of a variable"
        "The names `steps`, `children`, `wr` and `_loops` belong to the session. A context that sets one of them is refused for a workflow that refers to outputs of its steps."
    EmptyMessage "W062" Warning "a rule with an empty message"
        "The agent reads the message before it works, and again when the rule fails. Where it is empty, one is generated from the rule, which says less than its author could."
    Unreadable "W070" Error "the file cannot be read"
        "The file or folder could not be opened: it is gone, or there is no permission. Everything else is served."
    LinkOut "W071" Error "a link that leads out of its folder"
        "The link was not followed: a folder of workflows must not reach into the rest of the machine. Copy the file instead."
    TooManyFiles "W072" Error "too many files"
        "A source holds at most 20,000 files, and its folders nest at most 16 deep. What is beyond was not read."
}

impl Code {
    /// Whether the file was refused for safety rather than for what it says.
    pub fn is_security(self) -> bool {
        matches!(
            self,
            Self::TooLarge
                | Self::TooDeep
                | Self::TooManyValues
                | Self::LinkOut
                | Self::TooManyFiles
        )
    }

    /// Whether the file could not be read at all.
    pub fn is_storage(self) -> bool {
        self == Self::Unreadable
    }
}
