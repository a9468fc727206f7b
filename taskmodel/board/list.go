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
// eight bytes a row. A clone shares the chunks until one of the two changes them.
type list struct {
	compare func(a, b *row) int
	chunks  [][]*row
	shared  []bool // of chunks: a clone may hold it too, so it is not to be written to
	n       int
}

// newList makes a list of rows that are in order already. It keeps the slice.
func newList(compare func(a, b *row) int, sorted []*row) *list {
	l := &list{compare: compare, n: len(sorted)}
	for c := range slices.Chunk(sorted, chunkSize) {
		l.chunks = append(l.chunks, slices.Clip(c)) // clipped: a growing chunk moves out
	}
	l.shared = make([]bool, len(l.chunks))
	return l
}

// clone copies the list so that both can be changed, each by one goroutine.
func (l *list) clone() *list {
	for i := range l.shared {
		l.shared[i] = true
	}
	return &list{compare: l.compare, n: l.n, chunks: slices.Clone(l.chunks), shared: slices.Clone(l.shared)}
}

// own makes chunk c the list's alone.
func (l *list) own(c int) {
	if l.shared[c] {
		l.chunks[c], l.shared[c] = slices.Clone(l.chunks[c]), false
	}
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
		l.chunks, l.shared, l.n = [][]*row{{r}}, []bool{false}, 1
		return
	}
	c, p, found := l.locate(r)
	l.own(c)
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
	l.shared = slices.Insert(l.shared, c+1, false)
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
	l.own(c)
	if l.chunks[c] = slices.Delete(l.chunks[c], p, p+1); len(l.chunks[c]) == 0 {
		l.chunks = slices.Delete(l.chunks, c, c+1)
		l.shared = slices.Delete(l.shared, c, c+1)
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
