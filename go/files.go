package calyx

// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"encoding/base64"
	"io"
	"strings"
	"unsafe"
)

// Verification is when a file is compared with its checksums.
type Verification int

const (
	VerifyLazy  Verification = C.CALYX_VERIFY_LAZY  // each range of 64 KiB before its first use
	VerifyWhole Verification = C.CALYX_VERIFY_WHOLE // everything when it is opened
	VerifyNone  Verification = C.CALYX_VERIFY_NONE  // only by Verify
)

// OpenOptions say how to open a file.
type OpenOptions struct {
	Write     bool   // let this process add, as the only one
	Key       []byte // the 16 secret bytes, which no file contains
	MostBytes uint64 // refuse larger filters; default no limit
	Verify    Verification
}

// c returns the options for C, and what frees their memory.
func (o OpenOptions) c() (C.calyx_open_options, func(), error) {
	secret, err := csecret(o.Key)
	how := C.calyx_open_options{key: secret, concurrent: C.bool(o.Write),
		most_bytes: C.uint64_t(o.MostBytes), verify: C.calyx_verification(o.Verify)}
	return how, func() { C.free(unsafe.Pointer(secret)) }, err
}

func pathOf(path string) (*C.char, error) {
	if strings.ContainsRune(path, 0) {
		return nil, &Error{Status: ErrBadArgument, Text: "a path has no zero byte"}
	}
	return C.CString(path), nil
}

// Open maps a file for reading, in less than a millisecond at any size. Processes
// share one copy of it. In damaged ranges every lookup returns true: Health.
func Open(path string) (*Filter, error) { return OpenWith(path, OpenOptions{}) }

// OpenWith maps a file. With Write, what is added survives this process at once,
// and the machine from Close on.
func OpenWith(path string, o OpenOptions) (*Filter, error) {
	access := C.calyx_access(C.CALYX_READ)
	if o.Write {
		access = C.CALYX_WRITE
	}
	return fromFile(path, o, func(name *C.char, how *C.calyx_open_options,
		filter **C.calyx_filter, why *C.calyx_error) C.calyx_status {
		return C.calyx_map(name, access, how, filter, why)
	})
}

// Load reads a file into memory, and compares every byte with its checksum.
// o.Write says nothing here: the filter is a copy, which can be added to.
func Load(path string, o OpenOptions) (*Filter, error) {
	o.Write = true // so that goroutines may add
	return fromFile(path, o, func(name *C.char, how *C.calyx_open_options,
		filter **C.calyx_filter, why *C.calyx_error) C.calyx_status {
		return C.calyx_load(name, how, filter, why)
	})
}

func fromFile(path string, o OpenOptions, open func(*C.char, *C.calyx_open_options,
	**C.calyx_filter, *C.calyx_error) C.calyx_status) (*Filter, error) {
	how, free, err := o.c()
	if err != nil {
		return nil, err
	}
	defer free()
	name, err := pathOf(path)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(name))
	filter, err := opened(how, func(how *C.calyx_open_options, filter **C.calyx_filter,
		why *C.calyx_error) C.calyx_status {
		return open(name, how, filter, why)
	})
	if err != nil {
		return nil, err
	}
	return own(filter), nil
}

// opened opens a filter so that goroutines add to it at once, if how.concurrent
// and if its kind can; which kind it is, its bytes say.
func opened(how C.calyx_open_options, open func(*C.calyx_open_options,
	**C.calyx_filter, *C.calyx_error) C.calyx_status) (filter *C.calyx_filter, err error) {
	var why C.calyx_error
	status := open(&how, &filter, &why)
	if status == C.CALYX_CANNOT && bool(how.concurrent) {
		how.concurrent = false
		status = open(&how, &filter, &why)
	}
	return filter, failed(status, &why)
}

type call func(filter *C.calyx_filter, why *C.calyx_error) C.calyx_status

func (f *Filter) reading(do call) error {
	if err := f.lockToRead(); err != nil {
		return err
	}
	defer f.lock.RUnlock()
	var why C.calyx_error
	return failed(do(f.filter, &why), &why)
}

func (f *Filter) alone(do call) error {
	if err := f.lockToChange(); err != nil {
		return err
	}
	defer f.lock.Unlock()
	var why C.calyx_error
	return failed(do(f.filter, &why), &why)
}

// Save writes a file in one step: readers see the old one or the new one, also
// after a crash. Lookups go on meanwhile.
func (f *Filter) Save(path string) error {
	name, err := pathOf(path)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(name))
	return f.reading(func(filter *C.calyx_filter, why *C.calyx_error) C.calyx_status {
		return C.calyx_save(filter, name, why)
	})
}

// Sync makes what was added to a file that is open for writing safe from a crash
// of the machine.
func (f *Filter) Sync() error {
	return f.alone(func(filter *C.calyx_filter, why *C.calyx_error) C.calyx_status {
		return C.calyx_sync(filter, why)
	})
}

// Health returns an error with ErrDamaged if a lookup came upon a damaged range
// of a file. It reads nothing.
func (f *Filter) Health() error {
	return f.reading(func(filter *C.calyx_filter, why *C.calyx_error) C.calyx_status {
		return C.calyx_health(filter, why)
	})
}

// Verify compares every byte of a mapped file with its checksum.
func (f *Filter) Verify() error {
	return f.reading(func(filter *C.calyx_filter, why *C.calyx_error) C.calyx_status {
		return C.calyx_verify(filter, why)
	})
}

// MarshalBinary returns the bytes of a file; encoding/gob uses it.
func (f *Filter) MarshalBinary() ([]byte, error) {
	var bytes []byte
	err := f.alone(func(filter *C.calyx_filter, why *C.calyx_error) C.calyx_status {
		bytes = make([]byte, C.calyx_encoded_size(filter))
		return C.encode_bytes(filter, first(bytes), C.size_t(len(bytes)), why)
	})
	return bytes, err
}

// UnmarshalBinary replaces the filter by the filter of these bytes, if they are sound.
// Filters with a secret key cannot be read so; Load takes the key.
func (f *Filter) UnmarshalBinary(bytes []byte) error {
	filter, err := opened(C.calyx_open_options{concurrent: true}, func(how *C.calyx_open_options,
		filter **C.calyx_filter, why *C.calyx_error) C.calyx_status {
		return C.decode_bytes(first(bytes), C.size_t(len(bytes)), how, filter, why)
	})
	if err != nil {
		return err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	C.calyx_free(f.filter)
	f.hold(filter)
	return nil
}

// MarshalText returns the bytes of a file in base64. By it, encoding/json makes a
// string of a *Filter; a Filter by value, which go vet warns of, has no methods.
func (f *Filter) MarshalText() ([]byte, error) {
	bytes, err := f.MarshalBinary()
	if err != nil {
		return nil, err
	}
	text := make([]byte, base64.StdEncoding.EncodedLen(len(bytes)))
	base64.StdEncoding.Encode(text, bytes)
	return text, nil
}

// UnmarshalText replaces the filter by the one in a text of MarshalText, as
// UnmarshalBinary does.
func (f *Filter) UnmarshalText(text []byte) error {
	bytes := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(bytes, text)
	if err != nil {
		return &Error{Status: ErrDamaged, Text: "the text of a filter is base64: " + err.Error()}
	}
	return f.UnmarshalBinary(bytes[:n])
}

// WriteTo writes the bytes of a file.
func (f *Filter) WriteTo(w io.Writer) (n int64, err error) {
	bytes, err := f.MarshalBinary()
	if err != nil {
		return 0, err
	}
	written, err := w.Write(bytes)
	return int64(written), err
}

// ReadFrom reads to the end, and replaces the filter by the one in these bytes, as
// UnmarshalBinary does.
func (f *Filter) ReadFrom(r io.Reader) (n int64, err error) {
	bytes, err := io.ReadAll(r)
	if err == nil {
		err = f.UnmarshalBinary(bytes)
	}
	return int64(len(bytes)), err
}
