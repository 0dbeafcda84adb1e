package groups

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// Topics provides the information about topics that the coordinator needs to assign partitions.
// Each heartbeat passes one, which returns only topics that the calling member may consume.
// Partitions and Revision are called with a group's mutex held and must not block.
type Topics interface {
	// Revision changes whenever a topic of the cluster is created, deleted or gets more partitions.
	// It may change at other times too.
	Revision() uint64
	// Partitions returns the number of partitions of a topic, or 0 when it does not exist.
	Partitions(topic engine.TopicID) int32
	// Resolve returns the topics with these names, as the member uses them, and the topics whose
	// name matches pattern unless it is nil.
	Resolve(names []string, pattern *regexp.Regexp) (Resolved, error)
}

// Resolved are the topics of a subscription.
type Resolved struct {
	Topics []engine.TopicID // those that exist and that the member may consume
	Reads  []names.Topic    // all that the subscription names, and those that match the pattern
}

// resolveInterval is the interval after which a member's subscription is resolved again even if no topic
// has changed, because the member's permissions may have changed.
const resolveInterval = time.Minute

// subscription is what a member subscribes to.
type subscription struct {
	names   []string
	pattern string         // "" for none
	matcher *regexp.Regexp // compiled pattern, which must match the whole name
}

func (s *subscription) equal(other *subscription) bool {
	return s.pattern == other.pattern && slices.Equal(s.names, other.names)
}

// compile compiles a pattern in RE2 syntax.
func compile(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil //nolint:nilnil // no pattern matches nothing
	}
	if len(pattern) > maxPatternBytes {
		return nil, fmt.Errorf("%w: pattern has %d bytes, at most %d are allowed", ErrPattern, len(pattern),
			maxPatternBytes)
	}
	// Parse the pattern on its own first, so that unbalanced parentheses cannot close the added
	// group. A few bytes can compile to a program of megabytes, so its size is checked too.
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPattern, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPattern, err)
	}
	if len(program.Inst) > maxPatternInstructions {
		return nil, fmt.Errorf("%w: pattern is too complex; use fewer repetitions", ErrPattern)
	}
	whole, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPattern, err)
	}
	return whole, nil
}

// resolution is the result of resolving a subscription.
type resolution struct {
	subscription subscription
	topics       []engine.TopicID // sorted
	reads        []names.Topic    // see Resolved
	revision     uint64
	resolvedAt   time.Time
}

// SortedTopics returns topics in order and without duplicates.
func SortedTopics(topics []names.Topic) []names.Topic {
	sorted := slices.Clone(topics)
	slices.SortFunc(sorted, func(a, b names.Topic) int {
		return cmp.Or(cmp.Compare(a.Namespace.Tenant, b.Namespace.Tenant),
			cmp.Compare(a.Namespace.Name, b.Namespace.Name), cmp.Compare(a.Local, b.Local))
	})
	return slices.Compact(sorted)
}

// resolve resolves the topics of a subscription. It may block.
func resolve(topics Topics, of subscription) (*resolution, error) {
	r := &resolution{subscription: of, revision: topics.Revision(), resolvedAt: time.Now()}
	found, err := topics.Resolve(of.names, of.matcher)
	if err != nil {
		return nil, fmt.Errorf("resolving the topics of a subscription: %w", err)
	}
	r.topics, r.reads = slices.Clone(found.Topics), SortedTopics(found.Reads)
	slices.Sort(r.topics)
	r.topics = slices.Compact(r.topics)
	return r, nil
}
