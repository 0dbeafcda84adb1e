package origins

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/test/stamp"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	at := position{"orders", 3, 12}
	for _, size := range []int{0, 40, 200, 200 << 10} {
		good := value(at, size)
		if size >= 40 && len(good) != size {
			t.Errorf("a value of %d bytes: got %d bytes", size, len(good))
		}
		if err := Check("orders", 3, 12, good); err != nil {
			t.Errorf("valid value of %d bytes: got %v", size, err)
		}
		for _, other := range []position{{"order", 3, 12}, {"orders", 1, 12}, {"orders", 3, 1}, {"orders", 3, 13}} {
			if err := Check(other.topic, other.partition, other.offset, good); !errors.Is(err, stamp.ErrForeign) {
				t.Errorf("value of %s at %s: got %v, want %v", at, other, err, stamp.ErrForeign)
			}
		}
		changed := bytes.Clone(good)
		changed[len(changed)-1] ^= 1
		for name, bad := range map[string][]byte{
			"changed": changed, "cut": good[:len(good)-1], "longer": append(bytes.Clone(good), 'x'), "empty": nil,
		} {
			if err := Check("orders", 3, 12, bad); !errors.Is(err, stamp.ErrDamaged) {
				t.Errorf("a value of %d bytes, %s: got %v, want %v", size, name, err, stamp.ErrDamaged)
			}
		}
	}
}

// TestCheckFile checks files of clients that got all records, and of clients that did not.
func TestCheckFile(t *testing.T) {
	t.Parallel()
	set := &Set{counts: map[string][]int64{"a": {2, 1}, "b": {1}, "empty": {0}}}
	const want = "FRESHET_ORIGIN_TOPICS=a,b,empty FRESHET_ORIGIN_RECORDS=4 FRESHET_ORIGIN_OUTPUT=out"
	if got := strings.Join(set.Environment("out"), " "); !strings.HasSuffix(got, want) {
		t.Errorf("environment: got %q, want %q at the end", got, want)
	}
	record := func(shown, is position) string {
		v := value(is, 100)
		return fmt.Sprintf("%s %d\n%s\n", shown, len(v), v)
	}
	a0, a1, other, b := position{"a", 0, 0}, position{"a", 0, 1}, position{"a", 1, 0}, position{"b", 0, 0}
	some := record(a0, a0) + record(b, b) + record(a1, a1)
	good := some + record(other, other)
	foreign := record(a0, a0) + record(b, other) + record(a1, a1) + record(other, b)
	for name, c := range map[string]struct{ text, want string }{
		"good":    {good, ""},
		"missing": {some, "read 3 of 4 records: 0 foreign, 0 damaged, 0 out of order; 1 partitions"},
		"nothing": {"", "read 0 of 4 records"},
		"foreign": {foreign, "2 foreign, 0 damaged, 0 out of order; 0 partitions"},
		"twice":   {good + record(b, b), "read 5 of 4 records: 0 foreign, 0 damaged, 1 out of order; 0 partitions"},
		"order": {
			record(a1, a1) + record(a0, a0) + record(b, b) + record(other, other),
			"2 out of order; 1 partitions",
		},
		"damaged":   {strings.Replace(good, " 100\n", " 90\n", 1), "1 damaged"},
		"cut":       {good[:len(good)-20], "read 3 of 4 records"},
		"unknown":   {record(position{"c", 0, 0}, a0), `topic "c" partition 0, which does not exist`},
		"no format": {"Traceback\n", "is not a line with"},
	} {
		file := filepath.Join(t.TempDir(), "records")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := set.CheckFile(file)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
