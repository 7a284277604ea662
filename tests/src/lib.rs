//! What the end-to-end tests share: a hermetic environment, repositories, and the binary under test.
