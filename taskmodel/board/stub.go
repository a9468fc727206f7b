package board

// Filter is a parsed filter expression.
type Filter struct{}

// Version is one published state of a Board.
type Version struct{}
