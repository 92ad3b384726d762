// Command prices serves a table of prices, which a goroutine renews all the time.
//
//	prices ADDRESS
//
// Requests read the table under a lock for readers. The goroutine `renew` computes new prices for two
// milliseconds under the lock for writers, then sleeps for as long. Each request is a task of
// runtime/trace.
package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"log"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime/trace"
	"sync"
	"time"
)

// CPU time of a renewal, and of a request.
const (
	renewal = 2 * time.Millisecond
	answer  = 200 * time.Microsecond
)

// Rounds of the checksum per millisecond, measured at the start: work is a number of rounds, so that
// losing the CPU makes it longer.
var rounds int

var block [4096]byte

func compute(count int) (sum uint32) {
	for range count {
		sum = crc32.Update(sum, crc32.IEEETable, block[:])
	}
	return sum
}

func calibrate() {
	const tried = 1000
	best := time.Hour
	for range 20 {
		begin := time.Now()
		compute(tried)
		best = min(best, time.Since(begin))
	}
	rounds = int(tried * time.Millisecond / max(best, 1))
}

func work(of time.Duration) uint32 {
	return compute(rounds * int(of) / int(time.Millisecond))
}

type shop struct {
	lock  sync.RWMutex
	price uint32
}

func (s *shop) renewPrices() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.price = work(renewal)
}

func (s *shop) renew() {
	for {
		s.renewPrices()
		time.Sleep(renewal)
	}
}

func (s *shop) lookUp(ctx context.Context) uint32 {
	defer trace.StartRegion(ctx, "look up").End()
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.price
}

func (s *shop) handle(w http.ResponseWriter, r *http.Request) {
	ctx, task := trace.NewTask(r.Context(), "request")
	defer task.End()
	price := s.lookUp(ctx)
	fmt.Fprintln(w, price+work(answer))
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: prices ADDRESS")
	}
	calibrate()
	s := &shop{}
	go s.renew()
	http.HandleFunc("/", s.handle)
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
