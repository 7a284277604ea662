#!/bin/sh
# Does what it was asked to do, and says no more than that.
set -eu

echo 'writing calculator.py and its test'
cat > calculator.py <<'PYTHON'
"""Arithmetic on two numbers."""


def add(a, b):
    return a + b


def subtract(a, b):
    return a - b


def multiply(a, b):
    return a * b


def divide(a, b):
    if b == 0:
        raise ValueError("cannot divide by zero")
    return a / b
PYTHON

cat > test_calculator.py <<'PYTHON'
import unittest

import calculator


class Arithmetic(unittest.TestCase):
    def test_sums_and_products(self):
        self.assertEqual(calculator.add(2, 3), 5)
        self.assertEqual(calculator.multiply(2, 3), 6)

    def test_division_by_zero_is_refused(self):
        with self.assertRaises(ValueError):
            calculator.divide(1, 0)
PYTHON

size=$(wc -c < calculator.py | tr -d ' ')
echo "calculator.py has $size bytes." > "$AIRLOCK_NOTE"
echo 'done'
