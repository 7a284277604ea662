//! The `airlock` binary again, so that Cargo hands its path to the tests.

fn main() -> std::process::ExitCode {
    runner::main()
}
