//! A scripted agent: does what its arguments say and nothing else.

fn main() {}
