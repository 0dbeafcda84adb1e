package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/privatefile"
	"freshet/internal/base/version"
)

// FormatFile contains the format versions of the files in a data directory. The stores of
// clusters and the data in etcd have their own.
const FormatFile = "FORMAT"

const formatHeading = "freshet data directory"

// formats are the formats that this version writes. It reads all earlier ones.
//
//   - directory: the layout of files and folders;
//   - keys: encryption.key, tls, admin.token and admin.json;
//   - audit: the lines of the audit log.
var formats = []format{{"directory", 1}, {"keys", 1}, {"audit", 1}}

// format is the version of a part of the data directory.
type format struct {
	part    string
	version int
}

// Formats reports whether a data directory was written by an older version. It returns an
// error if this version cannot read the directory. It changes nothing.
func Formats(dir string) (older bool, err error) {
	if _, err := os.Stat(filepath.Join(dir, FormatFile)); errors.Is(err, os.ErrNotExist) {
		left, err := os.ReadDir(dir)
		return len(left) > 0, err // older than FormatFile, or empty
	}
	return CheckFormats(dir)
}

// CheckFormats returns an error if this version cannot read a data directory, and reports
// whether the file must be written.
func CheckFormats(dir string) (write bool, err error) {
	path := filepath.Join(dir, FormatFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil // a new directory, or one that is older than FormatFile, which is format 1
	}
	if err != nil {
		return false, fmt.Errorf("reading the format of the data directory: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	known := map[string]int{}
	for _, f := range formats {
		known[f.part] = f.version
	}
	if lines[0] != formatHeading {
		return false, fmt.Errorf("%s is damaged: its first line is not %q; remove the file if no newer version has "+
			"used the directory", path, formatHeading)
	}
	for _, line := range lines[1:] {
		part, number, _ := strings.Cut(line, " ")
		stored, err := strconv.Atoi(number)
		switch reads, ok := known[part]; {
		case err != nil:
			return false, fmt.Errorf("%s is damaged: line %q is not a format; remove the file if no newer version has "+
				"used the directory", path, line)
		case !ok || stored > reads:
			return false, errs.Newf(errs.Precondition, "data directory %s %w: %s has format %d, but this version "+
				"reads formats up to %d", dir, version.ErrNewer, part, stored, reads)
		case stored < reads:
			write = true
		}
	}
	return write || len(lines)-1 < len(formats), nil
}

// writeFormats writes FormatFile with the formats of this version.
func writeFormats(dir string) error {
	text := formatHeading + "\n"
	for _, f := range formats {
		text += fmt.Sprintf("%s %d\n", f.part, f.version)
	}
	return privatefile.Write(filepath.Join(dir, FormatFile), []byte(text))
}

// OpenFormats rejects a newer directory and updates FormatFile of an older one. If the file
// cannot be written, for example on a full disk, the server starts without.
func OpenFormats(dir string, log *slog.Logger) error {
	write, err := CheckFormats(dir)
	if err != nil || !write {
		return err
	}
	if err := writeFormats(dir); err != nil {
		log.Warn("format of the data directory could not be written; the next start retries", slog.Any("error", err))
	}
	return nil
}
