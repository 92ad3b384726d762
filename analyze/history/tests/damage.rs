//! Damaged histories are refused and can be rebuilt.

use std::fs;

use tracebraid_history::{Asked, History, HistoryError};

use crate::{Scratch, build_with};
use tracebraid_models::traces::kernel_trace;

/// Opens and verifies a history.
fn read(file: &std::path::Path) -> Result<(), HistoryError> {
    History::open(file)?.verify()
}

#[test]
fn damage_is_found_and_told() {
    let set = kernel_trace("kernel-discarded").unwrap();
    let place = Scratch::new();
    let file = place.file("history");
    let built = build_with(&set, &file, 1, 0);
    let good = fs::read(&file).unwrap();
    assert_eq!(good.len() as u64, built.bytes);
    read(&file).unwrap();
    for at in (0..good.len())
        .step_by(101)
        .chain([0, 9, 17, 25, 33, 37, 64, 100, good.len() - 1])
    {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        fs::write(&file, &bad).unwrap();
        let is_unused = (12..16).contains(&at) || (40..64).contains(&at) || is_padding(&good, at);
        match read(&file) {
            Ok(()) => assert!(is_unused, "a change at {at} was not noticed"),
            Err(error) => assert!(error.to_string().contains("history"), "{error}"),
        }
    }
    for length in [0, 10, 63, 64, 65, good.len() / 2, good.len() - 1] {
        fs::write(&file, &good[..length]).unwrap();
        let error = read(&file).unwrap_err().to_string();
        assert!(
            error.contains("rebuild it") || error.contains("is not a history"),
            "{error}"
        );
    }
    fs::write(&file, &good).unwrap();
    build_with(&set, &file, 1, 0);
    assert_eq!(fs::read(&file).unwrap(), good);
}

/// The last four bytes of a block's head have no meaning.
fn is_padding(file: &[u8], at: usize) -> bool {
    (0..4).any(|back| at >= 44 + back && file[at - 44 - back..].starts_with(b"TBhb"))
}

#[test]
fn a_build_that_fails_leaves_nothing() {
    let set = kernel_trace("kernel-discarded").unwrap();
    let place = Scratch::new();
    let control = tracebraid_engine::Control::default();
    control.cancel();
    let file = place.file("history");
    let options = tracebraid_engine::Options::default();
    let error = tracebraid_history::build(&set, &[], Asked::default(), &file, options, &control)
        .unwrap_err();
    assert!(error.to_string().contains("cancelled"));
    let nowhere = place.file("no/such/directory");
    let error = tracebraid_history::build(
        &set,
        &[],
        Asked::default(),
        &nowhere,
        options,
        &tracebraid_engine::Control::default(),
    );
    assert!(error.unwrap_err().to_string().contains("no/such"));
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 0);
}
