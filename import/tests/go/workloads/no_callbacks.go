//go:build !cgo

package main

import "time"

func callbacks(time.Time) {}
