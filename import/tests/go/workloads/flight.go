//go:build go1.25

package main

import (
	"os"
	"runtime/trace"
	"time"
)

// flight writes the newest part of the trace.
func flight(file *os.File, work func()) {
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: 500 * time.Millisecond, MaxBytes: 1 << 20})
	if err := recorder.Start(); err != nil {
		panic(err)
	}
	work()
	if _, err := recorder.WriteTo(file); err != nil {
		panic(err)
	}
	recorder.Stop()
}
