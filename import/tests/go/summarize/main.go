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

type Result struct {
	Goroutines []Goroutine    `json:"goroutines"`
	Kinds      map[string]int `json:"kinds"`
	Tasks      map[string]int `json:"tasks"`
	Last       trace.Time     `json:"last"`
	Error      string         `json:"error,omitempty"`
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
	result := Result{Kinds: map[string]int{}, Tasks: map[string]int{}}
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
