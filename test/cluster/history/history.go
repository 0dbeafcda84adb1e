package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Kind is what a client asked for.
type Kind string

// Kinds of operations. Thing is what they are about.
const (
	// Produce stores Value on the topic Thing and gets ID.
	Produce Kind = "produce"
	// Receive gets the message ID with Value from the Subscription of the topic.
	// A call without an answer is one Unknown operation with the Max that it may
	// have taken; a call that gets several messages is several operations.
	Receive Kind = "receive"
	// Ack acknowledges the message ID on the Subscription of the topic.
	Ack Kind = "acknowledge"
	// Create, Delete and Look make, remove and look for something with a name.
	// Refused is "it is there already" of Create, "it is not there" of the others.
	Create Kind = "create"
	Delete Kind = "delete"
	Look   Kind = "look"
	// Register gives the schema Value of the subject Thing its ID; Read gets the
	// Value of an ID. Refused is "there is no such id".
	Register Kind = "register"
	Read     Kind = "read"
	// Issue makes the key Thing, Use is a call with it, Revoke ends it. Refused is
	// "this key is not good".
	Issue  Kind = "issue"
	Use    Kind = "use"
	Revoke Kind = "revoke"
	// Commit writes the number Value as the position of the group Thing, Position
	// reads it. Of each group one client alone commits, ever higher numbers.
	Commit   Kind = "commit"
	Position Kind = "position"
	// Finish looks at Thing when all is over: OK is whole and usable, all else is
	// half made.
	Finish Kind = "finish"
)

// Outcome is what a client was told.
type Outcome string

// Outcomes.
const (
	// OK: it was done.
	OK Outcome = "ok"
	// Refused: it was not done, for the reason that the Kind names.
	Refused Outcome = "refused"
	// Unknown: nobody can tell, the connection broke or the server had an error.
	Unknown Outcome = "unknown"
	// Absurd: an answer that is neither right nor an honest error, such as that a
	// topic is not there which is.
	Absurd Outcome = "absurd"
)

// Op is one operation of a client.
type Op struct {
	Kind    Kind    `json:"kind"`
	Outcome Outcome `json:"outcome"`
	// Start is when the call began and End when the answer was there, both since
	// the recorder was made.
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
	// Client is who called, Member whom.
	Client string `json:"client"`
	Member string `json:"member,omitempty"`

	Thing        string `json:"thing"`
	Subscription string `json:"subscription,omitempty"`
	Value        string `json:"value,omitempty"`
	ID           string `json:"id,omitempty"`
	Max          int    `json:"max,omitempty"`
	// Origin is where the content of a received message says that it was produced to:
	// a topic, or a topic, a slash and a partition. It is empty if the content does not
	// say so.
	Origin string `json:"origin,omitempty"`
	// Damaged is set on a received message whose checksum is wrong.
	Damaged bool   `json:"damaged,omitempty"`
	Note    string `json:"note,omitempty"`
}

// String is the operation for people.
func (o *Op) String() string {
	text := fmt.Sprintf("%s..%s %s: %s %s", o.Start.Round(time.Millisecond), o.End.Round(time.Millisecond), o.Client,
		o.Kind, o.Thing)
	for _, part := range []string{o.Subscription, o.ID, o.Value} {
		if part != "" {
			text += " " + part
		}
	}
	if o.Origin != "" {
		text += " of " + o.Origin
	}
	if o.Member != "" {
		text += " at " + o.Member
	}
	text += " = " + string(o.Outcome)
	if o.Note != "" {
		text += " (" + o.Note + ")"
	}
	return text
}

// Recorder collects operations.
type Recorder struct {
	begin time.Time
	mu    sync.Mutex
	ops   []Op
}

// New returns a Recorder whose clock begins now.
func New() *Recorder { return &Recorder{begin: time.Now()} }

// Now is the time since the recorder was made.
func (r *Recorder) Now() time.Duration { return time.Since(r.begin) }

// Add records an operation that began at start and ends now.
func (r *Recorder) Add(start time.Duration, ops ...Op) {
	end := r.Now()
	for i := range ops {
		ops[i].Start, ops[i].End = start, end
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, ops...)
}

// Len is how many operations there are.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ops)
}

// Ops are the operations so far.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

// Write writes operations as lines of JSON, to be looked at after a failure.
func Write(w io.Writer, ops []Op) error {
	buffered := bufio.NewWriter(w)
	lines := json.NewEncoder(buffered)
	for i := range ops {
		if err := lines.Encode(&ops[i]); err != nil {
			return fmt.Errorf("writing the history: %w", err)
		}
	}
	return buffered.Flush()
}
