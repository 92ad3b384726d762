//! Events in the syntax of the command line: `KIND:...`.

use std::path::PathBuf;
use std::str::FromStr;

/// An event, or several by a pattern with `*` and `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSpec {
    /// `tracepoint:CATEGORY:NAME`; both may be patterns.
    Tracepoint {
        /// Name of the directory below `events` of tracefs.
        category: String,
        /// The kernel's name.
        name: String,
    },
    /// `usdt:PATH:NAME` or `usdt:PATH:PROVIDER:NAME`; the last two may be patterns.
    Usdt {
        /// Program or library.
        path: PathBuf,
        /// `None` for all providers.
        provider: Option<String>,
        /// Name within the provider.
        name: String,
    },
    /// `uprobe:PATH:FUNCTION[+OFFSET]` or `uretprobe:PATH:FUNCTION`.
    Function {
        /// Program or library; the kernel if `None`.
        path: Option<PathBuf>,
        /// Symbol.
        function: String,
        /// Offset in bytes from its beginning.
        offset: u64,
        /// True for returns, false for the beginning or the offset.
        at_return: bool,
    },
    /// `go:PATH`: goroutines that start to wait, or are made ready.
    Go {
        /// Program.
        path: PathBuf,
    },
}

/// All forms, for messages.
const FORMS: &str = "tracepoint:CATEGORY:NAME, usdt:PATH:[PROVIDER:]NAME, uprobe:PATH:FUNCTION[+OFFSET], \
     uretprobe:PATH:FUNCTION, kprobe:FUNCTION, kretprobe:FUNCTION, go:PATH";

impl FromStr for EventSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<EventSpec, String> {
        let wrong = || format!("invalid event `{text}`: expected {FORMS}");
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let at_return = kind.contains("ret");
        // Names of functions may contain colons, paths do not.
        let pair = || {
            let pair = rest.split_once(':');
            pair.filter(|(first, second)| !first.is_empty() && !second.is_empty())
                .ok_or_else(wrong)
        };
        Ok(match kind {
            "tracepoint" => {
                let (category, name) = pair()?;
                EventSpec::Tracepoint {
                    category: category.to_owned(),
                    name: name.to_owned(),
                }
            }
            "usdt" => {
                let (path, name) = pair()?;
                let (provider, name) = match name.split_once(':') {
                    Some((provider, name)) => (Some(provider.to_owned()), name),
                    None => (None, name),
                };
                EventSpec::Usdt {
                    path: path.into(),
                    provider,
                    name: name.to_owned(),
                }
            }
            "uprobe" | "uretprobe" => {
                let (path, function) = pair()?;
                EventSpec::function(Some(path.into()), function, at_return)?
            }
            "kprobe" | "kretprobe" if !rest.is_empty() => EventSpec::Function {
                path: None,
                function: rest.to_owned(),
                offset: 0,
                at_return,
            },
            "go" if !rest.is_empty() => EventSpec::Go { path: rest.into() },
            _ => return Err(wrong()),
        })
    }
}

impl EventSpec {
    fn function(path: Option<PathBuf>, text: &str, at_return: bool) -> Result<EventSpec, String> {
        // `operator+` has no number after the plus sign.
        let with_offset = text
            .rsplit_once('+')
            .and_then(|(function, offset)| Some((function, number(offset)?)));
        let (function, offset) = with_offset.unwrap_or((text, 0));
        if at_return && offset > 0 {
            return Err(format!(
                "`{text}`: a return probe has no offset; omit +OFFSET"
            ));
        }
        Ok(EventSpec::Function {
            path,
            function: function.to_owned(),
            offset,
            at_return,
        })
    }
}

/// Decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(path: Option<&str>, function: &str, offset: u64, at_return: bool) -> EventSpec {
        EventSpec::Function {
            path: path.map(PathBuf::from),
            function: function.to_owned(),
            offset,
            at_return,
        }
    }

    #[test]
    fn every_form_is_understood() {
        let parse = |text: &str| text.parse::<EventSpec>().unwrap();
        assert_eq!(
            parse("tracepoint:kmem:mm_page_*"),
            EventSpec::Tracepoint {
                category: "kmem".into(),
                name: "mm_page_*".into()
            }
        );
        assert_eq!(
            parse("usdt:/bin/p:q:r"),
            EventSpec::Usdt {
                path: "/bin/p".into(),
                provider: Some("q".into()),
                name: "r".into()
            }
        );
        assert_eq!(
            parse("uprobe:/a:f+0x10"),
            function(Some("/a"), "f", 16, false)
        );
        assert_eq!(
            parse("uprobe:a:main.(*T).f"),
            function(Some("a"), "main.(*T).f", 0, false)
        );
        assert_eq!(
            parse("uprobe:a:A::operator+"),
            function(Some("a"), "A::operator+", 0, false)
        );
        assert_eq!(parse("uretprobe:/a:f"), function(Some("/a"), "f", 0, true));
        assert_eq!(
            parse("kprobe:vfs_read"),
            function(None, "vfs_read", 0, false)
        );
        assert_eq!(
            parse("kretprobe:vfs_read"),
            function(None, "vfs_read", 0, true)
        );
        assert_eq!(parse("go:./p"), EventSpec::Go { path: "./p".into() });
    }

    #[test]
    fn others_are_refused_with_all_forms() {
        for text in [
            "",
            "sched_switch",
            "tracepoint:sched",
            "usdt:/bin/p",
            "uprobe::f",
            "x:y:z",
            "kprobe:",
        ] {
            let error = text.parse::<EventSpec>().unwrap_err();
            assert!(error.contains("tracepoint:CATEGORY:NAME"), "{error}");
        }
        assert!("uretprobe:/a:f+1".parse::<EventSpec>().is_err());
    }
}
