//! The binary. All of it is in the library beside it, which is compiled while what it uses still is.

fn main() -> std::process::ExitCode {
    workflowlookup::main()
}
