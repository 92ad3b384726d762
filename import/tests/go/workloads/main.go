// Command workloads records execution traces of programs with known behaviour.
//
//	workloads WORKLOAD FILE [MILLISECONDS]
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var sink []byte

func spin(of time.Duration) {
	for begin := time.Now(); time.Since(begin) < of; {
	}
}

// Goroutines wait for one mutex.
func mutex(end time.Time) {
	var lock sync.Mutex
	var group sync.WaitGroup
	for range 6 {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Now().Before(end) {
				lock.Lock()
				spin(100 * time.Microsecond)
				lock.Unlock()
				time.Sleep(200 * time.Microsecond)
			}
		}()
	}
	group.Wait()
}

// A chain of goroutines passes values through channels; select and timers.
func channels(end time.Time) {
	first := make(chan int)
	last := first
	for range 5 {
		next := make(chan int, 1)
		go func(from, to chan int) {
			for value := range from {
				to <- value + 1
			}
			close(to)
		}(last, next)
		last = next
	}
	ticks := time.NewTicker(time.Millisecond)
	for time.Now().Before(end) {
		select {
		case first <- 1:
			<-last
		case <-ticks.C:
		}
		time.Sleep(300 * time.Microsecond)
	}
	close(first)
	for range last {
	}
}

func serve(end time.Time) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		ctx, task := trace.NewTask(r.Context(), "request")
		defer task.End()
		trace.Log(ctx, "path", r.URL.Path)
		trace.WithRegion(ctx, "compute", func() { spin(200 * time.Microsecond) })
		fmt.Fprintln(w, "done")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(handler)}
	go server.Serve(listener)
	var group sync.WaitGroup
	for range 3 {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Now().Before(end) {
				answer, err := http.Get("http://" + listener.Addr().String() + "/x")
				if err != nil {
					panic(err)
				}
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		}()
	}
	group.Wait()
	server.Close()
}

// Short and blocking system calls.
func calls(end time.Time) {
	var group sync.WaitGroup
	// Unlike files of the package os, these descriptors do not belong to the network poller: a read
	// blocks its thread.
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		panic(err)
	}
	for number := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Now().Before(end) {
				os.ReadFile("/proc/self/status")
				if number == 0 {
					syscall.Write(pipe[1], []byte{1})
					time.Sleep(2 * time.Millisecond)
				}
			}
		}()
	}
	go func() {
		byte := make([]byte, 1)
		for {
			if count, _ := syscall.Read(pipe[0], byte); count == 0 {
				syscall.Close(pipe[0])
				return
			}
		}
	}()
	group.Wait()
	syscall.Close(pipe[1])
}

// Much garbage, and profiles of the CPU in the trace.
func garbage(end time.Time) {
	pprof.StartCPUProfile(io.Discard)
	defer pprof.StopCPUProfile()
	var group sync.WaitGroup
	for range 3 {
		group.Add(1)
		go func() {
			defer group.Done()
			var kept [64][]byte
			for number := 0; time.Now().Before(end); number++ {
				kept[number%64] = make([]byte, 32<<10)
				sink = kept[number%64]
				if number%500 == 0 {
					runtime.Gosched()
				}
			}
		}()
	}
	group.Wait()
	runtime.GC()
}

// Goroutines that are preempted, and coroutines.
func compute(end time.Time) {
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Now().Before(end) {
				spin(time.Millisecond)
				coroutines(20)
			}
		}()
	}
	group.Wait()
}

func blocked(context.Context) {
	select {}
}

func tiny(time.Time) {
	done := make(chan bool)
	go func() { done <- true }()
	<-done
}

var workloads = map[string]func(time.Time){
	"mutex": mutex, "channels": channels, "http": serve, "calls": calls,
	"garbage": garbage, "compute": compute, "tiny": tiny, "cgo": callbacks,
	"all": func(end time.Time) {
		var group sync.WaitGroup
		for _, work := range []func(time.Time){mutex, channels, serve, calls, garbage, compute, callbacks} {
			group.Add(1)
			go func() {
				defer group.Done()
				work(end)
			}()
		}
		group.Wait()
	},
}

func main() {
	milliseconds := 50
	if len(os.Args) > 3 {
		milliseconds, _ = strconv.Atoi(os.Args[3])
	}
	file, err := os.Create(os.Args[2])
	if err != nil {
		panic(err)
	}
	// These exist at the begin of the trace.
	go blocked(context.Background())
	go func() {
		for {
			time.Sleep(5 * time.Millisecond)
		}
	}()
	time.Sleep(2 * time.Millisecond)
	of := time.Duration(milliseconds) * time.Millisecond
	work := workloads[os.Args[1]]
	if os.Getenv("FLIGHT") != "" {
		flight(file, func() { work(time.Now().Add(of)) })
		return
	}
	if err := trace.Start(file); err != nil {
		panic(err)
	}
	work(time.Now().Add(of))
	if os.Getenv("KILLED") != "" {
		os.Exit(0)
	}
	trace.Stop()
	file.Close()
}
