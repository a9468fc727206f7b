// Package resultview shows what a task or a call returned: text with markdown
// rendered, structured content as a table or as JSON that folds, images drawn,
// everything else as one line with type and size, errors clearly as errors,
// and the raw JSON.
//
// It is a plain component: Update takes a message and gives an Event that says
// what the person wants; the screen around it copies, saves and opens. A result
// of 20 MB opens at once because only its line starts are found ahead; lines
// are sanitised, coloured and wrapped when they are shown, and only small
// markdown and small pictures are rendered without being asked for.
//
// It imports taskmodel, blocks, keymap, theme, kit and safe, and the parser of goldmark for
// markdown. Reading and saving without a screen is in package blocks.
package resultview
