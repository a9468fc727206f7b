// Package graphics shows pictures by what the terminal can: kitty's graphics
// protocol with Unicode placeholders, sixel over half blocks, or the half
// blocks alone that every terminal with colours can show.
//
// No graphics escape goes to a terminal that has not shown that it understands
// it: the terminal is asked by queries that every terminal answers or ignores
// (its name, its attributes, the size of a cell), and only when there is a
// picture to be shown.
//
// A placeholder of kitty's is a character in a cell: it scrolls, is covered and
// goes away with the cell. A sixel picture is written behind the renderer's
// back when a frame has stood still for a moment, at the place where the frame
// has the half blocks of the same picture. Every cell under it holds something,
// so that whatever replaces the picture in the frame is written by the renderer
// and takes the picture away with it.
//
// It imports safe, Bubble Tea and its terminal libraries. A Canvas is owned by
// the root's goroutine; what its jobs encode they encode elsewhere.
package graphics
