// Package damage damages files of the members of a running ensemble, one class of files and one
// operation after another (package spoil), and checks that nothing is lost: the member heals without
// a person, or refuses to start with the file's name and a command, which the harness then executes.
//
// A Runner keeps one ensemble (package chaos) under the light load of clients whose data stays
// (load.Kept) for many cases, and starts a new one only when a case has failed. A case is
//
//  1. damage of a running member, for a case of that kind
//  2. stop of the member, with SIGKILL or SIGTERM
//  3. a full check with the two other members, one of which had the damage of the previous case: what
//     looked healed has to carry the ensemble. A failure counts for the previous case.
//  4. damage of the stopped member, for a case of that kind
//  5. start, until every member reports that everything is well
//  6. a full check of every acknowledged message, schema, API key and committed offset
//
// The members rotate. Times and outages are reported and never decide whether a case passes.
//
//   - case.go: the cases. runner.go: their execution. watch.go: what a damaged member reports.
//   - result.go: the table of results. images.go: crash images. together.go: several faults at once.
package damage

import (
	"hash/fnv"
	"math/rand/v2"
	"regexp"

	"freshet/test/ensemble/spoil"
)

// When is the state of the member whose file is damaged.
type When string

// States.
const (
	Stopped When = "stopped"
	Running When = "running"
)

// Case is one damage.
type Case struct {
	Class     spoil.Class
	Operation spoil.Operation
	When      When
}

// Name identifies the case in reports and in DAMAGE_RUN.
func (c Case) Name() string { return c.Class.Name + "/" + string(c.Operation) + "/" + string(c.When) }

// random returns the random generator of a case. It does not depend on the cases before it, so that
// a case can be repeated alone.
func (c Case) random(seed uint64) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(c.Name())) // never fails
	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}

// Cases returns all cases whose names match.
func Cases(match *regexp.Regexp) []Case {
	var cases []Case
	for _, class := range spoil.Classes() {
		for _, operation := range spoil.Operations() {
			for _, when := range []When{Stopped, Running} {
				if c := (Case{class, operation, when}); match == nil || match.MatchString(c.Name()) {
					cases = append(cases, c)
				}
			}
		}
	}
	return cases
}

// RandomCase returns a random case.
func RandomCase(random *rand.Rand) Case {
	all := Cases(nil)
	return all[random.IntN(len(all))]
}
