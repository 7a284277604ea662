//! The `airlock` binary; everything is in [`runner::main`].

fn main() -> std::process::ExitCode {
    runner::main()
}
