// Command summarize prints the summary of each goroutine of an execution trace, as Go's own reader
// calculates it: a line of JSON, the oracle of the import. It uses internal/trace, so it is built as
// if it were part of Go: `go build -overlay`, see tests/go.rs.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"internal/trace"
)

// Goroutine has times in nanoseconds.
type Goroutine struct {
	ID      int64                    `json:"id"`
	Name    string                   `json:"name"`
	Exec    time.Duration            `json:"exec"`
	Sched   time.Duration            `json:"sched"`
	Block   map[string]time.Duration `json:"block"`
	Syscall time.Duration            `json:"syscall"`
	Blocked time.Duration            `json:"syscall_block"`
}

// Stack has the sums of a stack: waits and system calls that have ended, their time until the
// goroutine ran again or the call ended, and CPU samples.
type Stack struct {
	Waits   int           `json:"waits"`
	Wait    time.Duration `json:"wait"`
	Samples int           `json:"samples"`
}

type Result struct {
	Goroutines []Goroutine    `json:"goroutines"`
	Kinds      map[string]int `json:"kinds"`
	Tasks      map[string]int `json:"tasks"`
	// By functions, the outermost first, separated by semicolons.
	Stacks map[string]*Stack `json:"stacks"`
	Last   trace.Time        `json:"last"`
	Error  string            `json:"error,omitempty"`
}

// wait is a wait or a system call that has not ended.
type wait struct {
	since  trace.Time
	stack  string
	isCall bool
}

// stacks sums stacks over a trace.
type stacks struct {
	sums  map[string]*Stack
	waits map[trace.GoID]wait
	// The time of the last synchronization: goroutines were in their first state since then.
	begin trace.Time
}

func functions(stack trace.Stack) string {
	var names []string
	for frame := range stack.Frames() {
		names = append(names, frame.Func)
	}
	slices.Reverse(names)
	return strings.Join(names, ";")
}

func (s *stacks) of(stack string) *Stack {
	sum := s.sums[stack]
	if sum == nil {
		sum = &Stack{}
		s.sums[stack] = sum
	}
	return sum
}

func (s *stacks) event(event *trace.Event) {
	switch event.Kind() {
	case trace.EventSync:
		s.begin = event.Time()
	case trace.EventStackSample:
		if stack := functions(event.Stack()); stack != "" {
			s.of(stack).Samples++
		}
	case trace.EventStateTransition:
		transition := event.StateTransition()
		if transition.Resource.Kind == trace.ResourceGoroutine {
			s.transition(event.Time(), &transition)
		}
	}
}

func (s *stacks) transition(time trace.Time, transition *trace.StateTransition) {
	id := transition.Resource.Goroutine()
	from, to := transition.Goroutine()
	open, waits := s.waits[id]
	hasCalled := waits && open.isCall && from == trace.GoSyscall && to != trace.GoSyscall
	hasWaited := waits && !open.isCall && to == trace.GoRunning
	if hasCalled || hasWaited || to == trace.GoNotExist {
		delete(s.waits, id)
	}
	if hasCalled && to != trace.GoNotExist || hasWaited {
		sum := s.of(open.stack)
		sum.Waits++
		sum.Wait += time.Sub(open.since)
	}
	begins := from == trace.GoRunning || from == trace.GoUndetermined
	isCall := to == trace.GoSyscall
	if !begins || !isCall && to != trace.GoWaiting {
		return
	}
	if from == trace.GoUndetermined {
		time = s.begin
	}
	if stack := functions(transition.Stack); stack != "" {
		s.waits[id] = wait{time, stack, isCall}
	}
}

func summarize(path string) (Result, error) {
	file, err := os.Open(path)
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	reader, err := trace.NewReader(bufio.NewReader(file))
	if err != nil {
		return Result{}, err
	}
	result := Result{Kinds: map[string]int{}, Tasks: map[string]int{}, Stacks: map[string]*Stack{}}
	stacks := stacks{sums: result.Stacks, waits: map[trace.GoID]wait{}}
	summarizer := trace.NewSummarizer()
	for {
		event, err := reader.ReadEvent()
		if err == io.EOF {
			break
		}
		if err != nil {
			result.Error = "damaged"
			break
		}
		summarizer.Event(&event)
		stacks.event(&event)
		result.Kinds[event.Kind().String()]++
		if event.Kind() == trace.EventTaskBegin {
			result.Tasks[event.Task().Type]++
		}
		result.Last = event.Time()
	}
	summary := summarizer.Finalize()
	for _, g := range summary.Goroutines {
		for reason, of := range g.BlockTimeByReason {
			if of == 0 {
				delete(g.BlockTimeByReason, reason)
			}
		}
		result.Goroutines = append(result.Goroutines, Goroutine{
			int64(g.ID), g.Name, g.ExecTime, g.SchedWaitTime, g.BlockTimeByReason,
			g.SyscallTime, g.SyscallBlockTime,
		})
	}
	return result, nil
}

func main() {
	for _, path := range os.Args[1:] {
		result, err := summarize(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, path+":", err)
			os.Exit(1)
		}
		json.NewEncoder(os.Stdout).Encode(result)
	}
}
