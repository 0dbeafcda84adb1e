package ensemblecmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// stream is a stream of the message log.
type stream struct {
	Name     string    `json:"name"`
	Cluster  string    `json:"cluster,omitempty"`
	Part     string    `json:"part"`
	Want     int       `json:"want"`
	Leader   string    `json:"leader"`
	Replicas []replica `json:"replicas"`
	Problem  string    `json:"problem,omitempty"`
}

// replica is a member's replica of a stream.
type replica struct {
	Member  string     `json:"member"`
	Current bool       `json:"current"`
	Lag     uint64     `json:"lag"`
	Since   *time.Time `json:"since,omitempty"`
	Problem string     `json:"problem,omitempty"`
}

// part is a part of a member's files.
type part struct {
	Name     string     `json:"name"`
	Verified *time.Time `json:"verified,omitempty"`
	Damaged  *time.Time `json:"damaged,omitempty"`
	Healed   *time.Time `json:"healed,omitempty"`
	Damages  int        `json:"damages,omitempty"`
	File     string     `json:"file,omitempty"`
	Problem  string     `json:"problem,omitempty"`
	Compared *time.Time `json:"compared,omitempty"`
	Differs  string     `json:"differs,omitempty"`
}

// good reports whether the stream has a majority and all its replicas, and their number that are
// current.
func (s *stream) good() (good bool, current int) {
	good = s.Problem == ""
	for _, r := range s.Replicas {
		good = good && r.Problem == ""
		if r.Current {
			current++
		}
	}
	return good, current
}

// describe returns the problem of a stream and of its replicas.
func (s *stream) describe() string {
	var texts []string
	if s.Problem != "" {
		texts = append(texts, s.Problem)
	}
	for _, r := range s.Replicas {
		if r.Problem == "" {
			continue
		}
		text := r.Member + ": " + r.Problem
		if r.Since != nil {
			text += " (for " + output.Age(time.Since(*r.Since)) + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// printReplicas prints the streams and parts that are not good, or all of them, and one line about
// the rest. It reports whether something is wrong.
func (g *ensembleStatus) printReplicas(env *command.Env, all bool) (degraded bool, err error) {
	if g.Observed == nil {
		return false, nil // the server has just started, or is older
	}
	streams := output.Table{Columns: output.Columns("Cluster", "Stream", "Leader", "Current", "Lag", "Problem")}
	good := 0
	for i := range g.Streams {
		s := &g.Streams[i]
		isGood, current := s.good()
		if isGood {
			good++
		}
		if isGood && !all {
			continue
		}
		lag := uint64(0)
		for _, r := range s.Replicas {
			lag = max(lag, r.Lag)
		}
		streams.Rows = append(streams.Rows, []string{
			s.Cluster, s.Part, s.Leader, fmt.Sprintf("%d of %d", current, s.Want), fmt.Sprint(lag),
			output.Clean(s.describe()),
		})
	}
	parts, damaged, verified := g.parts(all)
	failing, err := g.printFailing(env)
	if err != nil {
		return false, err
	}
	for _, table := range []*output.Table{&streams, &parts} {
		if len(table.Rows) == 0 {
			continue
		}
		if err := env.Println(""); err != nil {
			return false, err
		}
		if err := table.Write(env.Out); err != nil {
			return false, err
		}
	}
	degraded = good < len(g.Streams) || damaged > 0 || failing
	return degraded, env.Println("\n" + g.summary(good, damaged, verified))
}

// printFailing prints the clusters that a member cannot serve, and reports whether there are any.
func (g *ensembleStatus) printFailing(env *command.Env) (failing bool, err error) {
	for _, m := range g.Members {
		for _, cluster := range slices.Sorted(maps.Keys(m.Failing)) {
			failing = true
			if _, err := fmt.Fprintf(env.Out, "Problem: cluster %s on member %s: %s\n", cluster, m.Name,
				output.Clean(m.Failing[cluster])); err != nil {
				return failing, err
			}
		}
	}
	return failing, nil
}

// parts returns the table of damaged parts and of copies that differ, or of all parts, the number of damaged
// ones, and when the part was verified that was verified longest ago.
func (g *ensembleStatus) parts(all bool) (table output.Table, damaged int, verified *time.Time) {
	table.Columns = output.Columns("Member", "Part", "Verified", "Compared", "Damaged", "Problem")
	age := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return output.Age(time.Since(*t))
	}
	for _, m := range g.Members {
		for _, p := range m.Parts {
			if p.Verified != nil && (verified == nil || p.Verified.Before(*verified)) {
				verified = p.Verified
			}
			problem := p.Differs
			if p.Damaged != nil {
				damaged++
				problem = strings.TrimPrefix(p.File+": "+p.Problem, ": ")
			}
			if all || problem != "" {
				table.Rows = append(table.Rows,
					[]string{m.Name, p.Name, age(p.Verified), age(p.Compared), age(p.Damaged), output.Clean(problem)})
			}
		}
	}
	return table, damaged, verified
}

// summary returns one line about all streams and parts.
func (g *ensembleStatus) summary(good, damaged int, verified *time.Time) string {
	var b strings.Builder
	want := 0
	for _, s := range g.Streams {
		want = max(want, s.Want)
	}
	if good == len(g.Streams) {
		fmt.Fprintf(&b, "All %d streams have %d current replicas", good, want)
	} else {
		fmt.Fprintf(&b, "%d of %d streams have all %d replicas", good, len(g.Streams), want)
	}
	if damaged > 0 {
		fmt.Fprintf(&b, "; %d parts are damaged, and their members fetch good copies", damaged)
	}
	if verified != nil {
		fmt.Fprintf(&b, "; all files were last verified %s ago", output.Age(time.Since(*verified)))
	}
	kept := int64(0)
	for _, m := range g.Members {
		kept += m.QuarantineBytes
	}
	if kept > 0 {
		fmt.Fprintf(&b, "; %s of damaged files are kept for a day", output.Bytes(kept, 3))
	}
	return b.String() + "."
}
