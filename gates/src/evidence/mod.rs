//! Evidence: the signed record of a delivery and its gates.
