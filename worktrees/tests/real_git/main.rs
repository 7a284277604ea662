//! The crate against real repositories made by the real `git`. Nothing is faked; every test has its own folder.

mod fixture;

mod create;
mod land;
mod seal;
