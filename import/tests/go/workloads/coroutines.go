//go:build go1.23

package main

import "iter"

// coroutines switches between goroutines without the scheduler.
func coroutines(count int) {
	next, stop := iter.Pull(func(yield func(int) bool) {
		for number := range count {
			if !yield(number) {
				return
			}
		}
	})
	defer stop()
	for range count / 2 {
		next()
	}
}
