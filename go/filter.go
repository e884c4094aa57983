// Package calyx answers "is this key in that huge set?" in a few bits a key: Bloom
// filters and their kin, over the C library calyx. What that knows (kinds, plans,
// files) comes from it, and is not repeated here.
//
// A lookup of a key that was added always returns true. A lookup of another key
// returns false, except with a small probability that you choose.
//
// Any number of goroutines may use a Filter at once.
package calyx

// #cgo pkg-config: calyx
// #include "calls.h"
import "C"

import (
	"runtime"
	"sync"
)

// Filter is a set of keys. A key is bytes; a string is its bytes, a number its 8
// bytes in little-endian order.
//
// Adding to a kind with CanShare takes no exclusive lock: goroutines add and look
// up side by side. In other kinds they wait for each other to add.
type Filter struct {
	lock         sync.RWMutex // shared by lookups; Close takes it alone
	filter       *C.calyx_filter
	addingShares bool
}

// New makes a filter for n keys, that lets the share p of other keys pass.
func New(n uint64, p float64) (*Filter, error) {
	return NewWith(Options{Capacity: n, Rate: p})
}

// NewWith makes an empty filter.
func NewWith(o Options) (*Filter, error) {
	want, free, err := o.c()
	if err != nil {
		return nil, err
	}
	defer free()
	kind := o.Kind
	if kind == "" {
		kind = Kinds()[0]
	}
	want.concurrent = C.bool(KindCan(kind)&CanShare != 0)
	var filter *C.calyx_filter
	var why C.calyx_error
	if err := failed(C.calyx_new(&want, &filter, &why), &why); err != nil {
		return nil, err
	}
	return own(filter), nil
}

// own takes over a filter of C, which the garbage collector then frees.
func own(filter *C.calyx_filter) *Filter {
	f := new(Filter)
	f.hold(filter)
	return f
}

func (f *Filter) hold(filter *C.calyx_filter) {
	var info C.calyx_info
	C.calyx_info_of(filter, &info)
	f.filter, f.addingShares = filter, bool(info.concurrent)
	runtime.SetFinalizer(f, nil)
	runtime.SetFinalizer(f, (*Filter).Close)
}

// Each of these waits for the lock. Until it is released, f is in use, and is not
// finalized.

func (f *Filter) lockToRead() error {
	f.lock.RLock()
	if f.filter == nil {
		f.lock.RUnlock()
		return ErrClosed
	}
	return nil
}

func (f *Filter) lockToChange() error {
	f.lock.Lock()
	if f.filter == nil {
		f.lock.Unlock()
		return ErrClosed
	}
	return nil
}

// lockToAdd returns whether the lock is shared, for unlockAdded.
func (f *Filter) lockToAdd() (shared bool, err error) {
	if err := f.lockToRead(); err != nil || f.addingShares {
		return true, err
	}
	f.lock.RUnlock()
	return false, f.lockToChange()
}

func (f *Filter) unlockAdded(shared bool) {
	if shared {
		f.lock.RUnlock()
	} else {
		f.lock.Unlock()
	}
}

// mustRead is lockToRead for calls that return no error.
func (f *Filter) mustRead() {
	if err := f.lockToRead(); err != nil {
		panic(err)
	}
}

// ---- One key ----------------------------------------------------------------

// first returns the address of a key, which may have none.
func first(key []byte) *C.uint8_t {
	if len(key) == 0 {
		return nil
	}
	return (*C.uint8_t)(&key[0])
}

// AddBytes adds a key. It returns true if the key was not in the filter: true is
// certain, false may be a false positive. The filter does not keep the slice.
func (f *Filter) AddBytes(key []byte) (fresh bool, err error) {
	shared, err := f.lockToAdd()
	if err != nil {
		return false, err
	}
	defer f.unlockAdded(shared)
	return answer(C.add_bytes(f.filter, first(key), C.size_t(len(key))))
}

// AddString is AddBytes of the bytes of a string, without a copy.
func (f *Filter) AddString(key string) (fresh bool, err error) {
	return f.AddBytes(bytesOf(key))
}

// AddNumber is AddBytes of the 8 bytes of a number.
func (f *Filter) AddNumber(key uint64) (fresh bool, err error) {
	shared, err := f.lockToAdd()
	if err != nil {
		return false, err
	}
	defer f.unlockAdded(shared)
	return answer(C.add_number(f.filter, C.uint64_t(key)))
}

// ExistsBytes reports whether a key was added. false is certain.
func (f *Filter) ExistsBytes(key []byte) bool {
	f.mustRead()
	defer f.lock.RUnlock()
	return bool(C.has_bytes(f.filter, first(key), C.size_t(len(key))))
}

// ExistsString is ExistsBytes of the bytes of a string, without a copy.
func (f *Filter) ExistsString(key string) bool {
	return f.ExistsBytes(bytesOf(key))
}

// ExistsNumber is ExistsBytes of the 8 bytes of a number.
func (f *Filter) ExistsNumber(key uint64) bool {
	f.mustRead()
	defer f.lock.RUnlock()
	return bool(C.calyx_has_u64(f.filter, C.uint64_t(key)))
}

// RemoveBytes removes a key that was added; a key added n times is removed by n
// calls. Only kinds with CanRemove. Never remove a key that was not added:
// if it is a false positive, others vanish with it.
func (f *Filter) RemoveBytes(key []byte) (found bool, err error) {
	if err := f.lockToChange(); err != nil {
		return false, err
	}
	defer f.lock.Unlock()
	return answer(C.remove_bytes(f.filter, first(key), C.size_t(len(key))))
}

// RemoveString is RemoveBytes of the bytes of a string.
func (f *Filter) RemoveString(key string) (found bool, err error) {
	return f.RemoveBytes(bytesOf(key))
}

// RemoveNumber is RemoveBytes of the 8 bytes of a number.
func (f *Filter) RemoveNumber(key uint64) (found bool, err error) {
	return f.RemoveBytes(numberBytes(key))
}

// CountBytes returns an upper bound of the number of times that a key was added;
// 0 is certain. Kinds with CanCount count to 15, others to 1.
func (f *Filter) CountBytes(key []byte) uint32 {
	f.mustRead()
	defer f.lock.RUnlock()
	return uint32(C.count_bytes(f.filter, first(key), C.size_t(len(key))))
}

// CountString is CountBytes of the bytes of a string, without a copy.
func (f *Filter) CountString(key string) uint32 { return f.CountBytes(bytesOf(key)) }

// CountNumber is CountBytes of the 8 bytes of a number.
func (f *Filter) CountNumber(key uint64) uint32 { return f.CountBytes(numberBytes(key)) }

// ---- The whole filter -------------------------------------------------------

// Number returns the number of keys: those that were fresh when they were added.
// In kinds that count, all additions less all removals.
func (f *Filter) Number() uint64 {
	f.mustRead()
	defer f.lock.RUnlock()
	var info C.calyx_info
	C.calyx_info_of(f.filter, &info)
	return uint64(info.items)
}

// Info returns all that is known of the filter. It reads all bits, for the fill.
func (f *Filter) Info() Info {
	f.mustRead()
	defer f.lock.RUnlock()
	var info C.calyx_info
	C.calyx_describe(f.filter, &info)
	return infoOf(&info)
}

// Reset removes all keys. The filter has its first size again.
func (f *Filter) Reset() error {
	if err := f.lockToChange(); err != nil {
		return err
	}
	defer f.lock.Unlock()
	if status := C.calyx_clear(f.filter); status != C.CALYX_OK {
		return Status(status)
	}
	return nil
}

// Copy returns a separate filter with the same keys. A copy of a mapped file is in
// memory.
func (f *Filter) Copy() (*Filter, error) {
	var filter *C.calyx_filter
	err := f.reading(func(from *C.calyx_filter, why *C.calyx_error) C.calyx_status {
		return C.calyx_copy(from, &filter, why)
	})
	if err != nil {
		return nil, err
	}
	return own(filter), nil
}

// Merges take turns, lest two of them wait for each other's filters.
var merging sync.Mutex

// Merge adds all keys of another filter, of the same kind, hash, seed and size.
func (f *Filter) Merge(other *Filter) error {
	if f == other {
		return nil
	}
	merging.Lock()
	defer merging.Unlock()
	if err := f.lockToChange(); err != nil {
		return err
	}
	defer f.lock.Unlock()
	if err := other.lockToRead(); err != nil {
		return err
	}
	defer other.lock.RUnlock()
	var why C.calyx_error
	return failed(C.calyx_merge(f.filter, other.filter, &why), &why)
}

// Close frees the memory, and makes the changes of a file that was opened for
// writing safe; the error says whether they are. The filter is closed in any case.
// A filter that nobody uses is closed by the garbage collector, too, but late, and
// nobody gets its error.
func (f *Filter) Close() error {
	if f.lockToChange() != nil {
		return nil // closed before
	}
	defer f.lock.Unlock()
	runtime.SetFinalizer(f, nil)
	var why C.calyx_error
	status := C.calyx_close(f.filter, &why)
	f.filter = nil
	return failed(status, &why)
}
