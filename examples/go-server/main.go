// Command go-server is a small HTTP server whose requests are slow at times, with the load and the
// competing process that make them so.
//
//	go-server serve ADDRESS              the server, with net/http/pprof
//	go-server load URL CLIENTS DURATION  clients that send requests one after another
//	go-server hog DURATION [BURST EVERY] a process that only computes; with BURST, for that long
//	                                     at each multiple of EVERY, at the same times as others
//
// Each request is a task of runtime/trace. Under a mutex it updates a table, which takes a
// millisecond of CPU time; then it reads a file, passes a line to the goroutine that keeps the log,
// and sleeps. When another process takes the CPU of the thread whose goroutine holds the mutex, all
// other requests wait for a goroutine that is running as far as Go knows.
package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime/trace"
	"sort"
	"strconv"
	"sync"
	"time"
)

// Spent by a request under the mutex, and without it.
const (
	locked   = time.Millisecond
	unlocked = 500 * time.Microsecond
	asleep   = 2 * time.Millisecond
)

// Rounds of the checksum per microsecond, measured at the start: a request computes for a number of
// rounds, so that losing the CPU makes it longer.
var rounds int

var block [4096]byte

func compute(of time.Duration) uint32 {
	var sum uint32
	for range int(of.Microseconds()) * rounds / 16 {
		sum = crc32.Update(sum, crc32.IEEETable, block[:])
	}
	return sum
}

func calibrate() {
	rounds = 16
	best := time.Hour
	for range 20 {
		begin := time.Now()
		compute(time.Millisecond)
		best = min(best, time.Since(begin))
	}
	rounds = int(16 * time.Millisecond / max(best, 1))
}

type server struct {
	lock  sync.Mutex
	table map[string]uint32
	lines chan string
}

func (s *server) update(ctx context.Context, key string) {
	defer trace.StartRegion(ctx, "update table").End()
	s.lock.Lock()
	defer s.lock.Unlock()
	s.table[key] += compute(locked)
}

func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	ctx, task := trace.NewTask(r.Context(), "request")
	defer task.End()
	key := r.URL.Query().Get("key")
	trace.Log(ctx, "key", key)
	s.update(ctx, key)
	trace.WithRegion(ctx, "render", func() { compute(unlocked) })
	status, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.lines <- fmt.Sprintln(key, len(status))
	time.Sleep(asleep)
	fmt.Fprintln(w, key)
}

func (s *server) keepLog() {
	for line := range s.lines {
		io.WriteString(io.Discard, line)
	}
}

func serve(address string) {
	calibrate()
	s := &server{table: map[string]uint32{}, lines: make(chan string, 16)}
	go s.keepLog()
	http.HandleFunc("/", s.handle)
	log.Fatal(http.ListenAndServe(address, nil))
}

// load prints the durations of all requests.
func load(url string, clients int, of time.Duration) {
	end := time.Now().Add(of)
	took := make([][]time.Duration, clients)
	var group sync.WaitGroup
	for client := range clients {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := 0; time.Now().Before(end); number++ {
				begin := time.Now()
				answer, err := http.Get(fmt.Sprintf("%s/?key=%d-%d", url, client, number))
				if err != nil {
					log.Fatal(err)
				}
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				took[client] = append(took[client], time.Since(begin))
			}
		}()
	}
	group.Wait()
	var all []time.Duration
	for _, of := range took {
		all = append(all, of...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	if len(all) == 0 {
		log.Fatal("no request was answered")
	}
	at := func(share float64) time.Duration { return all[int(share*float64(len(all)-1))] }
	fmt.Printf("%d requests: median %v, 99 %% %v, slowest %v\n", len(all), at(0.5), at(0.99), at(1))
}

// compete computes for a while: all the time, or in bursts.
func compete(of, burst, every time.Duration) {
	for end := time.Now().Add(of); time.Now().Before(end); {
		if into := time.Duration(time.Now().UnixNano()) % every; into >= burst {
			time.Sleep(every - into)
		}
	}
}

func duration(text string) time.Duration {
	of, err := time.ParseDuration(text)
	if err != nil {
		log.Fatal(err)
	}
	return of
}

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "serve":
		serve(os.Args[2])
	case len(os.Args) == 5 && os.Args[1] == "load":
		clients, err := strconv.Atoi(os.Args[3])
		if err != nil {
			log.Fatal(err)
		}
		load(os.Args[2], clients, duration(os.Args[4]))
	case len(os.Args) == 3 && os.Args[1] == "hog":
		compete(duration(os.Args[2]), time.Second, time.Second)
	case len(os.Args) == 5 && os.Args[1] == "hog":
		compete(duration(os.Args[2]), duration(os.Args[3]), duration(os.Args[4]))
	default:
		fmt.Fprintln(os.Stderr,
			"usage: go-server serve ADDRESS | load URL CLIENTS DURATION | hog DURATION [BURST EVERY]")
		os.Exit(2)
	}
}
