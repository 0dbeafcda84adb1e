package history

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkNames checks that the calls on each name are linearizable: some order in which
// every call takes effect at one moment between its start and its end explains all
// responses.
func checkNames(r *Report, ops []*Op) {
	byName := map[string][]porcupine.Operation{}
	clients := map[string]int{}
	for _, o := range ops {
		if o.Outcome == Unknown && o.Kind == Lookup {
			continue // carries no information
		}
		if _, ok := clients[o.Client]; !ok {
			clients[o.Client] = len(clients)
		}
		end := int64(o.End)
		if o.Outcome == Unknown {
			end = math.MaxInt64 // may take effect at any later time
		}
		byName[o.Object] = append(byName[o.Object], porcupine.Operation{
			ClientId: clients[o.Client], Input: o.Kind, Output: o, Call: int64(o.Start), Return: end,
		})
	}
	model := existence.ToModel()
	for _, name := range sortedKeys(byName) {
		switch porcupine.CheckOperationsTimeout(model, byName[name], 10*time.Second) {
		case porcupine.Ok:
		case porcupine.Unknown:
			r.add(Wrong, "responses about names can be checked", "%s: %d calls take too long to check", name,
				len(byName[name]))
		default:
			text := ""
			for _, call := range byName[name] {
				text += fmt.Sprintf("\n    %v", call.Output)
			}
			r.add(Wrong, "calls on a name are linearizable", "%s:%s", name, text)
		}
	}
}

// existence is the model of a name: an object with the name exists or not.
var existence = &porcupine.NondeterministicModel{
	Init: func() []any { return []any{false} },
	Step: func(state, input, output any) []any {
		exists, kind, outcome := state.(bool), input.(Kind), output.(*Op).Outcome
		after := kind == Create
		switch {
		case outcome == Unknown:
			return []any{exists, after}
		case kind == Lookup && (outcome == OK) == exists:
			return []any{exists}
		case kind == Lookup:
			return nil
		case outcome == Refused && exists == after: // already exists, already deleted
			return []any{exists}
		case outcome == OK && exists != after:
			return []any{after}
		}
		return nil
	},
}

// checkSchemas checks that an id belongs to one schema from the first response that
// contains it.
func checkSchemas(r *Report, ops []*Op) {
	known := map[string]*Op{} // id: the first response that contains it
	ids := map[string]string{}
	for _, o := range ops {
		if o.Outcome != OK {
			continue
		}
		first := known[o.ID]
		if first == nil {
			known[o.ID] = o
		} else if first.Value != o.Value {
			r.add(Wrong, "an id belongs to one schema", "%s, after %s", o, first)
		}
		if id, ok := ids[o.Value]; ok && id != o.ID && o.Kind == Register {
			r.add(Duplicated, "a schema has one id", "%s, which has id %s", o, id)
		}
		if o.Kind == Register {
			ids[o.Value] = o.ID
		}
	}
	for _, o := range ops {
		if first := known[o.ID]; o.Kind == Read && o.Outcome == Refused && first != nil && o.Start > first.End {
			r.add(Lost, "a schema that has an id can be read", "%s, after %s", o, first)
		}
	}
}

// checkKeys checks that a key works from its issue to its revocation, and not afterwards.
func checkKeys(r *Report, ops []*Op) {
	issued, revoking, revoked := map[string]*Op{}, map[string]time.Duration{}, map[string]*Op{}
	for _, o := range ops {
		switch {
		case o.Kind == Issue && o.Outcome == OK && issued[o.Object] == nil:
			issued[o.Object] = o
		case o.Kind == Revoke:
			if at, ok := revoking[o.Object]; !ok || o.Start < at {
				revoking[o.Object] = o.Start
			}
			if o.Outcome == OK && revoked[o.Object] == nil {
				revoked[o.Object] = o
			}
		}
	}
	for _, o := range ops {
		if o.Kind != Use {
			continue
		}
		if end := revoked[o.Object]; o.Outcome == OK && end != nil && o.Start > end.End {
			r.add(Wrong, "no key works after its revocation has returned", "%s, after %s", o, end)
		}
		begin, ending := issued[o.Object], revoking[o.Object]
		if o.Outcome == Refused && begin != nil && o.Start > begin.End && (ending == 0 || o.End < ending) {
			r.add(Wrong, "a key works until it is revoked", "%s, after %s", o, begin)
		}
	}
}

// checkPositions checks that a consumer group's position is at least the highest one
// committed before it was read, and at most the highest one whose commit had begun.
func checkPositions(r *Report, ops []*Op) {
	commits := map[string][]*Op{}
	for _, o := range ops {
		if o.Kind == Commit {
			commits[o.Object] = append(commits[o.Object], o)
		}
	}
	for _, o := range ops {
		if o.Kind != Position || o.Outcome != OK {
			continue
		}
		lowest, highest := 0, 0
		for _, c := range commits[o.Object] {
			value := number(c.Value)
			if c.Outcome == OK && c.End < o.Start {
				lowest = max(lowest, value)
			}
			if c.Start < o.End {
				highest = max(highest, value)
			}
		}
		switch got := number(o.Value); {
		case got < lowest:
			r.add(Lost, "a group's position is the last committed one", "%s, but %d was committed before", o, lowest)
		case got > highest:
			r.add(Wrong, "a group's position was committed",
				"%s, but %d is the highest committed one", o, highest)
		}
	}
}

// number parses the value of a position; an invalid value is -1, lower than every position.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}
