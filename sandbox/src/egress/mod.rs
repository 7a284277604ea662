//! What a room may reach through the proxy: policy, request parsing, and what the room itself sees of it. Plain
//! synchronous functions over bytes and values; the sockets are the runner's.
//!
//! One policy for every way in: CONNECT, plain HTTP and SOCKS5 are all read into a [`Target`] and put to
//! [`Policy::judge`], which answers with the rule that let it through or with the [`Refusal`].
//! Must never open a socket, look up a name, or hold a secret.

mod address;
mod chunks;
mod credential;
mod hello;
mod host;
mod inside;
mod judge;
mod policy;
mod refusal;
mod request;
mod rule;
mod socks;

pub use address::{is_global, may_reach};
pub use chunks::{ChunkError, Chunks, write_chunk, write_end};
pub use credential::{Credential, CredentialError, KeySource, Upstream};
pub use hello::{Hello, HelloError, read_hello};
pub use host::{Host, HostError};
pub use inside::{Door, SOCKET, environment, hosts_lines, read_preamble};
pub use judge::{Grant, Target};
pub use policy::{Policy, PolicyError};
pub use refusal::Refusal;
pub use request::{
    Body, Exchange, Form, Request, RequestError, Response, read_request, read_response,
};
pub use rule::{Group, Rule, RuleError};
pub use socks::{
    SocksError, answer as socks_answer, code as socks_code, read_greeting, read_socks,
};
