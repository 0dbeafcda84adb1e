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

// Kind is the kind of an operation.
type Kind string

// Kinds of operations. Object is the object that they act on.
const (
	// Produce stores Value in the topic Object and returns ID.
	Produce Kind = "produce"
	// Receive returns the message ID with Value from the Subscription of the topic. A
	// call without a response is one Unknown operation with the Max of messages that it
	// may have leased; a call that returns several messages is several operations.
	Receive Kind = "receive"
	// Ack acknowledges the message ID on the Subscription of the topic.
	Ack Kind = "acknowledge"
	// Create, Delete and Lookup create, delete and look up an object by name. Refused
	// means "already exists" for Create and "does not exist" for the others.
	Create Kind = "create"
	Delete Kind = "delete"
	Lookup Kind = "look"
	// Register registers the schema Value under the subject Object and returns its ID;
	// Read returns the Value of an ID. Refused means "no such id".
	Register Kind = "register"
	Read     Kind = "read"
	// Issue creates the key Object, Use is a call with it, Revoke revokes it. Refused
	// means "invalid key".
	Issue  Kind = "issue"
	Use    Kind = "use"
	Revoke Kind = "revoke"
	// Commit stores the number Value as the position of the consumer group Object,
	// Position reads it. A single client commits for each group, with increasing numbers.
	Commit   Kind = "commit"
	Position Kind = "position"
	// Finish checks Object at the end of the run: OK means complete and usable, every
	// other outcome incomplete.
	Finish Kind = "finish"
)

// Outcome is the result of an operation as the client saw it.
type Outcome string

// Outcomes.
const (
	// OK means that the operation was done.
	OK Outcome = "ok"
	// Refused means that the operation was not done, for the reason that the Kind names.
	Refused Outcome = "refused"
	// Unknown means that the connection broke or the server returned an error.
	Unknown Outcome = "unknown"
	// Unexpected means that the response is neither correct nor an error, for example
	// "does not exist" for a topic that exists.
	Unexpected Outcome = "absurd"
)

// Op is one operation of a client.
type Op struct {
	Kind    Kind    `json:"kind"`
	Outcome Outcome `json:"outcome"`
	// Start is the time of the call and End that of its response, both since the
	// recorder was created.
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
	// Client is the caller, Member the member that it called.
	Client string `json:"client"`
	Member string `json:"member,omitempty"`

	Object       string `json:"thing"`
	Subscription string `json:"subscription,omitempty"`
	Value        string `json:"value,omitempty"`
	ID           string `json:"id,omitempty"`
	Max          int    `json:"max,omitempty"`
	// Origin is the topic that the content of a received message names, followed by a
	// slash and the partition if it names one. It is empty if the content names none.
	Origin string `json:"origin,omitempty"`
	// Damaged is set on a received message whose checksum is wrong.
	Damaged bool   `json:"damaged,omitempty"`
	Note    string `json:"note,omitempty"`
}

// String returns the operation in one line.
func (o *Op) String() string {
	text := fmt.Sprintf("%s..%s %s: %s %s", o.Start.Round(time.Millisecond), o.End.Round(time.Millisecond), o.Client,
		o.Kind, o.Object)
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

// Branch returns an empty Recorder with the same clock.
func (r *Recorder) Branch() *Recorder { return &Recorder{begin: r.begin} }

// Now returns the time since the recorder was created.
func (r *Recorder) Now() time.Duration { return time.Since(r.begin) }

// Add records operations that began at start and end now.
func (r *Recorder) Add(start time.Duration, ops ...Op) {
	end := r.Now()
	for i := range ops {
		ops[i].Start, ops[i].End = start, end
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, ops...)
}

// Len returns the number of operations.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ops)
}

// Ops returns a copy of the operations so far.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

// Write writes operations as lines of JSON, for the analysis of a failure.
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
