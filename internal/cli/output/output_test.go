package output_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/cli/output"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	table := output.Table{Columns: append(output.Columns("Name", "Ready"), output.Column{Name: "Where", Wide: true},
		output.Column{Name: "Age"})}
	table.Rows = [][]string{{"a", "True", "here", "1s"}, {"longer name", "", "there", ""}}
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	table.Rows = [][]string{{"b", "False", "here", "2s"}} // more rows of the same table
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := "NAME          READY   AGE\na             True    1s\nlonger name\nb             False   2s\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestTextCannotSteerTheTerminal checks that control characters in names and messages,
// which other users choose, do not reach the terminal.
func TestTextCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	evil := "a\x1b[2Jb\rc\u202ed\x00\n\te\x9b"
	var table, diff strings.Builder
	tab := output.Table{Columns: output.Columns("Name"), Rows: [][]string{{evil}}, NoHeaders: true}
	if err := tab.Write(&table); err != nil {
		t.Fatal(err)
	}
	if err := output.Diff(&diff, output.Style{}, "a", "b", "", evil); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"table": table.String(), "text": output.Clean(evil),
		"diff": diff.String(),
	} {
		if i := strings.IndexFunc(text,
			func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x9b || r == 0x202e }); i >= 0 {
			t.Errorf("%s: %q has a control character at %d", name, text, i)
		}
	}
	if got := strings.Count(table.String(), "\n"); got != 1 {
		t.Errorf("the row of a table has %d lines, want 1", got)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	from := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"
	to := "1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n11\n12\n13\n"
	var b strings.Builder
	if err := output.Diff(&b, output.Style{}, "old", "new", from, to); err != nil {
		t.Fatal(err)
	}
	want := "--- old\n+++ new\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n" +
		"@@ -10,3 +10,4 @@\n 10\n 11\n 12\n+13\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestNoColoursOffTheTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	for _, w := range []*os.File{file, null} {
		if got := output.StyleFor(w, func(string) string { return "" }).Bad("x"); got != "x" {
			t.Errorf("%s: got %q, want no colour", w.Name(), got)
		}
		output.NewProgress(w, func(string) string { return "" }).Printf("x")
	}
	if text, err := os.ReadFile(file.Name()); err != nil || len(text) > 0 {
		t.Errorf("progress in a file: %q, %v", text, err)
	}
}

// TestMeterMeasuresTheCurrentRate checks that the rate is that of the last seconds, not the average since
// the start.
func TestMeterMeasuresTheCurrentRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := output.NewMeter()
		run := func(seconds, each int) (rate float64) {
			for range 10 * seconds {
				time.Sleep(100 * time.Millisecond) // fake time of synctest
				m.Add(each)
				rate = m.PerSecond()
			}
			return rate
		}
		for _, step := range []struct{ each, want int }{{100, 1000}, {1, 10}, {0, 0}, {50, 500}} {
			if got := run(5, step.each); math.Abs(got-float64(step.want)) > 1 {
				t.Errorf("%d in each tenth of a second: got %.1f/s, want %d", step.each, got, step.want)
			}
		}
		if m.Count() != 50*(100+1+0+50) {
			t.Errorf("counted %d", m.Count())
		}
	})
}

func TestAge(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": -time.Second, "90s": 90 * time.Second, "5m3s": 303 * time.Second, "100m": 100 * time.Minute,
		"30h": 30 * time.Hour, "9d": 220 * time.Hour,
	} {
		if got := output.Age(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}
