//! Targets that import files of other tools.

use libfuzzer_sys::Corpus;

use crate::trace::directory;

/// Imports a file and reads its summary.
pub(crate) fn import(data: &[u8]) -> Corpus {
    let file = directory().join("imported");
    let to = directory().join("to");
    std::fs::write(&file, data).expect("written");
    match tracebraid_import::import(&file, &to, &false.into()) {
        Ok(summary) => {
            // Exports of Nsight Systems and traces of Go become traces of processes.
            let has_trace = ["kernel", "ust"].iter().any(|name| to.join(name).exists());
            let is_of_process =
                data.starts_with(b"SQLite format 3\0") || data.starts_with(b"go 1.");
            assert!(has_trace || summary.events == 0 || is_of_process);
            let texts = summary.damage.iter().chain(&summary.lacks);
            assert!(texts.into_iter().all(|text| !text.is_empty()));
            std::fs::remove_dir_all(&to).expect("removed");
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!to.exists() && !directory().join("to.part").exists());
        }
    }
    Corpus::Keep
}

/// The input is the description of a tracepoint, a byte that does not occur in text, and a record
/// of the tracepoint.
pub(crate) fn format(data: &[u8]) -> Corpus {
    let end = data
        .iter()
        .position(|&byte| byte == 0xff)
        .unwrap_or(data.len());
    let (text, record) = data.split_at(end);
    let Some(format) =
        tracebraid_tracepoint::Format::parse("fuzz", &String::from_utf8_lossy(text), 8)
    else {
        return Corpus::Keep;
    };
    let record = record.get(1..).unwrap_or_default();
    let mut payload = Vec::new();
    let encoded = format.encode(record, &mut payload);
    assert!(encoded.is_some() || !format.fits(record, false));
    Corpus::Keep
}
