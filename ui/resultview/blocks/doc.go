// Package blocks reads what a tool call returned into its content blocks, and
// saves them to files.
//
// It is pure but for Save, which writes only inside the folder it is given, to
// names that it makes safe itself, and overwrites nothing. Reading is one pass
// over the bytes, so that 20 MB cost milliseconds; base64 is decoded when asked
// for. Text in a Block is raw; Line and Kind are fit for the screen.
//
// It imports the standard library and ui/safe; it knows no Bubble Tea.
package blocks
