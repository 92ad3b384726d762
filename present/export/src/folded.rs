//! Folded stacks, as flame graphs are drawn from: frames with semicolons between them, a space, a
//! number.

/// A line for each stack, outermost frame first.
pub fn folded<'s>(stacks: impl IntoIterator<Item = (&'s [String], u64)>) -> String {
    let mut text = String::new();
    for (stack, number) in stacks {
        for (place, frame) in stack.iter().enumerate() {
            if place > 0 {
                text.push(';');
            }
            text.extend(frame.chars().map(plain));
        }
        text.push_str(&format!(" {number}\n"));
    }
    text
}

/// What ends a frame or a line cannot be part of one.
fn plain(letter: char) -> char {
    match letter {
        ';' => ':',
        letter if letter.is_control() => ' ',
        letter => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_to_themselves() {
        let stack = ["a;b".to_owned(), "c\nd".to_owned()];
        assert_eq!(folded([(&stack[..], 7)]), "a:b;c d 7\n");
    }
}
