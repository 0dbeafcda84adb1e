package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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

// firstFormats are the lines of the versions that wrote every format once.
var firstFormats = []string{"directory 1", "keys 1", "audit 1"}

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
	stored, err := parseFormats(string(data))
	if err != nil {
		return false, fmt.Errorf("%s is damaged, or was written by a newer version of the server; start that version; "+
			"if no newer version has used the directory, remove the file with: rm %s; the next start writes it "+
			"again: %w", path, path, err)
	}
	known := map[string]int{}
	for _, f := range formats {
		known[f.part] = f.version
	}
	for _, f := range stored.formats {
		reads, ok := known[f.part]
		if !ok || f.version > reads {
			return false, errs.Newf(errs.Precondition, "data directory %s %w: %s has format %d, but this version "+
				"reads formats up to %d", dir, version.ErrNewer, f.part, f.version, reads)
		}
		write = write || f.version < reads
	}
	return write || !stored.twice || len(stored.formats) < len(formats), nil
}

// storedFormats is the content of FormatFile.
type storedFormats struct {
	formats []format
	twice   bool // every format is there twice
}

// parseFormats reads the text of FormatFile. It lists every format twice, so that damage is not taken
// for the format of a newer version: versions that did not write the formats twice wrote no other
// formats than firstFormats.
func parseFormats(text string) (stored storedFormats, err error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != formatHeading {
		return stored, fmt.Errorf("its first line is not %q", formatHeading)
	}
	lines = lines[1:]
	if half := len(lines) / 2; len(lines) > 1 && len(lines)%2 == 0 && slices.Equal(lines[:half], lines[half:]) {
		stored.twice, lines = true, lines[:half]
	} else if len(lines) > len(firstFormats) || !slices.Equal(lines, firstFormats[:len(lines)]) {
		return stored, errors.New("it does not contain every format twice")
	}
	for _, line := range lines {
		part, number, _ := strings.Cut(line, " ")
		version, err := strconv.Atoi(number)
		if err != nil {
			return stored, fmt.Errorf("line %q is not a format", line)
		}
		stored.formats = append(stored.formats, format{part, version})
	}
	return stored, nil
}

// writeFormats writes FormatFile with the formats of this version, each of them twice.
func writeFormats(dir string) error {
	var list string
	for _, f := range formats {
		list += fmt.Sprintf("%s %d\n", f.part, f.version)
	}
	return privatefile.Write(filepath.Join(dir, FormatFile), []byte(formatHeading+"\n"+list+list))
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
