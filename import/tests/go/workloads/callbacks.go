//go:build cgo

package main

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>
#include <unistd.h>

extern void called(void);

static void *work(void *unused) {
	for (int round = 0; round < 5; round++) {
		called();
		usleep(300);
	}
	return unused;
}

static void with_thread(void) {
	pthread_t thread;
	pthread_create(&thread, 0, work, 0);
	pthread_join(thread, 0);
}

static void sleep_in_c(void) { usleep(500); }
*/
import "C"

import "time"

//export called
func called() {
	time.Sleep(100 * time.Microsecond)
}

// callbacks calls C, and is called by threads that Go did not create.
func callbacks(end time.Time) {
	for time.Now().Before(end) {
		C.with_thread()
		C.sleep_in_c()
	}
}
