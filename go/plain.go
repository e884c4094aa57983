package calyx

// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"unsafe"
)

// A Pipeline sends commands to a server, or to the nodes of a cluster, in their order
// for each key, and returns their replies: int64, string or []byte, nil, or []any of
// these. The words of a command are strings and ints. With go-redis:
//
//	func(ctx context.Context, commands [][]any) ([]any, error) {
//		pipe := client.Pipeline()
//		for _, words := range commands {
//			pipe.Do(ctx, words...)
//		}
//		done, err := pipe.Exec(ctx)
//		replies := make([]any, len(done))
//		for i, one := range done {
//			replies[i] = one.(*redis.Cmd).Val()
//		}
//		return replies, err
//	}
type Pipeline func(ctx context.Context, commands [][]any) ([]any, error)

// ErrLost says that there is no whole filter in the server: it was never pushed, or the
// server has evicted or lost a part of it. No lookup answers then.
var ErrLost = errors.New("calyx: no whole filter")

const (
	guardBytes = 8 // of the generation, before the bytes of the file
	lineBytes  = C.CALYX_LINE_BYTES
	mostKeys   = 1000 // in a pipeline
	mostTries  = 100
)

// PlainFilter is a filter that `calyx push --plain` stored as strings in a Redis or
// Valkey server, which needs no module. Any number of goroutines may use it. A key is
// what it is to Filter: the bytes of a string.
type PlainFilter struct {
	do   Pipeline
	name string
	key  []byte
	now  atomic.Pointer[generation]
}

// generation is what was pushed at one time. It is replaced, never changed.
type generation struct {
	id           string
	bytes, piece uint64
	layout       *C.calyx_layout
	list         unsafe.Pointer
	info         C.calyx_info
	announced    atomic.Bool
}

func (g *generation) free() {
	C.calyx_layout_free(g.layout)
	C.free(g.list)
}

// command is a command about a piece of a filter.
type command struct {
	piece uint64
	words []any // without the key, which is the second
}

// OpenPlain opens the filter under the key name. secret is its secret key, or nil.
func OpenPlain(ctx context.Context, client Pipeline, name string, secret []byte) (*PlainFilter, error) {
	f := &PlainFilter{do: client, name: name, key: secret}
	return f, f.load(ctx, "")
}

// ---- Opening ----------------------------------------------------------------

// load opens what is there now. A filter that has lost pieces is an error.
func (f *PlainFilter) load(ctx context.Context, lost string) error {
	for i := 0; i < mostTries; i++ {
		g, err := f.find(ctx)
		if err != nil {
			return err
		}
		if g.id == lost {
			return fmt.Errorf("%w: pieces of %s are missing: push it again", ErrLost, f.name)
		}
		whole, err := f.readLayout(ctx, g)
		if err != nil {
			return err
		}
		if whole {
			f.now.Store(g)
			return nil
		}
		lost = g.id
	}
	return fmt.Errorf("calyx: %s is replaced faster than it can be read", f.name)
}

func text(reply any) string {
	switch value := reply.(type) {
	case string:
		return value
	case []byte:
		return string(value)
	}
	return ""
}

// fields returns fields of the hash, "" for a missing field.
func (f *PlainFilter) fields(ctx context.Context, names ...any) ([]string, error) {
	replies, err := f.do(ctx, [][]any{append([]any{"HMGET", f.name}, names...)})
	if err != nil {
		return nil, err
	}
	all, _ := replies[0].([]any)
	if len(all) != len(names) {
		return nil, fmt.Errorf("calyx: the server answers HMGET with %v", replies[0])
	}
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = text(one)
	}
	return texts, nil
}

func (f *PlainFilter) find(ctx context.Context) (*generation, error) {
	now, err := f.fields(ctx, "calyx", "generation", "bytes", "piece")
	switch {
	case err != nil:
		return nil, err
	case now[1] == "":
		return nil, fmt.Errorf("%w: there is none under %s", ErrLost, f.name)
	case now[0] == "":
		return nil, fmt.Errorf("%w: %s is being pushed, or a part of it was lost", ErrLost, f.name)
	case now[0] != "1":
		return nil, ErrTooNew
	}
	g := &generation{id: now[1]}
	g.bytes, _ = strconv.ParseUint(now[2], 10, 48)
	g.piece, _ = strconv.ParseUint(now[3], 10, 32)
	if len(g.id) != guardBytes || g.bytes == 0 || g.piece == 0 || g.piece%lineBytes != 0 {
		return nil, fmt.Errorf("%w: the hash %s does not describe a plain filter", ErrDamaged, f.name)
	}
	return g, nil
}

func (f *PlainFilter) readLayout(ctx context.Context, g *generation) (whole bool, err error) {
	size := g.bytes
	if size > C.CALYX_HEADER_MOST {
		size = C.CALYX_HEADER_MOST
	}
	head, err := f.read(ctx, g, 0, size)
	if head == nil || err != nil {
		return false, err
	}
	var why C.calyx_error
	status := C.layout_new((*C.uint8_t)(&head[0]), C.size_t(len(head)), &g.layout, &why)
	if err := failed(status, &why); err != nil {
		return false, err
	}
	runtime.SetFinalizer(g, (*generation).free)
	secret, err := csecret(f.key)
	if err != nil {
		return false, err
	}
	defer C.free(unsafe.Pointer(secret))
	if secret != nil {
		if err := failed(C.calyx_layout_set_key(g.layout, secret, &why), &why); err != nil {
			return false, err
		}
	}
	C.calyx_layout_describe(g.layout, nil, &g.info)
	return f.readList(ctx, g)
}

// readList checks the size of the file, and reads the allow list, if there is one.
func (f *PlainFilter) readList(ctx context.Context, g *generation) (whole bool, err error) {
	var section C.calyx_section
	C.layout_section(g.layout, C.CALYX_SECTION_END, &section)
	if uint64(section.at) != g.bytes {
		return false, fmt.Errorf("%w: the hash and the header say other sizes", ErrDamaged)
	}
	index := C.layout_section(g.layout, C.CALYX_SECTION_ALLOW, &section)
	if index < 0 {
		return true, nil
	}
	list, err := f.read(ctx, g, uint64(section.at), uint64(section.bytes))
	if list == nil || err != nil {
		return false, err
	}
	var why C.calyx_error
	g.list = C.CBytes(list)
	status := C.calyx_layout_check(g.layout, C.uint32_t(index), 0, g.list, C.size_t(len(list)), &why)
	return true, failed(status, &why)
}

// read returns bytes of the file; nil if they are gone.
func (f *PlainFilter) read(ctx context.Context, g *generation, at, size uint64) ([]byte, error) {
	var commands []command
	for end := at + size; at < end; {
		piece, offset := g.place(at)
		some := g.piece - at%g.piece
		if some > end-at {
			some = end - at
		}
		commands = append(commands, getRange(piece, offset, some))
		at += some
	}
	replies, lost, err := f.run(ctx, g, commands)
	if err != nil || len(lost) > 0 {
		return nil, err
	}
	var bytes []byte
	for _, reply := range replies {
		bytes = append(bytes, text(reply)...)
	}
	if uint64(len(bytes)) != size {
		return nil, nil
	}
	return bytes, nil
}

// ---- Commands ---------------------------------------------------------------

// place returns the piece that has a byte of the file, and where in its string.
func (g *generation) place(at uint64) (piece, offset uint64) {
	return at / g.piece, guardBytes + at%g.piece
}

func getRange(piece, offset, size uint64) command {
	return command{piece, []any{"GETRANGE", int(offset), int(offset + size - 1)}}
}

func (f *PlainFilter) about(g *generation, c command) []any {
	key := f.name + ":" + g.id + ":" + strconv.FormatUint(c.piece, 10)
	return append([]any{c.words[0], key}, c.words[1:]...)
}

// run returns replies to commands about pieces, and the pieces that lack their guard,
// which is read after everything else.
func (f *PlainFilter) run(ctx context.Context, g *generation, commands []command) (replies []any, lost []uint64, err error) {
	if len(commands) == 0 {
		return nil, nil, nil
	}
	var pieces []uint64
	known := make(map[uint64]bool)
	all := make([][]any, 0, len(commands)+1)
	for _, c := range commands {
		all = append(all, f.about(g, c))
		if !known[c.piece] {
			known[c.piece] = true
			pieces = append(pieces, c.piece)
		}
	}
	for _, piece := range pieces {
		all = append(all, f.about(g, getRange(piece, 0, guardBytes)))
	}
	replies, err = f.do(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	if len(replies) != len(all) {
		return nil, nil, fmt.Errorf("calyx: %d commands have %d replies", len(all), len(replies))
	}
	for i, piece := range pieces {
		if text(replies[len(commands)+i]) != g.id {
			lost = append(lost, piece)
		}
	}
	return replies[:len(commands)], lost, nil
}

// ---- Lookups ----------------------------------------------------------------

func (g *generation) lines(part int, hash C.uint64_t) []C.uint64_t {
	at := make([]C.uint64_t, C.CALYX_LINES_MOST)
	return at[:C.calyx_layout_lines(g.layout, C.uint32_t(part), hash, &at[0])]
}

func (g *generation) hashes(keys []string) ([]C.uint64_t, error) {
	hashes := make([]C.uint64_t, len(keys))
	for i, key := range keys {
		bytes := bytesOf(key)
		status := C.layout_hash(g.layout, first(bytes), C.size_t(len(bytes)), &hashes[i])
		if status != C.CALYX_OK {
			return nil, Status(status)
		}
	}
	return hashes, nil
}

// look answers from the first parts; nil if the filter was replaced.
func (f *PlainFilter) look(ctx context.Context, g *generation, hashes []C.uint64_t, parts int) ([]bool, error) {
	found := make([]bool, len(hashes))
	next := make([]int, len(hashes)) // the part that has the next lines of a key
	var active []int
	for i := 0; i < len(hashes) && parts > 0; i++ {
		active = append(active, i)
	}
	for len(active) > 0 {
		var commands []command
		counts := make([]int, len(active))
		for n, i := range active {
			lines := g.lines(next[i], hashes[i])
			if counts[n] = len(lines); counts[n] == 0 {
				return nil, &Error{Status: ErrCannot,
					Text: "a lookup learns what to read only while it reads; pull the filter"}
			}
			for _, at := range lines {
				piece, offset := g.place(uint64(at))
				commands = append(commands, getRange(piece, offset, lineBytes))
			}
		}
		replies, lost, err := f.run(ctx, g, commands)
		if err != nil || len(lost) > 0 {
			return nil, err
		}
		var left []int
		for n, i := range active {
			var lines [C.CALYX_LINES_MOST * lineBytes]byte
			for j, reply := range replies[:counts[n]] {
				if copy(lines[j*lineBytes:], text(reply)) != lineBytes {
					return nil, nil
				}
			}
			replies = replies[counts[n]:]
			answer := C.layout_answer(g.layout, C.uint32_t(next[i]), hashes[i], (*C.uint8_t)(&lines[0]))
			found[i] = found[i] != (answer%2 == 1)
			if next[i] = int(answer / 2); 0 < next[i] && next[i] < parts {
				left = append(left, i)
			}
		}
		active = left
	}
	return found, nil
}

func (f *PlainFilter) has(ctx context.Context, g *generation, keys []string) ([]bool, error) {
	defer runtime.KeepAlive(g)
	all := make([]bool, 0, len(keys))
	for from := 0; from < len(keys); from += mostKeys {
		some := chunk(keys, from)
		hashes, err := g.hashes(some)
		if err != nil {
			return nil, err
		}
		found, err := f.look(ctx, g, hashes, int(g.info.parts))
		if found == nil {
			return nil, err
		}
		for i, key := range some {
			bytes := bytesOf(key)
			all = append(all, found[i] && !bool(C.layout_allows(g.layout, first(bytes), C.size_t(len(bytes)))))
		}
	}
	return all, nil
}

func chunk(keys []string, from int) []string {
	if len(keys)-from > mostKeys {
		return keys[from : from+mostKeys]
	}
	return keys[from:]
}

// HasMany reports which keys were added. All answers are of one generation of the filter.
func (f *PlainFilter) HasMany(ctx context.Context, keys []string) ([]bool, error) {
	for {
		g := f.now.Load()
		found, err := f.has(ctx, g, keys)
		if found != nil || err != nil {
			return found, err
		}
		if err := f.load(ctx, g.id); err != nil {
			return nil, err
		}
	}
}

// Has reports whether a key was added. false is certain, unless there is an error.
func (f *PlainFilter) Has(ctx context.Context, key string) (bool, error) {
	found, err := f.HasMany(ctx, []string{key})
	return err == nil && found[0], err
}

// ---- Additions --------------------------------------------------------------

// setBits is the command that sets the bits of a hash in the newest part. Redis counts
// bits from the high one of each byte on.
func (g *generation) setBits(hash C.uint64_t) (command, error) {
	var line [lineBytes]C.uint8_t
	newest := int(g.info.parts) - 1
	if status := C.layout_add(g.layout, C.uint32_t(newest), hash, &line[0]); status != C.CALYX_OK {
		return command{}, &Error{Status: Status(status), Text: "as plain strings only a filter " +
			"whose keys have all bits in one line can be added to, such as kind line"}
	}
	piece, offset := g.place(uint64(g.lines(newest, hash)[0]))
	words := []any{"BITFIELD"}
	for i := 0; i < 8*lineBytes; i++ {
		if line[i/8]>>(7-i%8)&1 == 1 {
			words = append(words, "SET", "u1", int(8*offset)+i, 1)
		}
	}
	return command{piece, words}, nil
}

// set returns how many of the hashes had a bit missing, and the pieces that were lost.
func (f *PlainFilter) set(ctx context.Context, g *generation, hashes []C.uint64_t) (fresh int, lost []uint64, err error) {
	commands := make([]command, len(hashes))
	for i, hash := range hashes {
		if commands[i], err = g.setBits(hash); err != nil {
			return 0, nil, err
		}
	}
	replies, lost, err := f.run(ctx, g, commands)
	for _, reply := range replies {
		old, _ := reply.([]any)
		for _, bit := range old {
			if bit == int64(0) {
				fresh++
				break
			}
		}
	}
	return fresh, lost, err
}

// announce says that keys are added: checksums no longer fit.
func (f *PlainFilter) announce(ctx context.Context, g *generation) error {
	if g.announced.Load() {
		return nil
	}
	_, err := f.do(ctx, [][]any{{"HSET", f.name, "changed:" + g.id, 1}})
	g.announced.Store(err == nil)
	return err
}

func (f *PlainFilter) isCurrent(ctx context.Context, g *generation) (bool, error) {
	now, err := f.fields(ctx, "generation")
	if err != nil || now[0] != "" {
		return err == nil && now[0] == g.id, err
	}
	// all that is left of the hash is what announce wrote
	if _, err := f.do(ctx, [][]any{{"HDEL", f.name, "changed:" + g.id}}); err != nil {
		return false, err
	}
	return false, fmt.Errorf("%w: there is none under %s any more", ErrLost, f.name)
}

// add returns whether the keys were added to the filter that is there now.
func (f *PlainFilter) add(ctx context.Context, g *generation, keys []string) (fresh int, done bool, err error) {
	defer runtime.KeepAlive(g)
	if g.list != nil || bool(g.info.strict) {
		return 0, false, &Error{Status: ErrCannot, Text: "a filter with an allow list, or one that " +
			"lets no more in than its capacity, cannot be added to as plain strings"}
	}
	hashes, err := g.hashes(keys)
	if err != nil {
		return 0, false, err
	}
	older, err := f.look(ctx, g, hashes, int(g.info.parts)-1)
	if older == nil {
		return 0, false, err
	}
	var absent []C.uint64_t
	for i, there := range older {
		if !there {
			absent = append(absent, hashes[i])
		}
	}
	if _, err := g.setBits(0); err != nil {
		return 0, false, err
	}
	if err := f.announce(ctx, g); err != nil {
		return 0, false, err
	}
	fresh, lost, err := f.set(ctx, g, absent)
	if err != nil {
		return 0, false, err
	}
	for _, piece := range lost { // what was added to it has made it anew, without the rest
		if _, err := f.do(ctx, [][]any{f.about(g, command{piece, []any{"UNLINK"}})}); err != nil {
			return 0, false, err
		}
	}
	if len(lost) > 0 {
		return 0, false, nil
	}
	if done, err = f.isCurrent(ctx, g); !done || fresh == 0 {
		return fresh, done, err
	}
	_, err = f.do(ctx, [][]any{{"HINCRBY", f.name, "items", fresh}})
	return fresh, true, err
}

// AddMany adds keys, and returns how many were not there.
func (f *PlainFilter) AddMany(ctx context.Context, keys []string) (fresh int, err error) {
	for from := 0; from < len(keys); {
		some := chunk(keys, from)
		g := f.now.Load()
		new, done, err := f.add(ctx, g, some)
		if err != nil {
			return fresh, err
		}
		if done {
			fresh += new
			from += len(some)
		} else if err := f.load(ctx, g.id); err != nil {
			return fresh, err
		}
	}
	return fresh, nil
}

// Add adds a key. It returns true if the key was not in the filter: true is certain.
func (f *PlainFilter) Add(ctx context.Context, key string) (fresh bool, err error) {
	new, err := f.AddMany(ctx, []string{key})
	return new == 1, err
}
