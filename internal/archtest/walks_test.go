package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// walks are the titles of the walks in CONTRIBUTING.md.
var walks = []string{
	"### A Kafka Produce on three members",
	"### `freshet produce`",
	"### A passkey sign-in followed by an API key",
}

// step is a row of a walk: a function that the step before it calls, unless the step has a mark.
type step struct {
	number      int
	mark        string // new request, new process, return, or "" for a call
	file        string // path from the root of the repository
	function    string // Func, Type.Method or Interface.Method
	isInterface bool   // the function is a method of an interface
}

func (s *step) folder() string { return path.Dir(s.file) }

// stepCell matches the first cell of a row: a number, and a mark for a step that is not a call.
var stepCell = regexp.MustCompile(`^([0-9]+)(?: \((new request|new process|return)\))?$`)

// parseStep returns the step of a row: number and mark, file, function, description.
func parseStep(row []string) (s step, err error) {
	if len(row) != 4 || len(row[3]) < 10 {
		return s, fmt.Errorf("row %q: want number, file, function and description", row)
	}
	m := stepCell.FindStringSubmatch(row[0])
	if m == nil {
		return s, fmt.Errorf("row %q: want a number, and after it (new request), (new process), (return) or nothing",
			row[0])
	}
	s.number, _ = strconv.Atoi(m[1]) // the pattern allows digits only
	s.mark = m[2]
	files, functions := spans(row[1]), spans(row[2])
	if len(files) != 1 || len(functions) != 1 {
		return s, fmt.Errorf("step %d: want one file and one function in backquotes", s.number)
	}
	s.function = functions[0]
	var exists bool
	if s.file, exists = resolvePath(files[0]); !exists || path.Ext(s.file) != ".go" {
		return s, fmt.Errorf("step %d: file %s does not exist", s.number, files[0])
	}
	s.isInterface, err = s.find()
	return s, err
}

// find looks the function up in its file and reports whether it is a method of an interface.
func (s *step) find() (isInterface bool, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", s.file), nil, 0)
	if err != nil {
		return false, err
	}
	for _, d := range declaredNames(file) {
		if d.name == s.function {
			return d.isInterface, nil
		}
	}
	return false, fmt.Errorf("step %d: %s does not declare %s", s.number, s.file, s.function)
}

// checkCall returns an error if a step may not call the next one: calls point down. The package of a step
// has to be allowed to import the package of the next step. A call of an interface goes to an
// implementation, which has to be allowed to import the interface.
func checkCall(from, to *step) error {
	if to.mark != "" || mayImport(from.folder(), to.folder()) ||
		from.isInterface && mayImport(to.folder(), from.folder()) {
		return nil
	}
	return fmt.Errorf("step %d: %s may not call %s, because its floor may not import it; name the interface "+
		"that it calls as a step, or mark the step as new request, new process or return",
		to.number, from.folder(), to.folder())
}

// mayImport reports whether the floors allow a package to import another one.
func mayImport(from, to string) bool {
	f := floorOf(from)
	return from == to || f != nil && (matchesAny(f.packages, to) || matchesAny(f.allowed, to))
}

// TestWalks checks that every step of the walks in CONTRIBUTING.md names a function that exists, and that
// its calls point down.
func TestWalks(t *testing.T) {
	t.Parallel()
	page := contributing(t)
	for _, title := range walks {
		var before *step
		rows := tableRows(section(t, page, title))
		if len(rows) < 8 {
			t.Errorf("walk %q has %d steps, want at least 8", title, len(rows))
		}
		for i, row := range rows {
			s, err := parseStep(row)
			switch {
			case err != nil:
				t.Errorf("walk %q: %v", title, err)
				before = nil
				continue
			case s.number != i+1:
				t.Errorf("walk %q: step %d has the number %d", title, i+1, s.number)
			case before != nil:
				if err := checkCall(before, &s); err != nil {
					t.Errorf("walk %q: %v", title, err)
				}
			}
			before = &s
		}
	}
}

// TestWalksCanFail calls parseStep and checkCall with steps that they must reject and steps that they must
// accept.
func TestWalksCanFail(t *testing.T) {
	t.Parallel()
	const pebble = "`storage/pebble/append.go`"
	for name, c := range map[string]struct {
		row  []string
		want string // part of the error; "" for none
	}{
		"a call":             {[]string{"1", pebble, "`Engine.Append`", "appends the message"}, ""},
		"a return":           {[]string{"2 (return)", pebble, "`Engine.Append`", "appends the message"}, ""},
		"no number":          {[]string{"one", pebble, "`Engine.Append`", "appends the message"}, "want a number"},
		"an unknown mark":    {[]string{"1 (later)", pebble, "`Engine.Append`", "appends a message"}, "want a number"},
		"no description":     {[]string{"1", pebble, "`Engine.Append`", ""}, "want number, file"},
		"a missing file":     {[]string{"1", "`storage/x.go`", "`Engine.Read`", "reads the message"}, "does not exist"},
		"a missing function": {[]string{"1", pebble, "`Engine.Remove`", "appends the message"}, "does not declare"},
	} {
		_, err := parseStep(c.row)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	broker := &step{file: "internal/broker/messaging/produce.go"}
	store := &step{file: "internal/storage/pebble/append.go"}
	contract := &step{file: "internal/storage/engine/engine.go", isInterface: true}
	for name, c := range map[string]struct {
		from, to *step
		ok       bool
	}{
		"down":              {broker, contract, true},
		"to implementation": {contract, store, true},
		"past an interface": {broker, store, false},
		"up":                {store, broker, false},
		"up, marked":        {store, &step{file: broker.file, mark: "return"}, true},
	} {
		if err := checkCall(c.from, c.to); (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
