package kafkadiff

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// difference is a field that two brokers answer differently.
type difference struct {
	conversation, step, field string
	kafka, freshet            string
}

// found collects the differences of all conversations, with the versions that have them.
type found struct {
	mu  sync.Mutex
	all map[difference][]int16
}

func (f *found) add(version int16, d difference) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[d] = append(f.all[d], version)
}

// TestDifferences sends the same requests to Apache Kafka and to freshet and compares the
// responses.
func TestDifferences(t *testing.T) {
	if os.Getenv("FRESHET_TEST_JAVA") == "" {
		t.Skip("NOT TESTED: FRESHET_TEST_JAVA is not set; make test-java sets it")
	}
	if _, err := os.Stat(libraries); err != nil {
		t.Skip("NOT TESTED: the Java libraries of Kafka are missing; download them with hack/java-libs.sh platform")
	}
	kafka, freshet := start(t)
	kafka.coordinate(t)
	freshet.coordinate(t)
	results := &found{all: make(map[difference][]int16)}
	places := make(chan struct{}, 8) // conversations at a time
	only := os.Getenv("KAFKADIFF_ONLY")
	t.Run("conversations", func(t *testing.T) {
		for _, c := range slices.Concat(topicCases(), recordCases(), offsetCases(), groupCases(), consumerCases(),
			configCases(), adminCases()) {
			if only != "" && !strings.Contains(c.name, only) {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				compareVersions(t, kafka, freshet, &c, results, places)
			})
		}
	})
	report(t, results, only == "")
}

// compareVersions compares a conversation in all versions.
func compareVersions(t *testing.T, kafka, freshet *broker, c *conversation, results *found, places chan struct{}) {
	t.Helper()
	limits := kafka.common(c.key)
	if c.max > 0 {
		limits.max = min(limits.max, c.max)
	}
	var running sync.WaitGroup
	for version := max(limits.min, c.min); version <= limits.max; version++ {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			theirs, err := play(t, kafka, c, version)
			if err != nil {
				t.Errorf("version %d: %v", version, err)
			}
			ours, wrong := play(t, freshet, c, version)
			if wrong != nil {
				t.Errorf("version %d: %v", version, wrong)
			}
			if err == nil && wrong == nil {
				compare(c.name, version, theirs, ours, results)
			}
		})
	}
	running.Wait()
}

// compare adds the differences between the responses of two brokers.
func compare(name string, version int16, theirs, ours []step, results *found) {
	for i := range max(len(theirs), len(ours)) {
		if i >= len(theirs) || i >= len(ours) {
			results.add(version, difference{name, "end", "steps", fmt.Sprint(len(theirs)), fmt.Sprint(len(ours))})
			return
		}
		a, b := theirs[i].answer, ours[i].answer
		fields := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
		slices.Sort(fields)
		for _, field := range slices.Compact(fields) {
			if hidden(field, fields, a, b) {
				continue
			}
			kafka, freshet := "absent", "absent"
			if value, ok := a[field]; ok {
				kafka = value
			}
			if value, ok := b[field]; ok {
				freshet = value
			}
			if kafka != freshet {
				results.add(version, difference{name, theirs[i].name, field, kafka, freshet})
			}
		}
	}
}

// hidden reports whether a field lies in a row that only one broker has. The list's length
// shows that difference already.
func hidden(field string, fields []string, a, b answer) bool {
	at := strings.LastIndexByte(field, ']')
	if at < 0 {
		return false
	}
	row := field[:at+1]
	inA, inB := false, false
	for _, other := range fields {
		if strings.HasPrefix(other, row) {
			_, one := a[other]
			_, two := b[other]
			inA, inB = inA || one, inB || two
		}
	}
	return inA != inB
}

// allowance is a difference that a decision explains. Patterns are those of path.Match, with
// * for brackets too; an empty pattern matches everything.
type allowance struct {
	conversation, step, field string
	kafka, freshet            string
	why                       string // decision of docs/spec/stream.md#decisions, or a sentence
}

func (a *allowance) explains(d *difference) bool {
	return matches(a.conversation, d.conversation) && matches(a.step, d.step) && matches(a.field, d.field) &&
		matches(a.kafka, d.kafka) && matches(a.freshet, d.freshet)
}

// matches reports whether a text matches a pattern in which * stands for any text.
func matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	plain := strings.NewReplacer("[", "(", "]", ")", "/", "|", "\\", "|")
	ok, err := path.Match(plain.Replace(pattern), plain.Replace(text))
	return ok && err == nil
}

// report fails the test for every difference that no row of the table explains, and for every
// row that explains none.
func report(t *testing.T, results *found, complete bool) {
	t.Helper()
	used := make([]bool, len(allowed))
	var lines []string
	for d, versions := range results.all {
		at := slices.IndexFunc(allowed, func(a allowance) bool { return a.explains(&d) })
		if at >= 0 {
			used[at] = true
			continue
		}
		slices.Sort(versions)
		lines = append(lines, fmt.Sprintf("%s, %s, versions %v: %s: Kafka %q, freshet %q", d.conversation, d.step,
			versions, d.field, d.kafka, d.freshet))
	}
	slices.Sort(lines)
	for _, line := range lines {
		t.Error(line)
	}
	for i := range used {
		if !used[i] && complete {
			t.Errorf("row %+v of the table of allowed differences explains none; remove it", allowed[i])
		}
	}
}
