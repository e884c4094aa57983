package calyx

// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Options say what to make. A zero is the default. Of Capacity, Rate and Bits,
// two determine the third.
type Options struct {
	Kind      string  // one of Kinds(); default the first
	Capacity  uint64  // keys to hold at Rate
	Rate      float64 // share of absent keys that pass; default 0.01
	Bits      uint64  // size; default as needed
	Growth    float64 // 0: fixed size; 1.25 to 16: a full filter gets larger
	FirstRate float64 // of the first part, with Growth
	Probes    uint32  // bits per key; default the best number
	Strict    bool    // refuse new keys at capacity; default: the rate rises
	Hash      string  // one of Hashes(); default the hash of the kind
	Seed      uint64  // of the hash; filters to be merged must share it. Default 0, with Growth random
	Seeded    bool    // Seed was given, also if it is 0: with Growth, too
	Key       []byte  // 16 secret bytes, for hashes that take a key
}

const secretBytes = 16

// cstring returns a C string, or nil for "". Names are short; free it.
func cstring(s string) *C.char {
	if s == "" {
		return nil
	}
	return C.CString(s)
}

// csecret copies a secret key to C; nil is none. Free it.
func csecret(key []byte) (*C.uint8_t, error) {
	if key == nil {
		return nil, nil
	}
	if len(key) != secretBytes {
		return nil, &Error{Status: ErrBadArgument,
			Text: fmt.Sprintf("a secret key has %d bytes, not %d", secretBytes, len(key))}
	}
	return (*C.uint8_t)(C.CBytes(key)), nil
}

// c returns the options for C, and what frees their memory.
func (o Options) c() (C.calyx_options, func(), error) {
	secret, err := csecret(o.Key)
	if err != nil {
		return C.calyx_options{}, nil, err
	}
	want := C.calyx_options{
		kind: cstring(o.Kind), hash: cstring(o.Hash), key: secret,
		capacity: C.uint64_t(o.Capacity), fpr: C.double(o.Rate),
		bits: C.uint64_t(o.Bits), growth: C.double(o.Growth),
		first_fpr: C.double(o.FirstRate), probes: C.uint32_t(o.Probes),
		strict: C.bool(o.Strict), seed: C.uint64_t(o.Seed), seeded: C.bool(o.Seeded),
	}
	return want, func() {
		C.free(unsafe.Pointer(want.kind))
		C.free(unsafe.Pointer(want.hash))
		C.free(unsafe.Pointer(want.key))
	}, nil
}

// Ability is something that a kind of filter can do; a set of them is their sum.
type Ability uint32

const (
	CanAdd       Ability = C.CALYX_CAN_ADD
	CanRemove    Ability = C.CALYX_CAN_REMOVE
	CanCount     Ability = C.CALYX_CAN_COUNT
	CanMerge     Ability = C.CALYX_CAN_MERGE
	CanIntersect Ability = C.CALYX_CAN_INTERSECT
	CanFold      Ability = C.CALYX_CAN_FOLD
	CanGrow      Ability = C.CALYX_CAN_GROW
	CanShare     Ability = C.CALYX_CAN_SHARE  // goroutines add without waiting
	CanStatic    Ability = C.CALYX_CAN_STATIC // made by a Builder only
	CanRange     Ability = C.CALYX_CAN_RANGE
	CanParts     Ability = C.CALYX_CAN_PARTS // files made of parts: calyx build --part
	// CanGrowInPlace: a lookup takes as long however often the filter grew.
	CanGrowInPlace Ability = C.CALYX_CAN_GROW_IN_PLACE
)

// KindCan returns what a kind can do; 0 if there is no such kind.
func KindCan(kind string) Ability {
	name := C.CString(kind)
	defer C.free(unsafe.Pointer(name))
	return Ability(C.calyx_kind_can(name))
}

// Info is what a filter is, or would be.
type Info struct {
	Kind, Kernel, Hash string
	Seed               uint64
	Capacity           uint64  // keys it holds before the rate exceeds Rate
	Items              uint64  // fresh keys added
	Bits, Bytes        uint64  // places for bits; memory
	Parts, Probes      uint32  // 1, and one more each time it grew; bits per key
	Growth             float64 // 0 if fixed
	Rate               float64 // at Capacity keys
	RateNow            float64 // at the present fill
	Fill               float64 // share of the bits that are set
	Distinct           float64 // number of keys, estimated from the fill
	Strict, ReadOnly   bool
	Can                Ability
}

func infoOf(i *C.calyx_info) Info {
	return Info{
		Kind: C.GoString(i.kind), Kernel: C.GoString(i.kernel),
		Hash: C.GoString(i.hash), Seed: uint64(i.seed),
		Capacity: uint64(i.capacity), Items: uint64(i.items),
		Bits: uint64(i.bits), Bytes: uint64(i.bytes),
		Parts: uint32(i.parts), Probes: uint32(i.probes),
		Growth: float64(i.growth), Rate: float64(i.fpr),
		RateNow: float64(i.fpr_now), Fill: float64(i.fill),
		Distinct: float64(i.distinct), Strict: bool(i.strict),
		ReadOnly: bool(i.read_only), Can: Ability(i.can),
	}
}

// Plan returns what NewWith would make of these options, and makes nothing.
func Plan(o Options) (Info, error) {
	want, free, err := o.c()
	if err != nil {
		return Info{}, err
	}
	defer free()
	var info C.calyx_info
	var why C.calyx_error
	if err := failed(C.calyx_plan(&want, &info, &why), &why); err != nil {
		return Info{}, err
	}
	return infoOf(&info), nil
}

// names copies a list of C that ends with NULL.
func names(list **C.char) []string {
	var all []string
	for ; *list != nil; list = (**C.char)(unsafe.Add(unsafe.Pointer(list), unsafe.Sizeof(*list))) {
		all = append(all, C.GoString(*list))
	}
	return all
}

// Kinds returns the kinds of filter, the default first.
func Kinds() []string { return names(C.calyx_kinds()) }

// Hashes returns the hash functions, the default first.
func Hashes() []string { return names(C.calyx_hashes()) }

// Version returns the version of the C library.
func Version() string { return C.GoString(C.calyx_version()) }
