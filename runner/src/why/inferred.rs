//! Refusals that nobody records, guessed from what a command printed. A guess is marked as one: a program may print
//! anything.

use std::path::Path;

use sandbox::Allow;

use super::governs::{Governed, Reach, Surroundings, governs};
use crate::config::quantity;
use crate::task::{Net, Spec};

/// Guesses that are listed at most.
const MOST: usize = 50;
/// Longest line that is looked at, in characters.
const LONGEST: usize = 400;

/// One guess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// The job that printed it.
    pub job: String,
    /// The line that it is guessed from.
    pub line: String,
    /// How often it came.
    pub count: u64,
    /// The rule that is likely to have refused.
    pub rule: String,
    /// What would allow it.
    pub allow: Option<Allow>,
}

/// Adds the guesses from one job's output to `known`.
pub fn infer(
    spec: &Spec,
    around: &Surroundings,
    job: &str,
    output: &str,
    known: &mut Vec<Inferred>,
) {
    for line in output.lines() {
        let line = line.trim();
        if line.chars().nth(LONGEST).is_some() {
            continue;
        }
        let same = |guess: &&mut Inferred| guess.job == job && guess.line == line;
        if let Some(guess) = known.iter_mut().find(same) {
            guess.count += 1;
            continue;
        }
        if known.len() >= MOST {
            return;
        }
        if let Some((rule, allow)) = guess(spec, around, line) {
            known.push(Inferred {
                job: job.to_owned(),
                line: line.to_owned(),
                count: 1,
                rule,
                allow,
            });
        }
    }
}

type Guess = (String, Option<Allow>);

fn guess(spec: &Spec, around: &Surroundings, line: &str) -> Option<Guess> {
    let low = line.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| low.contains(word));
    if says(&[
        "could not resolve",
        "name resolution",
        "name or service not known",
        "enotfound",
        "eai_again",
        "network is unreachable",
        "enetunreach",
    ]) {
        return network(spec, line);
    }
    if says(&["read-only file system", "erofs"]) {
        return path(spec, around, line, |reach| {
            reach != Reach::Writable && reach != Reach::Private
        });
    }
    if says(&[
        "permission denied",
        "operation not permitted",
        "eacces",
        "eperm",
    ]) {
        return path(spec, around, line, |reach| {
            matches!(reach, Reach::ReadOnly | Reach::Engine | Reach::Absent)
        });
    }
    if says(&["file too large", "efbig"]) {
        let bytes = spec.bounds.file_size;
        let now = quantity::show_bytes(bytes);
        let twice = quantity::show_bytes(bytes.saturating_mul(2));
        return Some((
            format!("file_size = {now}"),
            Some(config("file_size", &twice)),
        ));
    }
    if says(&["no space left on device", "enospc"]) {
        let rule = "a private folder of the room is full: tmp, home or /dev/shm".to_owned();
        let twice = quantity::show_bytes(spec.bounds.tmp.saturating_mul(2));
        return Some((rule, Some(config("tmp", &twice))));
    }
    let fork = says(&["fork", "thread", "spawn", "clone"]);
    if says(&["resource temporarily unavailable", "eagain"]) && fork {
        let pids = spec.bounds.pids;
        let flag = vec!["--pids".to_owned(), pids.saturating_mul(2).to_string()];
        let config = Some((
            "sandbox".to_owned(),
            format!("pids = {}", pids.saturating_mul(2)),
        ));
        return Some((format!("pids = {pids}"), Some(Allow { flag, config })));
    }
    None
}

fn config(key: &str, value: &str) -> Allow {
    Allow {
        flag: Vec::new(),
        config: Some(("sandbox".to_owned(), format!("{key} = \"{value}\""))),
    }
}

fn network(spec: &Spec, line: &str) -> Option<Guess> {
    if spec.net == Net::Host {
        return None;
    }
    let rule = format!("--net {}", spec.net);
    let host = host_in(line);
    let wanted = match (&spec.net, &host) {
        (Net::Allow(policy), Some(host)) => format!("allow:{policy},{host}"),
        (_, Some(host)) => format!("allow:{host}"),
        (_, None) => return Some((rule, None)),
    };
    let allow = Allow {
        flag: vec!["--net".to_owned(), wanted.clone()],
        config: Some(("sandbox".to_owned(), format!("net = \"{wanted}\""))),
    };
    Some((rule, Some(allow)))
}

/// The last word of a line that looks like a host name.
fn host_in(line: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let mut words = line
        .split(|c: char| !plain(c))
        .map(|word| word.trim_matches(['.', '-']));
    let like = |word: &&str| {
        let labels: Vec<&str> = word.split('.').collect();
        let last = labels.last().copied().unwrap_or_default();
        let file = [
            "py", "js", "rs", "go", "c", "h", "ts", "sh", "json", "toml", "html", "md",
        ];
        labels.len() > 1
            && labels.iter().all(|label| !label.is_empty())
            && last.len() > 1
            && last.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !file.contains(&last)
    };
    words.rfind(like).map(str::to_lowercase)
}

fn path(
    spec: &Spec,
    around: &Surroundings,
    line: &str,
    fits: impl Fn(Reach) -> bool,
) -> Option<Guess> {
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '\'' | '"' | '`' | ',' | ';' | '(' | ')' | '‘' | '’')
    };
    let words = line
        .split(ends)
        .map(|word| word.trim_end_matches([':', '.']));
    let named = words.filter(|word| word.starts_with('/') && word.len() > 1);
    let governed = named
        .map(|word| governs(spec, around, Path::new(word)))
        .find(|governed| fits(governed.reach))?;
    let Governed {
        path, rule, allow, ..
    } = governed;
    Some((format!("{}: {rule}", path.display()), allow))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reporter::report::a_spec;

    fn guesses(output: &str) -> Vec<Inferred> {
        let around = Surroundings {
            worktree: "/w".into(),
            forbidden: Vec::new(),
        };
        let mut known = Vec::new();
        infer(&a_spec(), &around, "agent", output, &mut known);
        known
    }

    fn flag_of(line: &str) -> String {
        let guess = guesses(line).remove(0);
        guess
            .allow
            .map(|allow| allow.flag.join(" "))
            .unwrap_or_default()
    }

    #[test]
    fn common_complaints_lead_to_their_rule() {
        assert_eq!(
            flag_of("curl: (6) Could not resolve host: pypi.org"),
            "--net allow:pypi.org"
        );
        assert_eq!(
            flag_of(
                "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org"
            ),
            "--net allow:registry.npmjs.org"
        );
        assert_eq!(
            flag_of("touch: cannot touch '/opt/x': Read-only file system"),
            "--ro /opt/x"
        );
        assert_eq!(
            flag_of("sh: 1: fork: Resource temporarily unavailable"),
            "--pids 2"
        );
        let usr = guesses("/usr/bin/foo: Permission denied").remove(0);
        assert!(
            usr.rule.contains("read-only") && usr.allow.is_none(),
            "{usr:?}"
        );
        let large = guesses("write error: File too large").remove(0);
        assert!(large.rule.starts_with("file_size"), "{large:?}");
    }

    #[test]
    fn what_is_the_agents_own_business_is_no_guess() {
        assert_eq!(
            guesses("./run.sh: Permission denied\n/w/a.sh: Permission denied\nall is well\n"),
            []
        );
    }

    #[test]
    fn equal_lines_are_counted_and_the_list_ends() {
        let line = "cat: /opt/x: Permission denied\n";
        let known = guesses(&line.repeat(1000));
        assert_eq!((known.len(), known[0].count), (1, 1000));
        let lines = (0..1000).map(|n| format!("cat: /opt/{n}: Permission denied"));
        let many = lines.collect::<Vec<_>>().join("\n");
        assert_eq!(guesses(&many).len(), MOST);
    }
}
