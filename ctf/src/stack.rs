//! A stack whose first entries need no allocation: most event records have only a few levels of
//! nesting, and there are many records.

/// Number of entries that need no allocation.
const INLINE: usize = 4;

#[derive(Debug)]
pub(crate) struct Stack<T> {
    first: [Option<T>; INLINE],
    count: usize,
    more: Vec<T>,
}

impl<T> Stack<T> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Stack {
            first: [const { None }; INLINE],
            count: 0,
            more: Vec::new(),
        }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, entry: T) {
        match self.first.get_mut(self.count) {
            Some(place) => {
                *place = Some(entry);
                self.count += 1;
            }
            None => self.more.push(entry),
        }
    }

    #[inline(always)]
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        if !self.more.is_empty() {
            return self.more.last_mut();
        }
        self.first.get_mut(self.count.checked_sub(1)?)?.as_mut()
    }

    /// Removes the top entry.
    #[inline(always)]
    pub(crate) fn pop(&mut self) {
        if self.more.pop().is_none() {
            self.count = self.count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Stack;

    #[test]
    fn entries_come_off_in_reverse() {
        let mut stack = Stack::new();
        for round in 0..3 {
            (0..10).for_each(|entry| stack.push(entry * 3 + round));
            for entry in (0..10).rev() {
                assert_eq!(stack.last_mut(), Some(&mut (entry * 3 + round)));
                stack.pop();
            }
            assert_eq!(stack.last_mut(), None);
            stack.pop();
        }
    }
}
