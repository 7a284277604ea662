//! Finds sentences that point at a figure ("Figure 1 shows", 如图所示), for documents that have none.

/// Whether a line of prose says that a figure is there.
pub(super) fn points_at_figure(text: &str) -> bool {
    let lower = text.to_lowercase();
    english(&lower) || chinese(text)
}

fn english(text: &str) -> bool {
    const SHOWS: &[&str] = &[
        "shows",
        "illustrates",
        "depicts",
        "presents",
        "displays",
        "below shows",
        "above shows",
        "below illustrates",
    ];
    const SHOWN: &[&str] = &[
        "shown in",
        "seen in",
        "depicted in",
        "illustrated in",
        "illustrated by",
    ];
    let numbered = |rest: &str| {
        let rest = rest.trim_start();
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        (digits > 0).then(|| rest.get(digits..).unwrap_or("").trim_start().to_owned())
    };
    ["figure", "fig.", "diagram"].iter().any(|noun| {
        text.match_indices(noun).any(|(at, _)| {
            let before = text.get(..at).unwrap_or("").trim_end();
            let Some(rest) = numbered(text.get(at + noun.len()..).unwrap_or("")) else {
                return false;
            };
            let elsewhere = rest.starts_with("of ") || rest.starts_with("in ");
            !elsewhere
                && (SHOWS.iter().any(|verb| rest.starts_with(verb))
                    || SHOWN.iter().any(|words| before.ends_with(words)))
        })
    })
}

fn chinese(text: &str) -> bool {
    let numbered = text.match_indices('图').any(|(at, mark)| {
        let rest = text.get(at + mark.len()..).unwrap_or("").trim_start();
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.'));
        let shown = ["所示", "展示", "显示", "说明", "描述"]
            .iter()
            .any(|word| after.trim_start().starts_with(word));
        shown
            && (after.len() < rest.len()
                || text
                    .get(..at)
                    .is_some_and(|before| before.ends_with(['如', '下', '上'])))
    });
    numbered || text.contains("如图所示") || text.contains("如下图")
}

#[cfg(test)]
mod tests {
    use super::points_at_figure;

    #[test]
    fn sentences() {
        for text in [
            "Figure 1 shows the flow.",
            "The flow is shown in Figure 2.",
            "Fig. 3 illustrates it",
            "如图 1 所示，",
            "下图展示了架构",
            "图2-1展示了",
        ] {
            assert!(points_at_figure(text), "{text}");
        }
        for text in [
            "Figure it out",
            "as shown in Figure 3 of the paper",
            "The figure shows growth",
            "Diagram types",
            "图书馆",
            "试图展示",
        ] {
            assert!(!points_at_figure(text), "{text}");
        }
    }
}
