// Package console tests the console in a real browser, Debian's chromium, against the
// real binary. It is a module of its own, so that nothing of the driver reaches the
// product. Screenshots of every page in both themes and widths are left in
// .cache/screenshots. With FRESHET_CONSOLE_SOURCE=1 the files are those of the source
// tree and not those in the binary.
package console
