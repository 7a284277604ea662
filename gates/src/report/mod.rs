//! Report formats, all from one list of findings.
