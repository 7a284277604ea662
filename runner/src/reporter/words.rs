//! Numbers, ids and paths in the form in which people read them. Pure.

use std::path::Path;

/// A length of time given in milliseconds.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// How long ago something was, given in milliseconds, with one unit.
pub fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => "now".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A number of bytes.
pub fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_024 => return counted(bytes, "byte"),
        1_024..1_048_576 => (1_024, "KiB"),
        1_048_576..1_073_741_824 => (1_048_576, "MiB"),
        _ => (1_073_741_824, "GiB"),
    };
    format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
}

/// A number of things, in the singular where it is one.
pub fn counted(number: u64, thing: &str) -> String {
    if number == 1 {
        format!("1 {thing}")
    } else {
        format!("{number} {thing}s")
    }
}

/// An object id, short enough to read aloud.
pub fn short(oid: &str) -> &str {
    oid.get(..10).unwrap_or(oid)
}

/// A moment given in milliseconds since 1970, in the local time of the reader.
pub fn moment(ms: u64) -> String {
    i64::try_from(ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(
            || ms.to_string(),
            |at| {
                at.to_zoned_datetime(jiff::tz::TimeZone::system())
                    .strftime("%Y-%m-%d %H:%M:%S")
                    .to_string()
            },
        )
}

/// A path as a word of a shell command.
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_at_a_glance() {
        let shown: Vec<String> = [7, 1_250, 61_000, 3_700_000].map(duration).into();
        assert_eq!(shown, ["7 ms", "1.2 s", "1 min 01 s", "1 h 01 min"]);
        let shown: Vec<String> = [900, 5_000, 300_000, 7_200_000, 200_000_000]
            .map(age)
            .into();
        assert_eq!(shown, ["now", "5 s", "5 min", "2 h", "2 d"]);
    }

    #[test]
    fn sizes_and_counts() {
        let shown: Vec<String> = [0, 1, 1_225, 5_500_000, 3_221_225_472].map(size).into();
        assert_eq!(
            shown,
            ["0 bytes", "1 byte", "1.1 KiB", "5.2 MiB", "3.0 GiB"]
        );
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(shell_word(Path::new("/tmp/a-b")), "/tmp/a-b");
        assert_eq!(shell_word(Path::new("it's here")), r"'it'\''s here'");
    }
}
