package calyx

// #include "calls.h"
import "C"

import (
	"encoding/binary"
	"reflect"
	"sync"
	"unsafe"
)

// bytesOf returns the bytes of a string, which must not be changed.
func bytesOf(s string) []byte {
	if s == "" {
		return nil
	}
	header := (*reflect.StringHeader)(unsafe.Pointer(&s))
	return unsafe.Slice((*byte)(unsafe.Pointer(header.Data)), len(s))
}

// numberBytes returns the 8 bytes that a number is as a key.
func numberBytes(number uint64) []byte {
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], number)
	return bytes[:]
}

// Keys of many strings are copied to one block, from which C takes them: a rule
// of cgo forbids to pass it their addresses. The block is used again.
type block struct {
	bytes []byte
	ends  [C.PACKED_MOST]C.size_t
}

const blockBytes = 1 << 16 // a block is full with as many bytes

var blocks = sync.Pool{New: func() any {
	return &block{bytes: make([]byte, 0, blockBytes)}
}}

// fill packs the first keys, and returns their number.
func fill[key string | []byte](b *block, keys []key) int {
	b.bytes = b.bytes[:0]
	for i, k := range keys {
		if i == len(b.ends) || i > 0 && len(b.bytes)+len(k) > blockBytes {
			return i
		}
		b.bytes = append(b.bytes, k...)
		b.ends[i] = C.size_t(len(b.bytes))
	}
	return len(keys)
}

// inBlocks calls `do` for one block of keys after the other, with the number of
// keys in it and before it, until it fails.
func inBlocks[key string | []byte](keys []key, do func(b *block, n, before int) error) error {
	b := blocks.Get().(*block)
	defer func() {
		if cap(b.bytes) <= 16*blockBytes { // a huge key's block is not kept
			blocks.Put(b)
		}
	}()
	for before := 0; before < len(keys); {
		n := fill(b, keys[before:])
		if err := do(b, n, before); err != nil {
			return err
		}
		before += n
	}
	return nil
}

func addMany[key string | []byte](f *Filter, keys []key) (int, error) {
	fresh := 0
	err := inBlocks(keys, func(b *block, n, _ int) error {
		shared, err := f.lockToAdd()
		if err != nil {
			return err
		}
		defer f.unlockAdded(shared)
		var is [C.PACKED_MOST]C.bool
		var done C.size_t
		status := C.add_packed(f.filter, first(b.bytes), &b.ends[0], C.size_t(n), &is[0], &done)
		fresh += count(is[:done])
		if status != C.CALYX_OK {
			return Status(status)
		}
		return nil
	})
	return fresh, err
}

func count(all []C.bool) int {
	n := 0
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

func hasMany[key string | []byte](f *Filter, keys []key) []bool {
	found := make([]bool, len(keys))
	_ = inBlocks(keys, func(b *block, n, before int) error {
		f.mustRead()
		defer f.lock.RUnlock()
		C.has_packed(f.filter, first(b.bytes), &b.ends[0], C.size_t(n),
			(*C.bool)(&found[before]))
		return nil
	})
	return found
}

// AddStrings adds many keys, several times faster than one by one. It stops at the
// first that cannot be added; those before it stay. It returns how many were
// fresh.
func (f *Filter) AddStrings(keys []string) (fresh int, err error) { return addMany(f, keys) }

// AddByteSlices is AddStrings for slices of bytes.
func (f *Filter) AddByteSlices(keys [][]byte) (fresh int, err error) { return addMany(f, keys) }

// ExistsStrings looks many keys up, several times faster than one by one.
func (f *Filter) ExistsStrings(keys []string) []bool { return hasMany(f, keys) }

// ExistsByteSlices is ExistsStrings for slices of bytes.
func (f *Filter) ExistsByteSlices(keys [][]byte) []bool { return hasMany(f, keys) }

// Numbers that are added under one lock; others may add and close in between.
const numbersMost = 1 << 16

// AddNumbers is AddStrings for numbers, which are read in place.
func (f *Filter) AddNumbers(keys []uint64) (fresh int, err error) {
	for len(keys) > 0 && err == nil {
		n := len(keys)
		if n > numbersMost {
			n = numbersMost
		}
		var more int
		more, err = f.addNumbers(keys[:n])
		fresh += more
		keys = keys[n:]
	}
	return fresh, err
}

func (f *Filter) addNumbers(keys []uint64) (int, error) {
	shared, err := f.lockToAdd()
	if err != nil {
		return 0, err
	}
	defer f.unlockAdded(shared)
	is := make([]C.bool, len(keys))
	var done C.size_t
	status := C.calyx_add_many_u64(f.filter, (*C.uint64_t)(&keys[0]),
		C.size_t(len(keys)), &is[0], &done)
	if status != C.CALYX_OK {
		return count(is[:done]), Status(status)
	}
	return count(is), nil
}

// ExistsNumbers is ExistsStrings for numbers, which are read in place.
func (f *Filter) ExistsNumbers(keys []uint64) []bool {
	f.mustRead()
	defer f.lock.RUnlock()
	found := make([]bool, len(keys))
	if len(keys) > 0 {
		C.calyx_has_many_u64(f.filter, (*C.uint64_t)(&keys[0]),
			C.size_t(len(keys)), (*C.bool)(&found[0]))
	}
	return found
}
