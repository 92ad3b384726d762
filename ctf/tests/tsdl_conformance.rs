//! Verdicts on TSDL: our own cases with the position and text of each error, and the public suites
//! if they are available.

use std::fs;
use std::path::{Path, PathBuf};

use tracebraid_ctf::metadata;
use tracebraid_testkit::skip::skipped;

/// A trace block and three types in seven lines, so that a case's own text begins on line 8.
const PROLOGUE: &str = "/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias integer { size = 32; align = 32; } := u32;
typealias integer { size = 8; signed = true; } := i8;
typealias u32 := int;
trace { major = 1; minor = 8; byte_order = le; };

";

/// The text of a case: with the prologue, unless the case has its own trace block (`!`).
fn text(case: &str) -> String {
    match case.strip_prefix('!') {
        Some(whole) => whole.to_owned(),
        None => format!("{PROLOGUE}{case}"),
    }
}

/// Text, line and column of the error (0: the first line after the prologue), part of the message.
type Failure = (&'static str, u32, u32, &'static str);

const FAILURES: &[Failure] = &[
    // Tokens.
    ("event { name = \"x; };\n", 0, 16, "no closing `\"`"),
    ("/* never closed", 0, 1, "never ends"),
    (
        "env { a = 12ab; };",
        0,
        11,
        "`12ab` is not a valid decimal integer",
    ),
    (
        "env { a = 08; };",
        0,
        11,
        "`08` is not a valid octal integer",
    ),
    ("env { a = 0x; };", 0, 11, "needs digits"),
    ("env { a = 0b2; };", 0, 11, "needs digits"),
    (
        "env { a = 18446744073709551616; };",
        0,
        11,
        "does not fit 64 bits",
    ),
    ("env { a = 1uuu; };", 0, 11, "not a valid decimal"),
    ("env { a = @; };", 0, 11, "unexpected character `@`"),
    ("env { a = \u{e9}; };", 0, 11, "unexpected character"),
    ("env { a = 'ab'; };", 0, 11, "exactly one character"),
    // Syntax of blocks and attributes.
    (
        "env { a = 1; }\nevent { };",
        1,
        1,
        "`;` after the `env` block",
    ),
    ("env { a = 1 };", 0, 13, "expected `;` after attribute `a`"),
    ("env { a 1; };", 0, 9, "expected `=` and a value"),
    ("env { a := 1; };", 0, 9, "expected `=` and a value"),
    ("env { a = ; };", 0, 11, "expected a value"),
    ("env { = 1; };", 0, 7, "the name of an attribute"),
    ("env { a. = 1; };", 0, 10, "a name after `.`"),
    ("stream { id = 1; ", 0, 18, "close the `stream` block"),
    ("nonsense { };", 0, 1, "a block (`trace`"),
    ("event { id := 5; };", 0, 15, "a type after `:=`"),
    ("event { id := u8; };", 0, 15, "use `=`, not `:=`"),
    ("event { fields = u8; };", 0, 18, "use `:=` and a struct"),
    ("event { fields := u8; };", 0, 19, "must be a struct"),
    (
        "event { fields := struct { u8 a; } };",
        0,
        36,
        "expected `;`",
    ),
    // Attributes given twice, of the wrong type, or out of range.
    ("env { a = 1; a = 2; };", 0, 14, "`a` is given twice"),
    (
        "env { a = 1; };\nenv { a = 2; };",
        1,
        7,
        "an entry `a` already",
    ),
    (
        "env { a = 9223372036854775808; };",
        0,
        11,
        "from -9223372036854775808",
    ),
    ("stream { id = 1; id = 2; };", 0, 18, "`id` is given twice"),
    ("stream { id = -1; };", 0, 15, "an unsigned integer"),
    ("stream { x = 1; x = 2; };", 0, 17, "`x` is given twice"),
    ("event { name = 5; };", 0, 16, "a name or a string"),
    (
        "event { stream_id = \"0\"; };",
        0,
        21,
        "an unsigned integer",
    ),
    ("event { loglevel = high; };", 0, 20, "needs an integer"),
    (
        "event { model.emf.uri = uri; };",
        0,
        25,
        "a string between quotes",
    ),
    ("clock { freq = 5; };", 0, 1, "has no `name`"),
    ("clock { name = a; freq = 0; };", 0, 26, "at least 1 Hz"),
    (
        "clock { name = a; freq = -1; };",
        0,
        26,
        "an unsigned integer",
    ),
    ("clock { name = a; offset_s = x; };", 0, 30, "an integer"),
    (
        "clock { name = a; uuid = \"1-2\"; };",
        0,
        26,
        "is not a UUID",
    ),
    (
        "clock { name = a; uuid = 5; };",
        0,
        26,
        "a string between quotes",
    ),
    (
        "clock { name = a; };\nclock { name = a; };",
        1,
        1,
        "a clock `a` already",
    ),
    (
        "clock { typealias u8 := x; };",
        0,
        19,
        "expected `=` and a value",
    ),
    (
        "typealias integer { size = 0; } := x;",
        0,
        28,
        "at least 1 bit",
    ),
    (
        "typealias integer { align = 8; } := x;",
        0,
        11,
        "has no `size`",
    ),
    (
        "typealias integer { size = 8; align = 0; } := x;",
        0,
        39,
        "a power of two",
    ),
    (
        "typealias integer { size = 8; align = 12; } := x;",
        0,
        39,
        "a power of two",
    ),
    (
        "typealias integer { size = 8; base = 7; } := x;",
        0,
        38,
        "2, 8, 10 or 16",
    ),
    (
        "typealias integer { size = 8; base = \"x\"; } := x;",
        0,
        38,
        "2, 8, 10 or 16",
    ),
    (
        "typealias integer { size = 8; encoding = latin; } := x;",
        0,
        42,
        "`UTF8` or `ASCII`",
    ),
    (
        "typealias integer { size = 8; byte_order = middle; } := x;",
        0,
        44,
        "`network`",
    ),
    (
        "typealias integer { size = 8; signed = maybe; } := x;",
        0,
        40,
        "`true`",
    ),
    (
        "typealias integer { size = 8; map = clock.a; } := x;",
        0,
        37,
        "clock.NAME.value",
    ),
    (
        "typealias floating_point { exp_dig = 8; } := x;",
        0,
        11,
        "no `mant_dig`",
    ),
    (
        "typealias floating_point { exp_dig = 8; mant_dig = 53; } := x;",
        0,
        11,
        "not an IEEE 754 format",
    ),
    (
        "typealias string { encoding = 8; } := x;",
        0,
        31,
        "`UTF8` or `ASCII`",
    ),
    // Names of types.
    ("typealias u8 := u32;", 0, 17, "`u32` is declared twice"),
    ("typedef u8 u32;", 0, 12, "`u32` is declared twice"),
    ("typedef u8 long;", 0, 12, "reserved word `long`"),
    (
        "typealias u8 := stream;",
        0,
        17,
        "`stream` is a reserved word",
    ),
    ("typealias u8 := 5;", 0, 17, "a name for the alias"),
    ("typealias u8 = x;", 0, 14, "expected `:=`"),
    ("typealias nothing := x;", 0, 11, "unknown type `nothing`"),
    (
        "typealias unsigned long := x;",
        0,
        11,
        "unknown type `unsigned long`",
    ),
    (
        "struct s { u8 a; };\nstruct s { u8 a; };",
        1,
        8,
        "`struct s` is declared twice",
    ),
    (
        "struct s { struct t x; };",
        0,
        12,
        "unknown type `struct t`",
    ),
    (
        "struct s { struct s x; };",
        0,
        12,
        "unknown type `struct s`",
    ),
    ("struct s { enum e x; };", 0, 12, "unknown type `enum e`"),
    ("struct s;", 0, 9, "the body of the declared type"),
    ("struct s { u8 *p; };", 0, 12, "unknown type `u8 *`"),
    (
        "event { typealias u8 := x; };\nstruct s { x a; };",
        1,
        12,
        "unknown type `x`",
    ),
    // Structs.
    ("struct s { u8 a; u8 a; };", 0, 21, "a field `a` already"),
    ("struct s { u8 event; };", 0, 15, "reserved word `event`"),
    ("struct s { u8; };", 0, 14, "the name of a field"),
    ("struct s { u8 a };", 0, 17, "`;` after the field"),
    ("struct s { u8 a; } align(3);", 0, 26, "a power of two"),
    ("struct s { u8 a; } align(\"8\");", 0, 26, "a power of two"),
    (
        "struct s { u8 a; } align(0x100000000);",
        0,
        26,
        "a power of two",
    ),
    ("struct s { u8 a; } align 8;", 0, 26, "`(` after `align`"),
    (
        "struct s { u8 a : 3; };",
        0,
        17,
        "bit fields are not supported",
    ),
    // Enumerations.
    ("enum e : u8 { };", 0, 15, "at least one"),
    ("enum e : u8 { A = 256 };", 0, 19, "256 does not fit"),
    ("enum e : u8 { A = -1 };", 0, 19, "-1 does not fit"),
    ("enum e : i8 { A = 127, B };", 0, 24, "128 does not fit"),
    ("enum e : u8 { A = 3 ... 2 };", 0, 19, "this range is empty"),
    (
        "enum e : u8 { A = B };",
        0,
        19,
        "the value of a label is an integer",
    ),
    ("enum e : u8 { A = 1.5 };", 0, 20, "`,` or `}`"),
    ("enum e : string { A };", 0, 10, "the integer type"),
    (
        "enum e : struct { u8 a; } { A };",
        0,
        10,
        "the integer type",
    ),
    (
        "enum e : u8 { A };\ntypedef enum e t;\nenum f : t { B };",
        2,
        10,
        "not another enumeration",
    ),
    (
        "!trace { major = 1; minor = 8; byte_order = le; };\nenum e { A };",
        2,
        1,
        "no type `int` is declared",
    ),
    // Arrays and sequences.
    ("struct s { u8 a[-1]; };", 0, 17, "cannot be negative"),
    ("struct s { u8 a[]; };", 0, 17, "the length of an array"),
    (
        "struct s { u8 a[\"x\"]; };",
        0,
        17,
        "the length of an array",
    ),
    ("struct s { u8 a[2; };", 0, 18, "expected `]`"),
    (
        "struct s { u8 a[int]; };",
        0,
        17,
        "`int` is a reserved word",
    ),
    ("struct s { u8 a[len]; };", 0, 17, "no field `len` before"),
    (
        "struct s { string len; u8 a[len]; };",
        0,
        29,
        "not an integer",
    ),
    (
        "struct s { i8 len; u8 a[len]; };",
        0,
        25,
        "this field is signed",
    ),
    (
        "struct s { integer { size = 65; } len; u8 a[len]; };",
        0,
        45,
        "at most 64 bits",
    ),
    (
        "struct s { u8 len[2]; u8 a[len]; };",
        0,
        28,
        "this is an array",
    ),
    (
        "struct s { struct { u8 len; } x[2]; u8 a[x.len]; };",
        0,
        42,
        "leads through one",
    ),
    (
        "event { fields := struct { u8 a[len]; u8 len; }; };",
        0,
        33,
        "comes later",
    ),
    (
        "event { fields := struct { u8 len; u8 a[event.fields.b]; }; };",
        0,
        54,
        "no field `b`",
    ),
    (
        "event { fields := struct { u8 a[event.context.len]; }; };",
        0,
        33,
        "no such scope",
    ),
    (
        "event { context := struct { u8 a[event.fields.x]; }; fields := struct { u8 x; }; };",
        0,
        34,
        "decoded later",
    ),
    (
        "struct s { u8 a[stream.x.y]; };",
        0,
        17,
        "is not the location of a field",
    ),
    (
        "struct s { u8 a[event.fields]; };",
        0,
        17,
        "is missing after `event.fields`",
    ),
    ("struct s { u8 a[env.n]; };", 0, 21, "no entry `n` here"),
    (
        "env { n = \"3\"; };\nstruct s { u8 a[env.n]; };",
        1,
        21,
        "is a string",
    ),
    (
        "env { n = -3; };\nstruct s { u8 a[env.n]; };",
        1,
        21,
        "is -3",
    ),
    (
        "env { n = 3; };\nstruct s { u8 a[env]; };",
        1,
        17,
        "expected `env.KEY`",
    ),
    ("typedef u8 t[x];", 0, 14, "no field `x` before"),
    // Variants.
    (
        "struct s { enum : u8 { a } t; variant <t> { u8 a; u8 a; } v; };",
        0,
        54,
        "an option `a` already",
    ),
    (
        "struct s { enum : u8 { a } t; variant <t> { } v; };",
        0,
        31,
        "at least one option",
    ),
    (
        "struct s { enum : u8 { a } t; variant { u8 a; } v; };",
        0,
        31,
        "has no tag",
    ),
    (
        "struct s { u8 t; variant <t> { u8 a; } v; };",
        0,
        27,
        "a tag is an enumeration",
    ),
    (
        "struct s { enum : u8 { b } t; variant <t> { u8 a; } v; };",
        0,
        40,
        "no label of this enumeration",
    ),
    (
        "struct s { variant <t> { u8 a; } v; enum : u8 { a } t; };",
        0,
        21,
        "no field `t` before",
    ),
    (
        "struct s { variant <> { u8 a; } v; };",
        0,
        21,
        "the tag of a variant",
    ),
    (
        "struct s { variant <env.t> { u8 a; } v; };",
        0,
        21,
        "the environment has none",
    ),
    (
        "variant v { u8 a; };\nstruct s { variant v x; };",
        1,
        12,
        "has no tag",
    ),
    // Combinations of events, streams and clocks.
    (
        "stream { id = 1; };\nstream { id = 1; };",
        1,
        1,
        "a stream of id 1 already",
    ),
    (
        "stream { id = 1; };\nstream { id = 2; };",
        1,
        1,
        "no unsigned integer `stream_id`",
    ),
    (
        "stream { };\nevent { id = 1; stream_id = 4; fields := struct { u8 a; }; };",
        1,
        29,
        "no stream of id 4",
    ),
    (
        "event { id = 1; fields := struct { u8 a; }; };\nevent { id = 1; fields := struct { u8 a; }; };",
        1,
        1,
        "an event of id 1 already",
    ),
    (
        "event { id = 1; fields := struct { u8 a; }; };\nevent { id = 2; fields := struct { u8 a; }; };",
        1,
        1,
        "no unsigned integer `id`",
    ),
    ("event { fields := struct { }; };", 0, 1, "no bits at all"),
    ("event { };", 0, 1, "no bits at all"),
    (
        "stream { event.header := struct { integer { size = 8; map = clock.no.value; } t; }; };",
        0,
        67,
        "a clock `no`",
    ),
    (
        "clock { name = a; };\nclock { name = b; };\nstream { event.header := struct { integer { size = 8; map = \
         clock.a.value; } t; integer { size = 8; map = clock.b.value; } u; }; };",
        2,
        1,
        "two clocks, `a` and `b`",
    ),
    // The trace block and its surroundings.
    ("trace { };", 0, 1, "a `trace` block already"),
    ("!", 1, 1, "the metadata is empty"),
    ("!/* CTF 1.8 */", 1, 1, "no `trace` block"),
    (
        "!/* CTF 1.9 */ trace { major = 1; minor = 8; byte_order = le; };",
        1,
        8,
        "unsupported version",
    ),
    (
        "!/* CTF 18 */ trace { major = 1; minor = 8; byte_order = le; };",
        1,
        8,
        "unsupported version",
    ),
    ("!trace { major = 1; minor = 8; };", 1, 1, "no `byte_order`"),
    (
        "!trace { major = 1; byte_order = le; };",
        1,
        1,
        "no `minor`",
    ),
    (
        "!trace { minor = 8; byte_order = le; };",
        1,
        1,
        "no `major`",
    ),
    (
        "!trace { major = 2; minor = 8; byte_order = le; };",
        1,
        17,
        "must be 1, not 2",
    ),
    (
        "!trace { major = 1; minor = 7; byte_order = le; };",
        1,
        28,
        "must be 8, not 7",
    ),
    (
        "!trace { major = 1; minor = 8; byte_order = native; };",
        1,
        44,
        "`le` or `be` here",
    ),
    (
        "!trace { major = 1; minor = 8; byte_order = \"le\"; };",
        1,
        44,
        "`network`",
    ),
    (
        "!trace { major = 1; minor = 8; byte_order = le; uuid = \"x\"; };",
        1,
        55,
        "is not a UUID",
    ),
];

/// Line on which a case's own text begins, after the prologue.
fn first_line() -> u32 {
    PROLOGUE.lines().count() as u32 + 1
}

#[test]
fn errors_name_their_place_and_reason() {
    let mut wrong = Vec::new();
    for (case, line, column, fragment) in FAILURES {
        let expected_line = if case.starts_with('!') {
            (*line).max(1)
        } else {
            line + first_line()
        };
        match metadata::parse(text(case).as_bytes()) {
            Ok(_) => wrong.push(format!("accepted: {case}")),
            Err(error)
                if error.line == expected_line
                    && error.column == *column
                    && error.message.contains(fragment) => {}
            Err(error) => wrong.push(format!(
                "{case}\n    expected {expected_line}:{column} ...{fragment}...\n    found    {}:{} {}",
                error.line, error.column, error.message
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases:\n{}",
        wrong.len(),
        FAILURES.len(),
        wrong.join("\n")
    );
    assert!(FAILURES.len() >= 60);
}

const ACCEPTED: &[&str] = &[
    "!trace { major = 1; minor = 8; byte_order = be; };",
    "!/* CTF 1.8 and more */ trace { major = 1; minor = 8; byte_order = network; };",
    "!;;trace { major = 1;; minor = 8; byte_order = le; };\0\0\0",
    "!trace { major = 1; minor = 8; byte_order = le; surprise = \"x\"; other := struct { integer { size = 8; } a; }; };",
    "callsite { name = \"x\"; func = \"f\"; file = \"a.c\"; line = 5; ip = 0x40096c; };",
    "typealias integer { size = 64; } := unsigned long;\nstruct s { unsigned long a; const unsigned long b; };",
    "typealias integer { size = 64; } := unsigned long *;\nstruct s { unsigned long *p; };",
    "typealias integer { size = 64; } := struct page *;\nstruct page { u8 a; };\nstruct s { struct page *p; };",
    "typedef u8 bytes[4], pair[2];\nstruct s { bytes b[2]; pair p; };",
    "typealias u8 := list[3];\nstruct s { list x; };",
    "struct a { u8 x; }\nstruct b { struct a y; };\nstruct c { struct b z; };",
    "struct s { u8 a, b, c[2]; };",
    "struct s { u8 (a); u8 (b)[2]; };",
    "struct s { typedef u8 inner; inner a; struct t { inner b; }; struct t c; };",
    "struct s { u8 _stream; u8 str; u8 _str; u8 _; };",
    "struct s { } align(8);",
    "enum e : u8 { struct, \"a b\", event = 9, L = 10 ... 12, M, };",
    "enum e : i8 { A = -128 ... -1, A = 5, B = 0 ... 127 };",
    "enum { A, B = 7u, C };",
    "enum e : integer { size = 64; } { A = 0xFFFFFFFFFFFFFFFFULL };",
    "struct s { u8 len; typedef struct { u8 a[len]; } t; struct { string len; t x; } y; };",
    "struct inner { u8 a[len]; };\nevent { fields := struct { u8 len; struct inner x; }; };",
    "event { fields := struct { u8 n; u8 a[n][n][2]; string b[n]; }; };",
    "variant v { u8 a; u32 b; };\nstruct s { enum : u8 { a, b } t; variant v <t> x; variant v <t> y[2]; };",
    "env { n = 4; s = \"\\x41\\102\\n\\q\"; id = word; neg = -5; };\nstruct s { u8 a[env.n]; };",
    "env { a = \"one \\\n line\"; };",
    "typealias integer { size = 128; } := big;\ntypealias integer { size = 3; align = 1; base = oct; encoding = none; } := three;",
    "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 64; byte_order = native; } := double;",
    "typealias string { encoding = ascii; } := text;",
    "clock { name = c; offset = -5; offset_s = -7; precision = 1; absolute = TRUE; description = \"d\"; what = 1; };",
    "event { name = string; id = 7; stream_id = 3; fields := struct { u8 a; }; };\nstream { id = 3; };",
    "stream { id = 9; };\nevent { name = a; fields := struct { u8 x; }; };",
    "event { name = a; loglevel = -3; model.emf.uri = \"u\"; custom.key = 5; fields := struct { u8 x; }; };",
    "event { name = a; };",
    "stream { event.header := struct { u8 id; }; };\nevent { id = 0; };\nevent { id = 1; };",
    "struct s { u8 a[1152921504606846976]; };",
    "struct s { u8 a[3]; } /* a comment */ ; // another",
    "env { \\u00e9t\\U000000e9 = 1; };",
    "struct s { struct { u8 a; }; variant { u8 a; u32 b; }; enum : u8 { A, B }; u8 x; };",
    "event { fields := struct { enum : u8 { a, b } t; variant <t> { typealias u8 := v; v a; u8 b; }; u8 x; }; };",
    "struct s { enum : u8 { A, B } tag; variant <tag> { u8 a; u8 b; }; variant <none> { u8 a; }; };",
];

#[test]
fn valid_metadata_is_accepted() {
    for case in ACCEPTED {
        if let Err(error) = metadata::parse(text(case).as_bytes()) {
            panic!("{case}\n{error}");
        }
    }
}

fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/traces/public"
    ))
    .join(path);
    if !path.exists() {
        skipped(format_args!(
            "there is no {}: public cases are not at hand",
            path.display()
        ));
        return None;
    }
    Some(path)
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries
}

/// Cases that fail there although the specification (4.2.2) or the other suite
/// (`unknown-attribute-warnings`, `variant-missing-enum-mappings`) accepts them: unknown
/// attributes, and options without a label.
const DISPUTED: [&str; 4] = [
    "fail-dst-unknown-attr",
    "fail-ert-unknown-attr",
    "fail-trace-type-unknown-attr",
    "fail-var-type-inval-sel-loc-11",
];

#[test]
fn public_metadata_cases_get_their_verdict() {
    let Some(root) = shared("metadata-cases/ctf-1") else {
        return;
    };
    let mut wrong = Vec::new();
    for path in entries(&root) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let file = fs::read(&path).unwrap();
        let verdict = metadata::parse(&file);
        if verdict.is_ok() != name.starts_with("pass-") {
            wrong.push(format!("{name}: {verdict:?}"));
        }
        // A failing case is enclosed in lines of dashes. Without these lines, it must fail by
        // itself.
        if let Some(rest) = file.strip_prefix(b"---\n") {
            let end = rest
                .windows(4)
                .rposition(|window| window == b"---\n")
                .unwrap();
            let verdict = metadata::parse(&rest[..end]);
            if verdict.is_ok() != DISPUTED.contains(&name.as_str()) {
                wrong.push(format!("{name}, without dashes: {:?}", verdict.err()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_ctf_testsuite_gets_its_verdict() {
    let Some(root) = shared("ctf-testsuite/tests/1.8/regression") else {
        return;
    };
    let mut wrong = Vec::new();
    let mut cases = 0;
    // The failing cases for streams have valid metadata.
    for (kind, valid) in [
        ("metadata/pass", true),
        ("metadata/fail", false),
        ("stream/pass", true),
        ("stream/fail", true),
    ] {
        for path in entries(&root.join(kind)) {
            let Ok(file) = fs::read(path.join("metadata")) else {
                continue;
            };
            cases += 1;
            let verdict = metadata::parse(&file);
            if verdict.is_ok() != valid {
                wrong.push(format!("{}: {:?}", path.display(), verdict.err()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases > 150, "only {cases} cases were found");
}

#[test]
fn metadata_of_real_traces_is_accepted() {
    for path in [
        "many-threads/metadata",
        "ros2/metadata",
        "hello-lost/metadata",
        "context-switches-ust/metadata",
        "cyg-profile/glxgears-cyg-profile/metadata",
        "cyg-profile/glxgears-cyg-profile-fast/metadata",
        "lttng-tracefile-rotation/kernel/metadata",
        "multi-domains/kernel/metadata",
        "multi-domains/ust/metadata",
        "synctraces/scp_src/metadata",
        "synctraces/scp_dest/metadata",
    ] {
        let Some(path) = shared(path) else { continue };
        let class = metadata::parse(&fs::read(&path).unwrap())
            .unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert!(
            class.streams.iter().any(|stream| !stream.events.is_empty()),
            "{path:?} has no events"
        );
        assert!(
            class
                .streams
                .iter()
                .all(|stream| stream.default_clock.is_some()),
            "{path:?} has no clock"
        );
    }
}
