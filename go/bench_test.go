package calyx_test

import (
	"calyx"
	"fmt"
	"syscall"
	"testing"
)

// Nanoseconds of processor time a key: 1 million texts of 33 bytes, or numbers; half of the lookups
// find one. Beside Go's map.

const benchKeys = 1_000_000

var (
	benchIn, benchHalf []string
	benchNumbers       []uint64
)

func prepare(b *testing.B) *calyx.Filter {
	if benchIn == nil {
		for i := 0; i < benchKeys; i++ {
			benchIn = append(benchIn, fmt.Sprintf("https://example.org/in/---%08d", i))
			benchNumbers = append(benchNumbers, uint64(i))
		}
		for i := 0; i < benchKeys/2; i++ {
			benchHalf = append(benchHalf, benchIn[i], fmt.Sprintf("https://example.org/no/---%08d", i))
		}
	}
	f, err := calyx.New(benchKeys, 0.01)
	if err != nil {
		b.Fatal(err)
	}
	f.AddStrings(benchIn)
	return f
}

// processorTime returns the time of this process, in nanoseconds: other processes do not
// count.
func processorTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// perKey reports the time of each key instead of the time of each round.
func perKey(b *testing.B, round func()) {
	start := processorTime()
	for i := 0; i < b.N; i++ {
		round()
	}
	b.ReportMetric(float64(processorTime()-start)/float64(b.N)/benchKeys, "ns/key")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkAddString(b *testing.B) {
	f := prepare(b)
	perKey(b, func() {
		for _, key := range benchIn {
			f.AddString(key)
		}
	})
}

func BenchmarkAddStrings(b *testing.B) {
	f := prepare(b)
	perKey(b, func() { f.AddStrings(benchIn) })
}

func BenchmarkAddNumbers(b *testing.B) {
	f := prepare(b)
	perKey(b, func() { f.AddNumbers(benchNumbers) })
}

func BenchmarkExistsString(b *testing.B) {
	f := prepare(b)
	perKey(b, func() {
		for _, key := range benchHalf {
			f.ExistsString(key)
		}
	})
}

func BenchmarkExistsStrings(b *testing.B) {
	f := prepare(b)
	perKey(b, func() { f.ExistsStrings(benchHalf) })
}

func BenchmarkExistsNumbers(b *testing.B) {
	f := prepare(b)
	perKey(b, func() { f.ExistsNumbers(benchNumbers) })
}

func BenchmarkMapAdd(b *testing.B) {
	prepare(b)
	perKey(b, func() {
		set := make(map[string]struct{})
		for _, key := range benchIn {
			set[key] = struct{}{}
		}
	})
}

func BenchmarkMapExists(b *testing.B) {
	prepare(b)
	set := make(map[string]struct{})
	for _, key := range benchIn {
		set[key] = struct{}{}
	}
	found := 0
	perKey(b, func() {
		for _, key := range benchHalf {
			if _, is := set[key]; is {
				found++
			}
		}
	})
}
