//! Must-flag and must-pass documents, judged through the gate's one entry.
