// Package formview shows the questions of servers and takes a person's
// answers: forms, addresses to visit, completions to write (sampling), and the
// arguments of a tool to start.
//
// Its components are plain: Update takes a message and gives an Event that
// says what the person wants; the screen around it does it. Nothing here sends,
// opens, saves or reads a clock. Esc puts aside and never sends; decline and
// cancel ask once.
//
// All text of a server passes ui/safe before it is laid out. The package
// imports taskmodel, form, keymap, theme, kit and safe.
package formview
