package integrity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"freshet/internal/base/atomicfile"
)

// The file of a register is JSON, followed by a line with its checksum.

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errSum     = errors.New("file does not match its checksum")
)

// readParts reads the parts of the register in a directory; none if there is no file.
func readParts(dir string) (parts []Part, err error) {
	data, err := os.ReadFile(filepath.Join(dir, partsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, sum, _ := bytes.Cut(data, []byte("\n\n"))
	if string(sum) != sumLine(text) {
		return nil, errSum
	}
	return parts, json.Unmarshal(text, &parts)
}

// writeParts replaces the file of the register in a directory.
func writeParts(dir string, parts []Part) error {
	text, err := json.MarshalIndent(parts, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, partsFile), fmt.Appendf(text, "\n\n%s", sumLine(text)))
}

func sumLine(text []byte) string { return fmt.Sprintf("%08x\n", crc32.Checksum(text, castagnoli)) }

// Read reads the register of a stopped member and changes nothing: the parts, and what is in quarantine.
func Read(dir string) ([]Part, []Quarantined, error) {
	parts, err := readParts(dir)
	if err != nil {
		err = fmt.Errorf("reading %s: %w", partsFile, err)
	}
	return parts, (&Register{dir: dir}).Quarantined(), err
}
