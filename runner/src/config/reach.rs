//! How an agent gets to its model, and what its room reaches because of that. Where the profile knows
//! an endpoint and the caller has a credential for it, the room gets a local address and the
//! credential stays outside; else the profile's domains, and what the profile hands over. Whatever
//! somebody says about the network beats the profile. Reads no value of a credential.

use std::collections::BTreeMap;

use sandbox::egress::{Credential, KeySource, Policy, Upstream};

use super::agents::{Agent, Endpoint, STAND_IN, told, without_version};
use super::environment::{EnvEntry, looks_secret};
use super::origin::{Given, Origin};
use super::scene::Scene;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::task::{Isolation, Net};

/// The way to the model.
#[derive(Debug)]
pub(super) enum Way<'s> {
    /// By a local address whose other end adds the credential.
    Local(Box<Local<'s>>),
    /// As the agent does it by itself.
    Direct,
    /// None: the room has no network.
    Shut,
}

/// A local address.
#[derive(Debug)]
pub(super) struct Local<'s> {
    endpoint: &'s Endpoint,
    credential: Credential,
    /// The variable that the agent takes for its credential.
    variable: String,
    origin: Origin,
}

impl Local<'_> {
    /// What stands where the agent's command says `{model}`.
    pub(super) fn arguments(&self) -> Vec<String> {
        self.endpoint
            .arguments(&self.credential.base_url(), &self.variable)
    }

    fn rule(&self) -> String {
        format!("{}.airlock", self.credential.name)
    }
}

impl Scene<'_> {
    /// The way to the model of the agent.
    pub(super) fn way<'a>(
        &'a self,
        profile: Option<&'a Given<Agent>>,
        isolation: Isolation,
    ) -> Result<Way<'a>, Failure> {
        let said = self.said_net();
        let asked = self.layers.pick(|wishes| wishes.model_url.as_ref());
        let local = match (profile, said.map(|net| net.value)) {
            (_, Some(Net::Host)) | (None, _) => None,
            (Some(_), Some(Net::None)) if isolation.confined() => {
                return Ok(Way::Shut);
            }
            (Some(_), _) if !isolation.confined() => None,
            (Some(profile), _) => self.local(profile, asked)?,
        };
        match (local, asked) {
            (Some(local), _) => Ok(Way::Local(Box::new(local))),
            (None, None) => Ok(Way::Direct),
            (None, Some(url)) => Err(Failure::usage(format!(
                "{}: no agent here can be told another address of its model",
                url.origin
            ))
            .advise("it needs a room with a proxied network and an agent whose profile has [[model]]; `airlock agents show NAME` prints one")),
        }
    }

    fn local<'a>(
        &'a self,
        profile: &'a Given<Agent>,
        asked: Option<&Given<String>>,
    ) -> Result<Option<Local<'a>>, Failure> {
        let caller = &self.host.caller;
        let models = &profile.value.models;
        let own = |endpoint: &&Endpoint| self.layers.user.credentials.contains_key(&endpoint.name);
        let there = |endpoint: &&Endpoint| own(endpoint) || endpoint.found(caller).is_some();
        let Some(endpoint) = models.iter().find(there) else {
            return match (models.first(), asked) {
                (Some(first), Some(url)) => Err(no_key(first, url)),
                (None | Some(_), _) => Ok(None),
            };
        };
        let key = endpoint.found(caller).or(endpoint.keys.first());
        let Some(key) = key else { return Ok(None) };
        let service = match asked {
            Some(url) => Some(without_version(&url.value).to_owned()),
            None => endpoint.service(caller),
        };
        let Some(service) = service else {
            return Ok(None);
        };
        let users = self.layers.user.credentials.get(&endpoint.name);
        let credential = match (users, asked) {
            (Some(users), None) => users.value.clone(),
            (users, _) => Credential {
                name: endpoint.name.clone(),
                upstream: upstream(&service)?,
                header: key.header.clone(),
                prefix: key.prefix.clone(),
                source: users.map_or_else(
                    || KeySource::Env(key.variable.clone()),
                    |users| users.value.source.clone(),
                ),
                methods: endpoint.methods.clone(),
                paths: endpoint.paths.clone(),
            },
        };
        credential.check().or_fail(Exit::Usage)?;
        Ok(Some(Local {
            endpoint,
            credential,
            variable: key.variable.clone(),
            origin: profile.origin.clone(),
        }))
    }

    /// What the room reaches: as somebody says, else as the agent needs it. The list always has the
    /// local address of the model, which is what it takes to run the agent that was asked for.
    pub(super) fn reach(
        &self,
        way: &Way<'_>,
        profile: Option<&Given<Agent>>,
        isolation: Isolation,
    ) -> Result<Given<Net>, Failure> {
        let said = self.said_net();
        let model = match way {
            Way::Local(local) => {
                let rule = local.rule();
                Some((
                    Policy::of([rule.as_str()]).or_fail(Exit::Usage)?,
                    &local.origin,
                ))
            }
            Way::Direct | Way::Shut => None,
        };
        match (said, model) {
            (Some(said), Some((model, _))) => Ok(said.map(|net| match net {
                Net::Allow(policy) => Net::Allow(policy.and(&model)),
                Net::None | Net::Host => net,
            })),
            (Some(said), None) => Ok(said),
            (None, Some((model, origin))) => Ok(Given::new(Net::Allow(model), origin.clone())),
            (None, None) => {
                let domains = profile
                    .into_iter()
                    .flat_map(|profile| &profile.value.domains);
                let domains: Vec<&str> = domains.map(|domain| domain.value.as_str()).collect();
                match profile.filter(|_| isolation.confined() && !domains.is_empty()) {
                    Some(profile) => {
                        let policy = Policy::of(domains).or_fail(Exit::Usage)?;
                        Ok(Given::new(Net::Allow(policy), profile.origin.clone()))
                    }
                    None => Ok(Given::default(Net::None)),
                }
            }
        }
    }

    /// All credentials that a list may name: the user's, and the one of the agent's model.
    pub(super) fn known_credentials(&self, way: &Way<'_>) -> BTreeMap<String, Given<Credential>> {
        let mut known = self.layers.user.credentials.clone();
        if let Way::Local(local) = way {
            let given = Given::new(local.credential.clone(), local.origin.clone());
            known.insert(local.credential.name.clone(), given);
        }
        known
    }
}

/// What the profile puts into the environment, weakest first.
pub(super) fn of_profile(way: &Way<'_>, profile: &Given<Agent>) -> Vec<Given<EnvEntry>> {
    let mut entries = Vec::new();
    match way {
        Way::Local(local) => {
            let base = local.credential.base_url();
            let stand_in = EnvEntry::Set(local.variable.clone(), STAND_IN.to_owned());
            entries.push(Given::new(stand_in, local.origin.clone()));
            entries.extend(told(&local.endpoint.env, &base, &local.variable));
        }
        Way::Direct => entries.extend(profile.value.handed_over(&profile.origin)),
        Way::Shut => {}
    }
    // Who reaches its model by a local address needs no other credential of the caller's.
    let local = matches!(way, Way::Local(_));
    let fits = |entry: &&Given<EnvEntry>| match &entry.value {
        EnvEntry::Pass(name) => !local || !looks_secret(name),
        EnvEntry::Set(..) => true,
    };
    entries.extend(profile.value.env.iter().filter(fits).cloned());
    entries
}

/// An upstream; loopback goes by its name.
fn upstream(url: &str) -> Result<Upstream, Failure> {
    let named = ["http://127.0.0.1", "http://[::1]"]
        .iter()
        .find_map(|loopback| url.strip_prefix(loopback))
        .map_or_else(|| url.to_owned(), |rest| format!("http://localhost{rest}"));
    Upstream::parse(&named).or_fail(Exit::Usage)
}

fn no_key(endpoint: &Endpoint, url: &Given<String>) -> Failure {
    let names: Vec<&str> = endpoint
        .keys
        .iter()
        .map(|key| key.variable.as_str())
        .collect();
    Failure::usage(format!("{}: there is no credential for it", url.origin)).advise(format!(
        "set {} in your environment; any value will do where the service asks for none",
        names.join(" or ")
    ))
}
