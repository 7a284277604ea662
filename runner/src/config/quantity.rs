//! Durations (`90s`, `5m`, `2h`) and sizes (`64M`, `1G`) as people write them. Pure.

/// A quantity that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a duration.
    #[error("{0:?} is not a duration: write 30s, 5m, 2h or 1h30m")]
    Duration(String),
    /// Not a size.
    #[error("{0:?} is not a size: write 500K, 64M or 1G")]
    Size(String),
    /// A number without a unit.
    #[error("{0:?} has no unit: write {0}s for seconds or {0}m for minutes")]
    NoUnit(String),
    /// Nothing can be done in no time, or in no space.
    #[error("{0:?} is zero")]
    Zero(String),
    /// Beyond what can be counted.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

/// Milliseconds of a duration such as `1h30m`; none is no duration.
pub fn duration_ms(text: &str) -> Result<u64, QuantityError> {
    match duration(text)? {
        0 => Err(QuantityError::Zero(text.to_owned())),
        milliseconds => Ok(milliseconds),
    }
}

/// Milliseconds of a duration that may be `0s`.
pub fn duration(text: &str) -> Result<u64, QuantityError> {
    let bad = || QuantityError::Duration(text.to_owned());
    if text.is_empty() {
        return Err(bad());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::NoUnit(text.to_owned()));
    }
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = leading_number(rest).ok_or_else(bad)?;
        let unit_end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(bad()),
        };
        let number: Option<u64> = number.parse().ok();
        total = number
            .and_then(|number| number.checked_mul(milliseconds))
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| QuantityError::TooLarge(text.to_owned()))?;
        rest = after;
    }
    Ok(total)
}

/// Bytes of a size such as `64M`; units are powers of 1024.
pub fn bytes(text: &str) -> Result<u64, QuantityError> {
    let bad = || QuantityError::Size(text.to_owned());
    let (number, unit) = leading_number(text).ok_or_else(bad)?;
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(bad()),
    };
    let size = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| QuantityError::TooLarge(text.to_owned()))?;
    if size == 0 {
        Err(QuantityError::Zero(text.to_owned()))
    } else {
        Ok(size)
    }
}

fn leading_number(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// A size for people and for configuration files, in the largest unit that is exact: `128M`.
pub fn show_bytes(bytes: u64) -> String {
    let units = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    let exact = units
        .into_iter()
        .find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    match exact {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// A duration for people: `1h30m`.
pub fn show_ms(mut milliseconds: u64) -> String {
    let mut text = String::new();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        let count = milliseconds / size;
        milliseconds %= size;
        if count > 0 {
            text.push_str(&count.to_string());
            text.push_str(unit);
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration_ms("30s"), Ok(30_000));
        assert_eq!(duration_ms("1h30m"), Ok(5_400_000));
        assert_eq!(duration_ms("250ms"), Ok(250));
        assert_eq!(duration("0s"), Ok(0));
        assert_eq!(
            duration_ms("30"),
            Err(QuantityError::NoUnit("30".to_owned()))
        );
        assert_eq!(duration_ms("0s"), Err(QuantityError::Zero("0s".to_owned())));
        for bad in ["", "s", "5 m", "-5s", "5x", "1.5h", "5mm"] {
            assert_eq!(
                duration_ms(bad),
                Err(QuantityError::Duration(bad.to_owned())),
                "{bad}"
            );
        }
        for large in ["99999999999999999999s", "999999999999999999h"] {
            assert_eq!(
                duration_ms(large),
                Err(QuantityError::TooLarge(large.to_owned()))
            );
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("1g"), Ok(1 << 30));
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("0"), Err(QuantityError::Zero("0".to_owned())));
        assert_eq!(bytes("M"), Err(QuantityError::Size("M".to_owned())));
        assert_eq!(bytes("1.5G"), Err(QuantityError::Size("1.5G".to_owned())));
        assert_eq!(
            bytes("99999999999T"),
            Err(QuantityError::TooLarge("99999999999T".to_owned()))
        );
    }

    #[test]
    fn sizes_are_shown_as_they_are_written() {
        for text in ["128M", "1G", "1536K", "5000", "2T"] {
            assert_eq!(show_bytes(bytes(text).unwrap()), text);
        }
    }

    #[test]
    fn durations_are_shown_as_they_are_written() {
        assert_eq!(show_ms(5_400_000), "1h30m");
        assert_eq!(show_ms(250), "250ms");
        assert_eq!(show_ms(0), "0s");
    }
}
