package schemas

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// registryCall is the input of an operation in the porcupine model.
type registryCall struct {
	op      string // register, delete, versions
	subject string
	content string
	version int32
}

type registryReply struct {
	registered Registered
	versions   string
	err        error
}

// sequential is the state of a registry that executes one operation at a time:
// contents by subject, and ids in the order of the first registrations.
type sequential struct {
	ids      map[string]int32
	versions map[string]string // by subject: "content+" for an active, "content-" for a deleted version, in order
}

func (s sequential) clone() sequential {
	return sequential{ids: maps.Clone(s.ids), versions: maps.Clone(s.versions)}
}

func (s sequential) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.versions)) {
		fmt.Fprintf(&b, "%s=%s;", k, s.versions[k])
	}
	for _, k := range slices.Sorted(maps.Keys(s.ids)) {
		fmt.Fprintf(&b, "%s=%d;", k, s.ids[k])
	}
	return b.String()
}

var sequentialModel = porcupine.Model{
	Init: func() any {
		return sequential{ids: map[string]int32{}, versions: map[string]string{}}
	},
	Equal: func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(sequential), input.(registryCall), output.(registryReply)
		switch in.op {
		case "register":
			want, next := s.register(in.subject, in.content)
			want.New = out.registered.New // the model does not check New
			return out.err == nil && out.registered == want, next
		case "delete":
			ok, next := s.delete(in.subject, in.version)
			return ok == (out.err == nil), next
		default:
			want := s.active(in.subject)
			return want == out.versions, s
		}
	},
}

func (s sequential) register(subject, content string) (Registered, sequential) {
	versions := s.versions[subject]
	for i := len(versions) - 2; i >= 0; i -= 2 {
		if versions[i:i+2] == content+"+" {
			return Registered{ID: s.ids[content], Version: int32(i/2 + 1)}, s
		}
	}
	s = s.clone()
	if s.ids[content] == 0 {
		s.ids[content] = int32(len(s.ids) + 1)
	}
	s.versions[subject] = versions + content + "+"
	return Registered{ID: s.ids[content], Version: int32(len(versions)/2 + 1)}, s
}

func (s sequential) delete(subject string, version int32) (bool, sequential) {
	versions := []byte(s.versions[subject])
	at := int(2*version - 1)
	if at >= len(versions) || versions[at] == '-' {
		return false, s
	}
	s = s.clone()
	versions[at] = '-'
	s.versions[subject] = string(versions)
	return true, s
}

func (s sequential) active(subject string) string {
	var numbers []int32
	for i := 0; i < len(s.versions[subject]); i += 2 {
		if s.versions[subject][i+1] == '+' {
			numbers = append(numbers, int32(i/2+1))
		}
	}
	return fmt.Sprint(numbers)
}

// Clients of two replicas concurrently register the same few schemas in the same
// few subjects. The history must be linearizable.
func TestRegistrationIsLinearizable(t *testing.T) {
	t.Parallel()
	for round := range uint64(4) {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			t.Parallel()
			j := openJournal(t)
			replicas := []*Registry{openRegistry(t, j), openRegistry(t, j)}
			for _, subject := range []string{"a", "b"} {
				if err := replicas[0].SetLevel(t.Context(), subject, None); err != nil {
					t.Fatal(err)
				}
			}
			history := &history{started: time.Now()}
			var wg sync.WaitGroup
			for client := range 6 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(round, uint64(client)))
					for range 25 {
						history.do(t, client, replicas[rng.IntN(2)], randomCall(rng))
					}
				})
			}
			wg.Wait()
			result := porcupine.CheckOperationsTimeout(sequentialModel, history.operations, 30*time.Second)
			if result != porcupine.Ok {
				t.Fatalf("history of %d calls: got the result %s, want %s", len(history.operations), result,
					porcupine.Ok)
			}
		})
	}
}

func randomCall(rng *rand.Rand) registryCall {
	c := registryCall{
		op:      "register",
		subject: []string{"a", "b"}[rng.IntN(2)],
		content: []string{"p", "q", "r", "s"}[rng.IntN(4)],
		version: int32(1 + rng.IntN(5)),
	}
	switch n := rng.IntN(10); {
	case n < 2:
		c.op = "delete"
	case n < 4:
		c.op = "versions"
	}
	return c
}

type history struct {
	started    time.Time
	mu         sync.Mutex
	operations []porcupine.Operation
}

func (h *history) do(t *testing.T, client int, r *Registry, c registryCall) {
	var out registryReply
	start := time.Since(h.started).Nanoseconds()
	switch c.op {
	case "register":
		out.registered, out.err = r.Register(t.Context(), c.subject,
			&Draft{Type: Avro, Text: avroRecord("R", c.content)})
	case "delete":
		_, out.err = r.DeleteVersion(t.Context(), c.subject, VersionID(c.version), false)
	default:
		numbers, err := r.Versions(t.Context(), c.subject, Active)
		if err != nil && !errors.Is(err, ErrSubjectNotFound) {
			t.Error(err)
		}
		out.versions = fmt.Sprint(numbers)
	}
	end := time.Since(h.started).Nanoseconds()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations,
		porcupine.Operation{ClientId: client, Input: c, Call: start, Output: out, Return: end})
}

// All writers of one schema get the same id and version.
func TestWritersOfOneSchemaGetOneVersion(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	replicas := []*Registry{openRegistry(t, j), openRegistry(t, j), openRegistry(t, j)}
	for round := range 20 {
		text := avroRecord("R", "f?", fmt.Sprintf("g%d?", round))
		got := make([]Registered, 24)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = replicas[i%3].Register(t.Context(), "s", &Draft{Type: Avro, Text: text}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, g := range got {
			g.New = false
			if want := (Registered{ID: int32(round + 1), Version: int32(round + 1)}); g != want {
				t.Fatalf("round %d: got %+v, want %+v", round, g, want)
			}
		}
	}
}

// When writers concurrently register different schemas for one subject, each schema
// is checked against the version that precedes it, and no version is lost.
func TestWritersOfOneSubjectAreCheckedInOrder(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	replicas := []*Registry{openRegistry(t, j), openRegistry(t, j)}
	mustRegister(t, replicas[0], "s", avroRecord("R", "f"))
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 16 {
		wg.Go(func() {
			// A new field without a default is compatible only with a version that has the field.
			_, err := replicas[i%2].Register(t.Context(), "s",
				&Draft{Type: Avro, Text: avroRecord("R", "f", fmt.Sprintf("g%d?", i))})
			if err != nil {
				t.Error(err)
			}
			_, err = replicas[i%2].Register(t.Context(), "s",
				&Draft{Type: Avro, Text: avroRecord("R", "f", fmt.Sprintf("g%d", i))})
			if err != nil && !errors.Is(err, ErrIncompatible) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	numbers, err := replicas[1].Versions(t.Context(), "s", Active)
	if err != nil || len(numbers) != 1+16+won {
		t.Fatalf("got %d versions, %v, want %d", len(numbers), err, 1+16+won)
	}
	st := replicas[1].machine.View()
	sub, _ := st.subjects.Get("s")
	for i := 1; i < len(sub.versions); i++ {
		before, after := sub.versions[i-1].schema.Text(), sub.versions[i].schema.Text()
		d, err := replicas[1].Diff(t.Context(), DiffOperand{Subject: "s", Version: VersionID(i)},
			DiffOperand{Subject: "s", Version: VersionID(i + 1)})
		if err != nil || !d.Backward.Compatible {
			t.Errorf("version %d cannot read its predecessor: %v\n%s\n%s", i+1, err, before, after)
		}
	}
}
