package calyx

// #include "calls.h"
import "C"

import (
	"errors"
	"syscall"
)

// Status is a kind of error. Test for it with errors.Is(err, calyx.ErrFull).
type Status int

const (
	ErrBadArgument Status = C.CALYX_BAD_ARGUMENT // an option is out of range
	ErrNoMemory    Status = C.CALYX_NO_MEMORY
	ErrFull        Status = C.CALYX_FULL      // no room: strict, grown to its limit, mapped
	ErrCannot      Status = C.CALYX_CANNOT    // not with its kind
	ErrMismatch    Status = C.CALYX_MISMATCH  // filters that differ in kind, hash or size
	ErrReadOnly    Status = C.CALYX_READ_ONLY // opened for reading, or static
	ErrDamaged     Status = C.CALYX_DAMAGED   // bytes that are not, or no longer, a filter
	ErrTooNew      Status = C.CALYX_TOO_NEW   // made by a later version
	ErrUnsealed    Status = C.CALYX_UNSEALED  // being changed in place
	ErrWrongKey    Status = C.CALYX_WRONG_KEY // another secret key, or another hash
	ErrIO          Status = C.CALYX_IO        // the operating system failed
)

// ErrClosed is returned by calls on a filter or builder after Close. Calls that
// cannot return an error panic with it.
var ErrClosed = errors.New("calyx: it is closed")

func (s Status) Error() string {
	return "calyx: " + C.GoString(C.calyx_status_text(C.calyx_status(s)))
}

// Error says in words why a call failed. errors.Is(err, fs.ErrNotExist) and the
// like work, too.
type Error struct {
	Status Status
	Errno  syscall.Errno // if Status is ErrIO, else 0
	Text   string
}

func (e *Error) Error() string { return "calyx: " + e.Text }

// Is reports whether target is the Status of this error.
func (e *Error) Is(target error) bool { return target == error(e.Status) }

// Unwrap returns the error of the operating system, if there was one.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

func failed(status C.calyx_status, why *C.calyx_error) error {
	if status == C.CALYX_OK {
		return nil
	}
	return &Error{Status(status), syscall.Errno(why.os_code),
		C.GoString(C.error_text(why))}
}

// answer takes the result of a call in calls.h apart.
func answer(result C.int) (bool, error) {
	if result < 0 {
		return false, Status(result)
	}
	return result == 1, nil
}
