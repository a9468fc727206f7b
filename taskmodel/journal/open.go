package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// FileName is the name of the journal in the state folder.
const FileName = "journal.db"

// Options of a journal; zero values are the defaults.
type Options struct {
	Now  func() time.Time // time.Now
	What string           // what this process is, for others: "mcptasks", "mcptasks watch"
	Log  *slog.Logger     // nil: nothing is logged
	// ResultMax and ResultsTotal bound the results that are kept: each, 4 MiB;
	// all together, 256 MiB.
	ResultMax    int64
	ResultsTotal int64
	// QueueBound is how many entries wait for the disk before superseded ones
	// are dropped; 4,096.
	QueueBound int
	// QueueBytes is how many bytes may wait for the disk, about; 256 MiB. Past it
	// results in the queue lose their payloads, the oldest first.
	QueueBytes int64
	// Wait is how long Write waits for the disk before ErrSlow; 1 s.
	Wait time.Duration
}

// A Journal is a Store in one SQLite file. All methods are safe for concurrent
// use. One goroutine writes; it ends with Close.
type Journal struct {
	path string
	opts Options
	log  *slog.Logger

	write *sql.DB // one connection
	read  *sql.DB
	me    int64 // our row in writers
	node  string
	w     *writer

	watch struct { // what Changes looks at
		sync.Mutex
		conn *sql.Conn
		seen map[string]seen
	}
	closing sync.Once
	ended   chan struct{}
}

type seen struct{ version, since int64 }

// Open opens the journal in a state folder, making both where they are not:
// the folder for its owner alone (0700), the files too (0600). A damaged file
// is set aside under a name that tells the time and a new one made; a file of a
// newer mcptasks is refused (ErrNewer) and left as it is. Errors are sentences
// for a person; the program then runs without memory.
func Open(dir string, o Options) (*Journal, error) {
	o = o.defaults()
	path := filepath.Join(dir, FileName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, inWords(path, err)
	}
	j, err := open(path, o)
	if damaged(err) {
		o.Log.Warn("the journal is damaged and is set aside", "file", path, "error", err)
		if err := setAside(path, o.Now()); err != nil {
			return nil, inWords(path, err)
		}
		j, err = open(path, o)
	}
	if err != nil {
		return nil, inWords(path, err)
	}
	return j, nil
}

func (o Options) defaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.What == "" {
		o.What = "mcptasks"
	}
	if o.ResultMax <= 0 {
		o.ResultMax = 4 << 20
	}
	if o.ResultsTotal <= 0 {
		o.ResultsTotal = 256 << 20
	}
	if o.QueueBound <= 0 {
		o.QueueBound = 4096
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = 256 << 20
	}
	if o.Wait <= 0 {
		o.Wait = time.Second
	}
	return o
}

// Path is the journal's file.
func (j *Journal) Path() string { return j.path }

func open(path string, o Options) (_ *Journal, err error) {
	if err := private(path); err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	j := &Journal{path: path, opts: o, log: o.Log, node: node(host), ended: make(chan struct{})}
	j.watch.seen = map[string]seen{}
	defer func() {
		if err != nil {
			j.shut()
		}
	}()
	j.write, err = sql.Open("sqlite", dsn(path, "immediate", false))
	if err != nil {
		return nil, err
	}
	j.write.SetMaxOpenConns(1)
	ctx := context.Background()
	conn, err := connect(ctx, j.write, path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(suspect(path)); err == nil {
		if err := check(ctx, conn); err != nil {
			_ = conn.Close()
			return nil, err
		}
		_ = os.Remove(suspect(path))
	}
	if err := migrate(ctx, conn, path); err != nil {
		_ = conn.Close()
		return nil, err
	}
	err = conn.QueryRowContext(ctx, `INSERT INTO writers (pid, host, node, what, started) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		os.Getpid(), host, j.node, o.What, o.Now().UnixMicro()).Scan(&j.me)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	j.read, err = sql.Open("sqlite", dsn(path, "deferred", true))
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	j.read.SetMaxOpenConns(4)
	if j.w, err = newWriter(j, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	go j.w.run()
	return j, nil
}

// private makes the file for its owner alone before SQLite opens it; the files
// that SQLite makes beside it get the same mode.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return f.Chmod(0o600)
	}
	return nil
}

func dsn(path, lock string, readonly bool) string {
	q := url.Values{"_txlock": {lock}}
	q["_pragma"] = []string{"busy_timeout(5000)", "foreign_keys(1)", "synchronous(1)", "secure_delete(1)", "temp_store(2)"}
	if readonly {
		q["_pragma"] = append(q["_pragma"], "query_only(1)")
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// connect opens the writer's connection and puts the file in WAL mode. Two
// processes that make the file at once stand in each other's way there without
// SQLite's own patience.
func connect(ctx context.Context, db *sql.DB, path string) (*sql.Conn, error) {
	for try := 0; ; try++ {
		conn, err := db.Conn(ctx)
		if err == nil {
			var mode string
			var pages int64
			if err = known(ctx, conn, path); err != nil {
				_ = conn.Close()
				if busy(err) && try < 50 {
					time.Sleep(20 * time.Millisecond)
					continue
				}
				return nil, err
			}
			if err = conn.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&pages); err == nil && pages == 0 {
				// Of an empty file nothing can be lost: only what is in it is worth
				// waiting for the disk. migrate puts that back.
				_, err = conn.ExecContext(ctx, `PRAGMA auto_vacuum = INCREMENTAL; PRAGMA synchronous = OFF`)
			}
			if err == nil {
				err = conn.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode)
			}
			if err == nil {
				return conn, nil
			}
			_ = conn.Close()
		}
		if !busy(err) || try == 50 {
			return nil, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// known refuses a file of a newer mcptasks or of another program, before
// anything in it is changed.
func known(ctx context.Context, conn *sql.Conn, path string) error {
	var version, app int
	if err := conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if err := conn.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&app); err != nil {
		return err
	}
	switch {
	case version > 0 && app != applicationID:
		return fmt.Errorf("%w: %s is a database of another program and is left as it is (give another folder with --state DIR)", errForeign, path)
	case version > len(migrations):
		return fmt.Errorf("%w: %s has version %d, this mcptasks knows up to %d; it is left as it is (use the newer mcptasks, or another folder with --state DIR)",
			ErrNewer, path, version, len(migrations))
	}
	return nil
}

// migrate brings the file to the present schema.
func migrate(ctx context.Context, conn *sql.Conn, path string) (err error) {
	var version int
	defer func() {
		if _, perr := conn.ExecContext(ctx, `PRAGMA synchronous = NORMAL`); err == nil {
			err = perr
		}
	}()
	if err := conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if version == len(migrations) {
		return nil
	}
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(ctx, `ROLLBACK`)
		}
	}()
	// Another process may have been faster.
	if err := conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	version = min(version, len(migrations))
	for _, m := range migrations[version:] {
		if _, err := conn.ExecContext(ctx, m); err != nil {
			return fmt.Errorf("bringing %s to a newer form: %w", path, err)
		}
	}
	if _, err := conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d; PRAGMA application_id = %d`, len(migrations), applicationID)); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `COMMIT`)
	return err
}

// suspect is the mark of a file that showed damage while it was in use; the
// next Open looks through it. A look at each start would cost too much.
func suspect(path string) string { return path + ".suspect" }

func check(ctx context.Context, conn *sql.Conn) error {
	var word string
	err := conn.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&word)
	if err == nil && word != "ok" {
		err = &damage{word}
	}
	return err
}

// A damage is what a check found.
type damage struct{ word string }

func (d *damage) Error() string { return "damaged: " + d.word }

// setAside renames the damaged files, unless another process did it before.
func setAside(path string, now time.Time) error {
	stamp := now.UTC().Format("20060102T150405Z")
	to := path + ".damaged-" + stamp
	for i := 2; ; i++ {
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = fmt.Sprintf("%s.damaged-%s-%d", path, stamp, i)
	}
	var first error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			first = errors.Join(first, err)
		}
	}
	_ = os.Remove(suspect(path))
	return first
}

// Close writes what is queued, for as long as ctx lasts, gives back all leases
// and closes the file.
func (j *Journal) Close(ctx context.Context) error {
	var err error
	j.closing.Do(func() {
		j.w.close()
		select {
		case <-j.w.done:
		case <-ctx.Done():
			err = fmt.Errorf("closing the journal: %w", ctx.Err())
			j.w.abandon()
			<-j.w.done
		}
		close(j.ended)
		j.shut()
	})
	return err
}

func (j *Journal) shut() {
	j.watch.Lock()
	if j.watch.conn != nil {
		_ = j.watch.conn.Close()
		j.watch.conn = nil
	}
	j.watch.Unlock()
	for _, db := range []*sql.DB{j.read, j.write} {
		if db != nil {
			_ = db.Close()
		}
	}
}

// Damaged lists the files that were set aside in a state folder, oldest first.
func Damaged(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, FileName+".damaged-*"))
	names = slices.DeleteFunc(names, func(n string) bool {
		return filepath.Ext(n) != "" && (len(n) > 4 && (n[len(n)-4:] == "-wal" || n[len(n)-4:] == "-shm"))
	})
	slices.Sort(names)
	return names
}
