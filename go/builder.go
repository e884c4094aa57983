package calyx

// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// BuilderOptions say what a Builder makes, and with what.
type BuilderOptions struct {
	Options        // Capacity: default the number of distinct keys
	Memory  uint64 // bytes that the builder may use besides the filter; default 160 MiB
	Folder  string // of temporary files; default $TMPDIR, or /tmp
	Threads uint32 // that Finish uses; default 1
}

// Builder collects keys whose number need not be known, and then makes a filter
// for as many as are distinct: of any kind, also of those with CanStatic, which
// cannot be added to. Goroutines that add to one Builder wait for each other.
type Builder struct {
	lock    sync.Mutex
	builder *C.calyx_builder
}

// NewBuilder makes an empty builder.
func NewBuilder(o BuilderOptions) (*Builder, error) {
	filter, free, err := o.Options.c()
	if err != nil {
		return nil, err
	}
	defer free()
	folder := cstring(o.Folder)
	defer C.free(unsafe.Pointer(folder))
	want := C.calyx_builder_options{filter: filter, memory_bytes: C.uint64_t(o.Memory),
		folder: folder, threads: C.uint32_t(o.Threads)}
	b := new(Builder)
	var why C.calyx_error
	if err := failed(C.calyx_builder_new(&want, &b.builder, &why), &why); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(b, (*Builder).Close)
	return b, nil
}

func (b *Builder) do(call func(builder *C.calyx_builder, why *C.calyx_error) C.calyx_status) error {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.builder == nil {
		return ErrClosed
	}
	var why C.calyx_error
	return failed(call(b.builder, &why), &why)
}

func build[key string | []byte](b *Builder, keys []key) error {
	return inBlocks(keys, func(packed *block, n, _ int) error {
		return b.do(func(builder *C.calyx_builder, why *C.calyx_error) C.calyx_status {
			return C.builder_add_packed(builder, first(packed.bytes), &packed.ends[0],
				C.size_t(n), why)
		})
	})
}

// AddStrings adds keys.
func (b *Builder) AddStrings(keys ...string) error { return build(b, keys) }

// AddByteSlices adds keys.
func (b *Builder) AddByteSlices(keys ...[]byte) error { return build(b, keys) }

// AddNumbers adds keys, which are read in place.
func (b *Builder) AddNumbers(keys ...uint64) error {
	if len(keys) == 0 {
		return nil
	}
	return b.do(func(builder *C.calyx_builder, why *C.calyx_error) C.calyx_status {
		return C.calyx_builder_add_many_u64(builder, (*C.uint64_t)(&keys[0]),
			C.size_t(len(keys)), why)
	})
}

// Finish makes a filter of the keys added so far. The builder can take more, and
// finish again.
func (b *Builder) Finish() (*Filter, error) {
	var filter *C.calyx_filter
	err := b.do(func(builder *C.calyx_builder, why *C.calyx_error) C.calyx_status {
		return C.calyx_builder_finish(builder, &filter, why)
	})
	if err != nil {
		return nil, err
	}
	return own(filter), nil
}

// Save makes a file of the keys added so far, as Filter.Save.
func (b *Builder) Save(path string) error {
	name, err := pathOf(path)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(name))
	return b.do(func(builder *C.calyx_builder, why *C.calyx_error) C.calyx_status {
		return C.calyx_builder_save(builder, name, why)
	})
}

// Close frees the memory and the temporary files.
func (b *Builder) Close() error {
	b.lock.Lock()
	defer b.lock.Unlock()
	C.calyx_builder_free(b.builder)
	b.builder = nil
	runtime.SetFinalizer(b, nil)
	return nil
}
