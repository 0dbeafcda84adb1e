package spoil

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Operation is a way to damage a file.
type Operation string

// Operations.
const (
	Flip    Operation = "flip"     // one bit, at a random place
	CutHalf Operation = "cut-half" // the second half is lost
	CutEnd  Operation = "cut-end"  // the last 100 bytes are lost
	Zero    Operation = "zero"     // 4 KiB at a random page, or what the file has there, become zeros
	Delete  Operation = "delete"
)

// Operations returns all operations.
func Operations() []Operation { return []Operation{Flip, CutHalf, CutEnd, Zero, Delete} }

const (
	page    = 4 << 10
	endPart = 100
)

// ErrAbsent reports that the class has no file that the operation can damage.
var ErrAbsent = errors.New("no such file")

// Done describes an injected damage.
type Done struct {
	// File is the damaged file, relative to the data directory.
	File string
	// Place describes the damaged bytes.
	Place string
}

// String returns the damage in one line.
func (d Done) String() string { return d.File + ": " + d.Place }

// Damage damages one file of the class in a data directory. The random generator chooses the file
// and the place. Bytes of preallocated space, which are zero at the end of a file, count as unused:
// flips and zeroes hit what was written. It fails with ErrAbsent if there is no file, or only empty
// ones that the operation does not change. Files for which likely returns true are chosen first; nil
// means all.
func Damage(dir string, class Class, operation Operation, random *rand.Rand, likely func(file string) bool,
) (Done, error) {
	files := class.Find(dir)
	random.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	if likely != nil {
		slices.SortStableFunc(files, func(a, b string) int {
			return cmp.Compare(rank(likely(a)), rank(likely(b)))
		})
	}
	for i := range files {
		place, err := damageFile(files[i], operation, random)
		if errors.Is(err, ErrAbsent) || errors.Is(err, fs.ErrNotExist) {
			continue // empty, or removed by the running member
		}
		if err != nil {
			return Done{}, err
		}
		name, err := filepath.Rel(dir, files[i])
		return Done{File: name, Place: place}, err
	}
	return Done{}, fmt.Errorf("%w: class %s, operation %s, %d files", ErrAbsent, class.Name, operation, len(files))
}

func rank(likely bool) int {
	if likely {
		return 0
	}
	return 1
}

func damageFile(path string, operation Operation, random *rand.Rand) (place string, err error) {
	if operation == Delete {
		return "deleted", os.Remove(path)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	used, err := written(file)
	if err != nil {
		return "", err
	}
	if used == 0 {
		return "", ErrAbsent
	}
	switch operation {
	case Flip:
		at, bit := random.Int64N(used), random.IntN(8)
		one := make([]byte, 1)
		if _, err := file.ReadAt(one, at); err != nil {
			return "", err
		}
		one[0] ^= 1 << bit
		_, err := file.WriteAt(one, at)
		return fmt.Sprintf("bit %d of byte %d of %d flipped", bit, at, used), err
	case CutHalf:
		return fmt.Sprintf("cut to %d of %d bytes", used/2, used), file.Truncate(used / 2)
	case CutEnd:
		left := max(used-endPart, 0)
		return fmt.Sprintf("cut to %d of %d bytes", left, used), file.Truncate(left)
	case Zero:
		at := random.Int64N((used+page-1)/page) * page
		length := min(page, used-at)
		_, err := file.WriteAt(make([]byte, length), at)
		return fmt.Sprintf("%d of %d bytes zeroed from byte %d on", length, used, at), err
	}
	return "", fmt.Errorf("unknown operation %q", operation)
}

// written returns the size of a file without the zeros at its end, which are preallocated space.
func written(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, 64<<10)
	for end := info.Size(); end > 0; {
		begin := max(end-int64(len(block)), 0)
		part := block[:end-begin]
		if _, err := file.ReadAt(part, begin); err != nil {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] != 0 {
				return begin + int64(i) + 1, nil
			}
		}
		end = begin
	}
	return 0, nil
}

// DamageAll damages every file of the class and returns their number.
func DamageAll(dir string, class Class, operation Operation, random *rand.Rand) (n int, err error) {
	for _, file := range class.Find(dir) {
		_, err := damageFile(file, operation, random)
		if errors.Is(err, ErrAbsent) {
			continue
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
