package groups

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"time"

	"freshet/internal/storage/engine"
)

// Topics is what the coordinator has to know of topics to assign their
// partitions. Each heartbeat brings one, and what it finds is what the member
// that calls may know of. Partitions and Revision are called with a group's mutex
// held and must not wait.
type Topics interface {
	// Revision changes whenever a topic of the cluster comes, goes or gets more
	// partitions. It may change without that.
	Revision() uint64
	// Partitions returns how many partitions an incarnation has, 0 when it is gone.
	Partitions(topic engine.TopicID) int32
	// Resolve returns the topics with these names, as the member says them, and
	// those with a name that pattern matches, unless it is nil. Those that do not
	// exist, or that the member may not describe, are left out.
	Resolve(names []string, pattern *regexp.Regexp) ([]engine.TopicID, error)
}

// refresh is how often a member's subscription is resolved again even if no topic
// has changed: what it may describe can change too.
const refresh = time.Minute

// subscription is what a member wants to consume.
type subscription struct {
	names   []string
	pattern string         // "" for none
	matcher *regexp.Regexp // of pattern, which has to match a whole name
}

func (s *subscription) equal(other *subscription) bool {
	return s.pattern == other.pattern && slices.Equal(s.names, other.names)
}

// compile reads a pattern in RE2 syntax.
func compile(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil //nolint:nilnil // no pattern matches nothing
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrPattern, len(pattern), maxPattern)
	}
	// By itself first: parentheses that do not match must not close ours. A few
	// bytes can stand for a program of megabytes.
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPattern, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPattern, err)
	}
	if len(program.Inst) > maxPatternSteps {
		return nil, fmt.Errorf("%w: it is too complex; use fewer repetitions", ErrPattern)
	}
	whole, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPattern, err)
	}
	return whole, nil
}

// resolution is the topics that a subscription stands for.
type resolution struct {
	of       subscription
	topics   []engine.TopicID // in order
	revision uint64
	at       time.Time
}

// resolve finds the topics of a subscription. It may wait.
func resolve(topics Topics, of subscription) (*resolution, error) {
	r := &resolution{of: of, revision: topics.Revision(), at: time.Now()}
	found, err := topics.Resolve(of.names, of.matcher)
	if err != nil {
		return nil, fmt.Errorf("finding the topics of a subscription: %w", err)
	}
	r.topics = slices.Clone(found)
	slices.Sort(r.topics)
	r.topics = slices.Compact(r.topics)
	return r, nil
}
