//! JSON with comments and trailing commas, for the names whose own tools read it so.

use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::{Fault, number};

pub(super) fn faults(text: &str) -> Vec<Fault> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    match parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(_) => Vec::new(),
        Err(error) => {
            let help =
                "correct the text; comments and trailing commas are allowed here, nothing more";
            let message = format!("is not JSON with comments: {}", error.kind());
            let fault = Fault::fail("json.syntax", message, help);
            vec![
                fault
                    .on(number(error.line_display()))
                    .column(number(error.column_display())),
            ]
        }
    }
}
