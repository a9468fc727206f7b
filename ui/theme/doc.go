// Package theme says how things look by what they mean: one struct of semantic
// styles, the built-in themes, and themes made from the configuration. It also
// gives each task status its glyph and its word, so that colour never carries
// a meaning alone.
//
// It imports taskmodel, lipgloss and x/ansi. Styles are values without state;
// the terminal library lowers their colours to what the terminal can show and
// drops them under NO_COLOR.
package theme
