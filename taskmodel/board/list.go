package board

import (
	"slices"
	"sort"
)

// chunkSize is how many rows a chunk of a list holds when it is built; twice as
// many split it.
const chunkSize = 256

// A list holds rows in an order, in chunks: finding by rank or by row, putting
// in and taking out cost a binary search and the moving of one chunk. It costs
// eight bytes a row.
type list struct {
	compare func(a, b *row) int
	chunks  [][]*row
	n       int
}

// newList makes a list of rows that are in order already. It keeps the slice.
func newList(compare func(a, b *row) int, sorted []*row) *list {
	l := &list{compare: compare, n: len(sorted)}
	for c := range slices.Chunk(sorted, chunkSize) {
		l.chunks = append(l.chunks, slices.Clip(c)) // clipped: a growing chunk moves out
	}
	return l
}

// clone copies the list so that both can be changed.
func (l *list) clone() *list {
	c := &list{compare: l.compare, n: l.n, chunks: make([][]*row, len(l.chunks))}
	flat := make([]*row, 0, l.n)
	for i, chunk := range l.chunks {
		from := len(flat)
		flat = append(flat, chunk...)
		c.chunks[i] = flat[from:len(flat):len(flat)]
	}
	return c
}

// locate finds the chunk and the place in it where r is or would be.
func (l *list) locate(r *row) (chunk, place int, found bool) {
	chunk = sort.Search(len(l.chunks), func(i int) bool { return l.compare(l.chunks[i][0], r) > 0 }) - 1
	if chunk < 0 {
		return 0, 0, false
	}
	place, found = slices.BinarySearchFunc(l.chunks[chunk], r, l.compare)
	return chunk, place, found
}

func (l *list) insert(r *row) {
	if len(l.chunks) == 0 {
		l.chunks, l.n = [][]*row{{r}}, 1
		return
	}
	c, p, found := l.locate(r)
	if found {
		l.chunks[c][p] = r
		return
	}
	l.n++
	chunk := slices.Insert(l.chunks[c], p, r)
	if len(chunk) < 2*chunkSize {
		l.chunks[c] = chunk
		return
	}
	l.chunks[c] = slices.Clip(chunk[:chunkSize])
	l.chunks = slices.Insert(l.chunks, c+1, slices.Clone(chunk[chunkSize:]))
}

func (l *list) remove(r *row) bool {
	if l.n == 0 {
		return false
	}
	c, p, found := l.locate(r)
	if !found {
		return false
	}
	l.n--
	if l.chunks[c] = slices.Delete(l.chunks[c], p, p+1); len(l.chunks[c]) == 0 {
		l.chunks = slices.Delete(l.chunks, c, c+1)
	}
	return true
}

// rank is the place of r in the whole list.
func (l *list) rank(r *row) (int, bool) {
	if l.n == 0 {
		return 0, false
	}
	c, p, found := l.locate(r)
	if !found {
		return 0, false
	}
	for _, chunk := range l.chunks[:c] {
		p += len(chunk)
	}
	return p, true
}

// from calls f with the rows from rank i on until f returns false.
func (l *list) from(i int, f func(*row) bool) {
	for _, chunk := range l.chunks {
		if i >= len(chunk) {
			i -= len(chunk)
			continue
		}
		for _, r := range chunk[max(i, 0):] {
			if !f(r) {
				return
			}
		}
		i = 0
	}
}
