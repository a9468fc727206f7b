package blocks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Save writes every content block, and the structured content, to a file of
// its own in dir, which is made when it is missing, and gives the paths. What
// is no tool result is written whole. No file is ever overwritten, and no name
// from a server leads out of dir. On an error the paths written so far are
// given with it.
func (r Result) Save(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder %s: %w", dir, err)
	}
	defer root.Close()
	var paths []string
	write := func(name string, data []byte) error {
		got, err := create(root, name, data)
		if err != nil {
			return fmt.Errorf("cannot write to %s: %w", dir, err)
		}
		paths = append(paths, filepath.Join(dir, got))
		return nil
	}
	if r.Odd != "" {
		return paths, write("result.json", r.Raw)
	}
	var failed error
	for _, b := range r.Blocks {
		data, err := b.Bytes()
		name := b.FileName()
		if err != nil { // a link, a block of another kind, broken base64: as it came
			data, name = b.Raw, strings.TrimSuffix(name, path.Ext(name))+".json"
			if b.data != nil {
				failed = errors.Join(failed, fmt.Errorf("block %d is saved as JSON: %w", b.Index+1, err))
			}
		}
		if err := write(name, data); err != nil {
			return paths, err
		}
	}
	if r.Structured != nil {
		if err := write("structured.json", r.Structured); err != nil {
			return paths, err
		}
	}
	return paths, failed
}

// create writes a new file, with a number in its name where the name is taken.
func create(root *os.Root, name string, data []byte) (string, error) {
	ext := path.Ext(name)
	base := strings.TrimSuffix(name, ext)
	for n := 1; n < 10_000; n++ {
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s-%d%s", base, n, ext)
		}
		f, err := root.OpenFile(try, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return try, err
	}
	return "", fmt.Errorf("%s and 9,999 names like it are taken", name)
}

// FileName is a safe name for the block: its place, its own name made
// harmless, and an extension.
func (b Block) FileName() string {
	name := b.Name
	if name == "" {
		name = b.Title
	}
	if name == "" && b.URI != "" {
		u := strings.TrimRight(strings.SplitN(b.URI, "?", 2)[0], "/")
		name = u[strings.LastIndexAny(u, "/\\")+1:]
	}
	name = SafeName(name)
	ext := path.Ext(name)
	if ext == "" || len(ext) > 6 || name == ext {
		ext = b.Ext()
	} else {
		name = strings.TrimSuffix(name, ext)
	}
	if name == "" {
		name = SafeName(b.Type)
	}
	if name == "" {
		name = "block"
	}
	return fmt.Sprintf("%02d-%s%s", b.Index+1, name, ext)
}

const maxName = 80

// SafeName makes of any text a file name without folders, hidden files,
// control bytes and what a shell or another system takes amiss: ASCII letters,
// digits, and - _ . inside. It may be empty.
func SafeName(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.':
			b.WriteRune(r)
		default:
			if !strings.HasSuffix(b.String(), "-") {
				b.WriteByte('-')
			}
		}
		if b.Len() >= maxName {
			break
		}
	}
	out := b.String()
	for strings.Contains(out, "..") {
		out = strings.ReplaceAll(out, "..", ".")
	}
	return strings.Trim(out, "-.")
}
