// Package keymap holds every key of the screens in one struct: the action's
// name (as the config file spells it), its default keys, its help text and the
// contexts in which it counts. The help screen, the last line of each screen
// and the README's key table are made from it, so that none of them can say
// something else than the program does.
//
// It imports bubbles/key and the standard library. It reads no file: package
// ui/cli hands it the [keys] table of the configuration.
package keymap
