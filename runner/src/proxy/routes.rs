//! What one task's proxy may do: its list, its credentials, and where refusals are told.
//!
//! Must never answer by anything but the list.

use std::sync::Arc;

use sandbox::egress::{Credential, Policy, Refusal, Rule, Target};
use sandbox::{Denial, DenialKind};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::outbound::{self, NoWay};
use super::{Keys, Order};
use crate::config;
use crate::task::{Key, TaskId};

/// Names of one task that are looked up at one time.
const LOOKUPS: usize = 8;

/// There is nothing to check a certificate with.
#[derive(Debug, thiserror::Error)]
#[error("this host has no certificates to check others with{}", reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}")))]
pub struct RootsError {
    reason: Option<String>,
}

/// What a target is.
#[derive(Debug)]
pub(super) enum Way<'r> {
    /// A host; `explicit` when the list names host and port.
    Host {
        /// Whether the address may be a local one, and the protocol any.
        explicit: bool,
    },
    /// A credential's own name.
    Credential(&'r Credential),
}

#[derive(Debug)]
pub(super) struct Routes {
    pub(super) policy: Policy,
    task: TaskId,
    credentials: Vec<Credential>,
    keys: Keys,
    denials: mpsc::Sender<Denial>,
    tls: Option<Arc<ClientConfig>>,
    /// Each name that is looked up holds a thread of the supervisor: a room must not take them all.
    lookups: Semaphore,
}

impl Routes {
    pub(super) fn new(order: Order, denials: mpsc::Sender<Denial>) -> Result<Self, RootsError> {
        let encrypted = order
            .credentials
            .iter()
            .any(|credential| credential.upstream.tls);
        let tls = if encrypted {
            Some(Arc::new(client()?))
        } else {
            None
        };
        Ok(Self {
            policy: order.policy,
            task: order.task,
            credentials: order.credentials,
            keys: order.keys,
            denials,
            tls,
            lookups: Semaphore::new(LOOKUPS),
        })
    }

    /// Where a request may go.
    pub(super) fn way(&self, target: &Target) -> Result<Way<'_>, Refusal> {
        let grant = self.policy.judge(target)?;
        let Rule::Credential(name) = grant.rule else {
            return Ok(Way::Host {
                explicit: grant.explicit,
            });
        };
        let known = self
            .credentials
            .iter()
            .find(|credential| credential.name == *name);
        known.map(Way::Credential).ok_or_else(|| Refusal::Host {
            target: target.clone(),
            own: true,
        })
    }

    /// Connects. `explicit`: the address may be a local one.
    pub(super) async fn connect(
        &self,
        target: &Target,
        explicit: bool,
    ) -> Result<TcpStream, NoWay> {
        // It is never closed.
        let turn = self.lookups.acquire().await.ok();
        let found = outbound::addresses(target).await?;
        drop(turn);
        outbound::connect(target, &found, explicit).await
    }

    /// The value of a credential.
    pub(super) fn key(&self, credential: &Credential) -> Option<Key> {
        self.keys.of(&self.task, &credential.name)
    }

    pub(super) fn tls(&self) -> Option<TlsConnector> {
        self.tls
            .as_ref()
            .map(|config| TlsConnector::from(Arc::clone(config)))
    }

    /// Puts a refusal on record and says it in the words that the room gets.
    pub(super) async fn refuse(&self, refusal: &Refusal) -> String {
        // The receiver goes last of all.
        self.denials.send(refusal.denial(&self.policy)).await.ok();
        refusal.told(&self.policy)
    }

    /// Says that the value of a credential went with an earlier supervisor.
    pub(super) async fn miss(&self, credential: &Credential) -> String {
        let rule = format!(
            "its value went with a supervisor that ended: `airlock resume {}` hands it over anew",
            self.task
        );
        let what = format!("{}.airlock", credential.name);
        let denial = Denial::now(None, DenialKind::Host, &what, &rule);
        self.denials.send(denial).await.ok();
        format!(
            "{what}: {rule}; it is taken from {}\n",
            config::key_place(credential)
        )
    }
}

/// How many certificates this host has to check others with.
pub fn certificates() -> Result<usize, RootsError> {
    roots().map(|roots| roots.len())
}

fn roots() -> Result<RootCertStore, RootsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(RootsError {
            reason: found.errors.first().map(ToString::to_string),
        });
    }
    Ok(roots)
}

/// TLS as the proxy itself speaks it: certificates by the host's own list, HTTP/1.1.
fn client() -> Result<ClientConfig, RootsError> {
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots()?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
