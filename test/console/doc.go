// Package console tests the console in a real browser, Debian's chromium, against the real
// binary. It is a separate module, so that the product does not depend on the browser driver.
// It writes screenshots of every page in both themes and widths to .cache/screenshots. With
// FRESHET_CONSOLE_SOURCE=1 it tests the files of the source tree instead of those in the
// binary.
package console
