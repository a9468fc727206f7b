package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Errors that callers tell apart.
var (
	// ErrSlow: the entries are queued and will be written, but were not within a
	// second. The caller goes on and says so.
	ErrSlow = errors.New("the journal is slow: this is not on disk yet")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("the journal is closed")
	// ErrNewer: the file belongs to a newer mcptasks. It was not touched.
	ErrNewer = errors.New("the journal was written by a newer mcptasks")
	// ErrNoLease: this process does not hold the lease that the act needs.
	ErrNoLease = errors.New("another process holds this session now")

	errForeign = errors.New("this is no journal of mcptasks")
)

func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// damaged reports whether the file itself is broken.
func damaged(err error) bool {
	var d *damage
	if errors.As(err, &d) {
		return true
	}
	c := code(err)
	return c == sqlite3.SQLITE_CORRUPT || c == sqlite3.SQLITE_NOTADB
}

func busy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// Busy reports whether an error says only that no answer came in time: a slow
// disk, or another process that writes. Asking again soon may bring it. What a
// full, read-only or broken disk says it says again.
func Busy(err error) bool {
	return busy(err) || errors.Is(err, ErrSlow) || errors.Is(err, context.DeadlineExceeded)
}

// permanent reports whether trying the same again soon is of no use, but later
// may be: the disk is full, read-only or broken.
func permanent(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PERM:
		return true
	}
	return false
}

// inWords makes a sentence for a person of what went wrong with the file.
func inWords(path string, err error) error {
	if err == nil {
		return nil
	}
	const next = "mcptasks goes on and remembers nothing new until that is mended, or give it another folder with --state DIR"
	switch c := code(err); {
	case errors.Is(err, ErrNewer), errors.Is(err, errForeign), errors.Is(err, ErrClosed), errors.Is(err, ErrSlow):
		return err
	case c == sqlite3.SQLITE_CORRUPT || c == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("the journal %s is damaged; it will be set aside at the next start: %w", path, err)
	}
	why := Why(err)
	if why == "" {
		return fmt.Errorf("the journal %s cannot be written: %w; %s", path, err, next)
	}
	return fmt.Errorf("the journal %s cannot be written: %s (%w); %s", path, why, err, next)
}

// Why says in a few words what keeps the journal from being written, for where
// there is no room for a sentence; "" when it is something else.
func Why(err error) string {
	var e *sqlite.Error
	switch c := code(err); {
	case c == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC),
		errors.As(err, &e) && e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE: // no room for the file that processes share
		return "the disk is full"
	case c == sqlite3.SQLITE_READONLY || errors.Is(err, syscall.EROFS):
		return "it is read-only"
	case c == sqlite3.SQLITE_PERM || errors.Is(err, fs.ErrPermission):
		return "it may not be written by this user"
	case c == sqlite3.SQLITE_CORRUPT || c == sqlite3.SQLITE_NOTADB:
		return "its file is damaged"
	case c == sqlite3.SQLITE_BUSY:
		return "another process keeps it locked"
	case c == sqlite3.SQLITE_IOERR:
		return "the disk reports an error"
	case c == sqlite3.SQLITE_CANTOPEN:
		return "it cannot be opened"
	case errors.Is(err, ErrNewer):
		return "it belongs to a newer mcptasks"
	case errors.Is(err, errForeign):
		return "its file belongs to another program"
	}
	return ""
}
