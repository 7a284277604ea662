//! How the gates are set, from all places. A repository sets its own gates, because its file comes
//! from the base commit, which no delivery under judgement can change. What the user's own file
//! sets is a floor: the repository may be stricter than that, never more lenient. A flag or the
//! task file speaks for this one task and beats both. Every setting records who made it.

use gates::{DiagramMode, Gate, Mode, Profile, Setting, Skip};

use super::origin::Given;
use super::wishes::{GateWishes, Wishes};

/// The profile of a task, or of a commit that is judged without one.
pub fn profile(stronger: &[&Wishes], user: &Wishes, repository: &Wishes) -> Profile {
    let stronger: Vec<&GateWishes> = stronger.iter().map(|wishes| &wishes.gates).collect();
    let (user, repository) = (&user.gates, &repository.gates);
    let mut profile = Profile::default();
    for gate in Gate::ALL {
        let said = |wishes: &&GateWishes| wishes.modes.get(&gate).cloned();
        let wish = settle(
            stronger.iter().find_map(said),
            said(&user),
            said(&repository),
            leniency,
        );
        if let Some(wish) = wish {
            profile.gates.insert(
                gate,
                Setting {
                    mode: wish.value,
                    set_by: wish.origin.to_string(),
                },
            );
        }
    }
    let diagram = |wishes: &&GateWishes| wishes.diagram.clone();
    if let Some(wish) = settle(
        stronger.iter().find_map(diagram),
        diagram(&user),
        diagram(&repository),
        figure_leniency,
    ) {
        profile.diagram = wish.value;
    }
    let smaller = |bytes: u64| bytes;
    let largest = settle(
        None,
        user.max_file.clone(),
        repository.max_file.clone(),
        smaller,
    );
    if let Some(bytes) = largest {
        profile.max_file_bytes = bytes.value;
    }
    // The language version is a fact about the project, so the project knows best.
    if let Some(python) = repository.python.as_ref().or(user.python.as_ref()) {
        profile.python = python.value;
    }
    let skips = user.skip.iter().chain(&repository.skip);
    profile.skip = skips
        .map(|skip| Skip {
            glob: skip.value.clone(),
            set_by: skip.origin.to_string(),
        })
        .collect();
    profile
}

/// A task's own wish, else the stricter of user and repository.
fn settle<T: Copy, R: Ord>(
    stronger: Option<Given<T>>,
    user: Option<Given<T>>,
    repository: Option<Given<T>>,
    leniency: impl Fn(T) -> R,
) -> Option<Given<T>> {
    if stronger.is_some() {
        return stronger;
    }
    match (user, repository) {
        (Some(user), Some(repository)) if leniency(repository.value) < leniency(user.value) => {
            Some(repository)
        }
        (Some(user), _) => Some(user),
        (None, repository) => repository,
    }
}

fn leniency(mode: Mode) -> u8 {
    match mode {
        Mode::Fail => 0,
        Mode::Warn => 1,
        Mode::Off => 2,
    }
}

fn figure_leniency(mode: DiagramMode) -> u8 {
    match mode {
        DiagramMode::Images => 0,
        DiagramMode::Lint => 1,
        DiagramMode::Off => 2,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::document::Source;
    use crate::config::file::{read, set};
    use crate::config::origin::Origin;
    use crate::config::words::GateWord;

    fn wishes(source: Source, text: &str) -> Wishes {
        read(source, text.as_bytes(), None).unwrap()
    }

    fn user(text: &str) -> Wishes {
        wishes(Source::User(PathBuf::from("/c")), text)
    }

    fn repository(text: &str) -> Wishes {
        wishes(Source::Repository, text)
    }

    #[test]
    fn a_repository_sets_its_gates_above_the_users_floor() {
        let repository = repository(
            "[gates]\nstub = \"off\"\naudit = \"warn\"\n[gates.diagram]\nmode = \"lint\"\n",
        );
        let alone = profile(&[], &Wishes::default(), &repository);
        assert_eq!(alone.mode(Gate::Stub), Mode::Off);
        assert_eq!(
            alone.gates[&Gate::Stub].set_by,
            "airlock.toml:2 of the base commit"
        );
        assert_eq!(alone.diagram, DiagramMode::Lint);
        let strict = user("[gates]\nstub = \"warn\"\naudit = \"off\"\ndiagram = \"images\"\n");
        let both = profile(&[], &strict, &repository);
        assert_eq!(both.mode(Gate::Stub), Mode::Warn);
        assert_eq!(both.gates[&Gate::Stub].set_by, "/c:2");
        assert_eq!(both.mode(Gate::Audit), Mode::Warn);
        assert_eq!(both.diagram, DiagramMode::Images);
    }

    #[test]
    fn a_flag_beats_both() {
        let mut flags = Wishes::default();
        set(
            &mut flags.gates,
            Gate::Stub,
            Given::new(GateWord::Mode(Mode::Off), Origin::Flag("--gate")),
        );
        let strict = user("[gates]\nstub = \"fail\"\n");
        let profile = profile(&[&flags], &strict, &Wishes::default());
        assert_eq!(profile.gates[&Gate::Stub].set_by, "--gate");
        assert_eq!(profile.mode(Gate::Stub), Mode::Off);
    }

    #[test]
    fn skips_add_up_and_name_their_place() {
        let profile = profile(
            &[],
            &user("[gates]\nskip = [\"a/\"]\n"),
            &repository("[gates]\nskip = [\"b/\"]\n"),
        );
        let skips: Vec<(&str, &str)> = profile
            .skip
            .iter()
            .map(|skip| (skip.glob.as_str(), skip.set_by.as_str()))
            .collect();
        assert_eq!(
            skips,
            [("a/", "/c:2"), ("b/", "airlock.toml:2 of the base commit")]
        );
    }
}
