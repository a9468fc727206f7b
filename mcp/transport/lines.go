package transport

import (
	"bufio"
	"bytes"
	"io"
)

const (
	lineBuffer   = 64 << 10 // what is read at once; also the part kept of a line that is too long
	overlongTail = 1 << 10
)

// eachLine splits r at newlines and calls line with each that is not blank,
// without its end (\n or \r\n). The bytes belong to line's taker. Of a line
// longer than limit only the beginning and the end are kept and given to long,
// with its length. It returns nil at the end of r.
func eachLine(r io.Reader, limit int64, line func([]byte), long func(head, tail []byte, n int64)) error {
	br := bufio.NewReaderSize(r, lineBuffer)
	first := true
	var acc []byte // what was read of the current line before this round
	for {
		part, err := br.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			if int64(len(acc)+len(part)) > limit {
				head := append(acc, part...)
				read := int64(len(head))
				head, acc = bytes.Clone(head[:min(len(head), lineBuffer)]), nil
				tail, n, err := skipLine(br, read)
				long(head, tail, n)
				if err != nil {
					return ignoreEOF(err)
				}
				continue
			}
			acc = append(acc, part...)
			continue
		}
		var b []byte
		if acc == nil {
			b = bytes.Clone(part)
		} else {
			b, acc = append(acc, part...), nil
		}
		if first {
			b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
			first = false
		}
		b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
		switch {
		case int64(len(b)) > limit:
			long(b[:min(len(b), lineBuffer)], b[max(0, int64(len(b))-overlongTail):], int64(len(b)))
		case len(bytes.TrimSpace(b)) > 0:
			line(b)
		}
		if err != nil {
			return ignoreEOF(err)
		}
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// skipLine reads to the end of the line and keeps its last bytes. n counts on
// from what the caller has read of it.
func skipLine(br *bufio.Reader, n int64) (tail []byte, _ int64, err error) {
	for {
		part, err := br.ReadSlice('\n')
		n += int64(len(part))
		tail = append(tail, part[max(0, len(part)-overlongTail):]...)
		tail = tail[max(0, len(tail)-overlongTail):]
		if err != bufio.ErrBufferFull {
			return bytes.TrimRight(tail, "\r\n"), n, err
		}
	}
}
