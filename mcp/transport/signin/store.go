package signin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/zalando/go-keyring"
)

// A Store keeps one secret text per key. It is safe for concurrent use.
type Store interface {
	Load(key string) (string, error) // ErrNoSecret when there is none
	Save(key, secret string) error
	Delete(key string) error // no error when there is none
}

// ErrNoSecret: nothing is kept under that key.
var ErrNoSecret = errors.New("no such secret")

// OpenStore keeps secrets in the system's keyring and, where that is not to be
// had (no desktop session, too long a secret), in files of mode 0600 in dir.
func OpenStore(dir string, log *slog.Logger) Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &both{ring: Keyring{}, files: Files{Dir: dir}, log: log}
}

// keyringWait bounds each use of the keyring, which may ask a person to unlock
// it: nothing in the background waits for that.
const keyringWait = 5 * time.Second

var errKeyringSlow = errors.New("the keyring does not answer; it may be locked")

// Keyring is the system's: Secret Service, macOS keychain, Windows credentials.
type Keyring struct{}

const keyringService = "mcptasks"

func within[T any](f func() (T, error)) (T, error) {
	type res struct {
		v   T
		err error
	}
	ch := make(chan res, 1)
	go func() {
		v, err := f()
		ch <- res{v, err}
	}()
	t := time.NewTimer(keyringWait)
	defer t.Stop()
	select {
	case r := <-ch:
		return r.v, r.err
	case <-t.C:
		var zero T
		return zero, errKeyringSlow
	}
}

// Load gives the secret.
func (Keyring) Load(key string) (string, error) {
	s, err := within(func() (string, error) { return keyring.Get(keyringService, key) })
	if errors.Is(err, keyring.ErrNotFound) {
		return "", ErrNoSecret
	}
	return s, err
}

// Save sets the secret.
func (Keyring) Save(key, secret string) error {
	_, err := within(func() (struct{}, error) { return struct{}{}, keyring.Set(keyringService, key, secret) })
	return err
}

// Delete removes the secret.
func (Keyring) Delete(key string) error {
	_, err := within(func() (struct{}, error) { return struct{}{}, keyring.Delete(keyringService, key) })
	if errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return err
}

// Files keeps each secret in a file of mode 0600 in Dir, which is made with
// mode 0700. File names are hashes of the keys.
type Files struct{ Dir string }

func (f Files) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(f.Dir, hex.EncodeToString(sum[:16])+".token")
}

// Load gives the secret.
func (f Files) Load(key string) (string, error) {
	b, err := os.ReadFile(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoSecret
	}
	return string(b), err
}

// Save writes the secret beside its place and moves it there, so that no reader
// sees half of it.
func (f Files) Save(key, secret string) error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder for tokens: %w", err)
	}
	tmp, err := os.CreateTemp(f.Dir, ".new-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("keep the token: %w", err)
	}
	_, err = tmp.WriteString(secret)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), f.path(key))
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return fmt.Errorf("keep the token: %w", err)
	}
	return nil
}

// Delete removes the file.
func (f Files) Delete(key string) error {
	if err := os.Remove(f.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// both prefers the keyring and keeps a secret in one place only.
type both struct {
	ring, files Store
	log         *slog.Logger
}

func (b *both) Load(key string) (string, error) {
	// A file is there only because the keyring was not to be had; it is newer
	// than what a keyring that has come back may still hold.
	if s, err := b.files.Load(key); err == nil {
		return s, nil
	}
	s, err := b.ring.Load(key)
	if err != nil && !errors.Is(err, ErrNoSecret) {
		b.log.Debug("keyring", "err", err)
		return "", ErrNoSecret
	}
	return s, err
}

func (b *both) Save(key, secret string) error {
	err := b.ring.Save(key, secret)
	if err == nil {
		return b.files.Delete(key)
	}
	b.log.Info("the keyring cannot be used; the token is kept in a file", "err", err)
	return b.files.Save(key, secret)
}

func (b *both) Delete(key string) error {
	err := b.files.Delete(key)
	if rerr := b.ring.Delete(key); rerr != nil {
		// Without a keyring nothing can be in it.
		b.log.Debug("keyring", "err", rerr)
	}
	return err
}
