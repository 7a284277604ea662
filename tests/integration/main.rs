//! The end-to-end tests, one module for each thing a user relies on.
