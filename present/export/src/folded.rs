//! Folded stacks, the input of flame graphs: frames separated by semicolons, a space, and a number.

/// One line for each stack, the outermost frame first.
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

/// Replaces characters that would end a frame or a line.
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
