//! What a test has shown, step by step. Judges what the model heard and how the task ended; knows no
//! agent.

use serde_json::{Value, json};

use super::script::{ENVIRONMENT, FILE, LAST, STEPS};
use crate::model::{Dialect, Heard};

/// How one thing went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    /// What was looked at.
    pub(super) name: &'static str,
    /// Whether it is so; none where the agent does not offer it.
    pub(super) good: Option<bool>,
    /// In words.
    pub(super) detail: String,
}

impl Point {
    pub(super) fn new(name: &'static str, good: bool, detail: impl Into<String>) -> Self {
        Self {
            name,
            good: Some(good),
            detail: detail.into(),
        }
    }

    fn not_offered(name: &'static str) -> Self {
        Self {
            name,
            good: None,
            detail: "the agent offers no tool for it".to_owned(),
        }
    }

    /// For scripts.
    pub(super) fn object(&self) -> Value {
        json!({"step": self.name, "ok": self.good, "detail": self.detail})
    }
}

/// Everything that a test looks at. `key`: the credential that the caller had.
pub(super) fn points(heard: &[Heard], task: &Value, dialect: Dialect, key: &str) -> Vec<Point> {
    let mut points = vec![room(task)];
    let talks: Vec<&Heard> = heard
        .iter()
        .filter(|heard| heard.dialect.is_some())
        .collect();
    points.push(model(heard, &talks, dialect));
    points.push(credential(&talks, key));
    points.extend(steps(&talks, task, key));
    points.push(ended(task));
    points.push(answer(task));
    points.push(landed(task));
    points
}

fn room(task: &Value) -> Point {
    let isolation = &task["isolation"];
    let good = isolation["mode"] == "sandbox" && isolation["confined"] == true;
    let net = isolation["net"].as_str().unwrap_or("no network");
    Point::new("default room", good, net)
}

fn model(heard: &[Heard], talks: &[&Heard], dialect: Dialect) -> Point {
    let name = "model reached";
    let spoke: Vec<&str> = talks
        .iter()
        .filter_map(|heard| heard.dialect.map(Dialect::as_str))
        .collect();
    match (talks.first(), heard.last()) {
        (Some(first), _) => {
            let good = spoke.iter().all(|spoken| *spoken == dialect.as_str());
            let times = talks.len();
            Point::new(
                name,
                good,
                format!("{times} requests, {}, {}", spoke[0], first.asked),
            )
        }
        (None, Some(last)) => Point::new(name, false, format!("only {}", last.asked)),
        (None, None) => Point::new(name, false, "it heard nothing"),
    }
}

/// The model got the caller's credential, which the agent did not have.
fn credential(talks: &[&Heard], key: &str) -> Point {
    let with = |heard: &&&Heard| {
        heard
            .credential
            .as_deref()
            .is_some_and(|sent| sent.contains(key))
    };
    let all = talks.len();
    let signed = talks.iter().filter(with).count();
    let detail = format!("{signed} of {all} requests had it added outside the room");
    Point::new("credential outside", all > 0 && signed == all, detail)
}

fn steps(talks: &[&Heard], task: &Value, key: &str) -> Vec<Point> {
    let offers = talks.iter().any(|heard| !heard.tools.is_empty());
    let longest = talks
        .iter()
        .map(|heard| &heard.results)
        .max_by_key(|results| results.len());
    let results = longest.map_or(&[][..], Vec::as_slice);
    let delivered = task["modified_files"].as_array();
    let delivered = delivered.is_some_and(|files| files.iter().any(|file| file == FILE));
    let one = |(index, step): (usize, &super::script::Asked)| match (step.shows, results.get(index))
    {
        (None, _) => Point::new(step.name, delivered, tool_of(talks, index, delivered)),
        (Some(_), None) if !offers => Point::not_offered(step.name),
        (Some(_), None) => Point::new(step.name, false, "the agent did not come to it"),
        (Some(shows), Some(result)) if result.contains(shows) => {
            of_result(index, step.name, result, key)
        }
        (Some(_), Some(result)) => Point::new(step.name, false, last_line(result)),
    };
    STEPS.iter().enumerate().map(one).collect()
}

fn of_result(index: usize, name: &'static str, result: &str, key: &str) -> Point {
    if index != ENVIRONMENT {
        return Point::new(name, true, "");
    }
    let leaked = result.contains(key);
    let detail = if leaked {
        "the credential is in it"
    } else {
        "no process of the room has the credential"
    };
    Point::new(name, !leaked, detail)
}

fn tool_of(talks: &[&Heard], index: usize, delivered: bool) -> String {
    let result = talks.iter().find_map(|heard| heard.results.get(index));
    match (delivered, result) {
        (true, _) => format!("{FILE} was delivered"),
        (false, Some(result)) => last_line(result),
        (false, None) => "nothing was delivered".to_owned(),
    }
}

fn last_line(text: &str) -> String {
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or("it answered nothing")
        .chars()
        .take(200)
        .collect()
}

fn ended(task: &Value) -> Point {
    let agent = &task["agent"];
    let good = agent["outcome"] == "exited" && agent["code"] == 0;
    let detail = match (&agent["outcome"], &agent["code"]) {
        (Value::String(outcome), Value::Number(code)) => format!("{outcome} with code {code}"),
        (Value::String(outcome), _) => outcome.clone(),
        (_, _) => "it never started".to_owned(),
    };
    Point::new("agent ended", good, detail)
}

fn answer(task: &Value) -> Point {
    let agent = &task["agent"];
    let result = agent["result"].as_str().unwrap_or_default();
    let mut unsaid = vec!["cost_usd", "session", "input_tokens"];
    unsaid.retain(|name| agent[*name].is_null());
    let detail = if unsaid.is_empty() {
        "last words, cost, session and tokens".to_owned()
    } else {
        format!("last words; it does not say {}", unsaid.join(", "))
    };
    if result.contains(LAST) {
        Point::new("result read", true, detail)
    } else {
        Point::new("result read", false, last_line(result))
    }
}

fn landed(task: &Value) -> Point {
    let state = task["state"].as_str().unwrap_or("unknown");
    let detail = if state == "landed" {
        "sealed, judged, signed, landed on main".to_owned()
    } else {
        task["summary"].as_str().unwrap_or(state).to_owned()
    };
    Point::new("delivered", state == "landed", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(results: &[&str], credential: &str) -> Heard {
        Heard {
            dialect: Some(Dialect::OpenAiChat),
            asked: "POST /v1/chat/completions".to_owned(),
            credential: Some(credential.to_owned()),
            client: String::new(),
            tools: vec!["bash".to_owned()],
            results: results.iter().map(|result| (*result).to_owned()).collect(),
        }
    }

    fn task() -> Value {
        json!({
            "state": "landed", "modified_files": [FILE], "isolation": {"mode": "sandbox", "confined": true, "net": "allow:x"},
            "agent": {"outcome": "exited", "code": 0, "result": LAST, "cost_usd": 0.1, "session": "s", "input_tokens": 1},
        })
    }

    const RESULTS: [&str; 5] = [
        "## main",
        "",
        "test passed",
        "A=1\nenvironment was read",
        "Add a greeting",
    ];

    fn bad(points: &[Point]) -> Vec<&'static str> {
        points
            .iter()
            .filter(|point| point.good == Some(false))
            .map(|point| point.name)
            .collect()
    }

    #[test]
    fn all_is_well() {
        let heard = [heard(&[], "Bearer k-1"), heard(&RESULTS, "Bearer k-1")];
        assert_eq!(
            bad(&points(&heard, &task(), Dialect::OpenAiChat, "k-1")),
            [""; 0]
        );
    }

    #[test]
    fn what_went_wrong_is_named() {
        let dialect = Dialect::OpenAiChat;
        let leaked = [
            "## main",
            "",
            "test passed",
            "K=k-1\nenvironment was read",
            "Add a greeting",
        ];
        assert_eq!(
            bad(&points(&[heard(&leaked, "k-1")], &task(), dialect, "k-1")),
            ["read the environment"]
        );
        assert_eq!(
            bad(&points(
                &[heard(&RESULTS, "dummy")],
                &task(),
                dialect,
                "k-1"
            )),
            ["credential outside"]
        );
        let short = [heard(&RESULTS[..2], "k-1")];
        let wrong = ["run a test", "read the environment", "git commit"];
        assert_eq!(bad(&points(&short, &task(), dialect, "k-1")), wrong);
        let other = points(&[heard(&RESULTS, "k-1")], &task(), Dialect::Gemini, "k-1");
        assert_eq!(bad(&other), ["model reached"]);
        let silent = points(&[], &json!({}), dialect, "k-1");
        let judged = silent.iter().filter(|point| point.good.is_some());
        assert_eq!(bad(&silent).len(), judged.count());
    }

    #[test]
    fn an_agent_without_tools_is_judged_by_its_files() {
        let mut heard = heard(&[], "k-1");
        heard.tools.clear();
        let points = points(&[heard], &task(), Dialect::OpenAiChat, "k-1");
        assert_eq!(bad(&points), [""; 0]);
        assert_eq!(
            points.iter().filter(|point| point.good.is_none()).count(),
            4
        );
    }
}
