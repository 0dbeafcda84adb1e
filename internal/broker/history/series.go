package history

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"freshet/internal/base/errs"
)

// Kind is what a series is about.
type Kind uint8

// The kinds.
const (
	Cluster Kind = iota
	Topic
	Subscription
	Group
	kinds
)

// columnsOf are the values that a series of each kind has.
var columnsOf = [kinds][]int{
	Cluster:      {valueIn, valueOut, valueErrors, valueBacklog, valueStored},
	Topic:        {valueIn, valueOut, valueErrors, valueBacklog, valueStored},
	Subscription: {valueOut, valueErrors, valueBacklog, valueStored},
	Group:        {valueOut, valueBacklog},
}

// Key identifies a series.
type Key struct {
	Kind    Kind   `json:"kind"`
	Cluster string `json:"cluster"`          // uid
	Topic   uint64 `json:"topic,omitempty"`  // of a topic or subscription; never reused
	Tenant  string `json:"tenant,omitempty"` // of a group
	Name    string `json:"name,omitempty"`   // of a subscription or group
}

// series is the history of one key.
type series struct {
	rings  [len(resolutions)]ring
	score  float64 // recent activity per second; a busier candidate replaces a series with a low score
	before counters
}

// counters are the counters at the last sample of a series.
type counters struct {
	at              time.Time // zero: there was no sample since the start
	in, out, errors int64
	redelivered     int64  // of a subscription, when its topic was described last
	backlog         uint64 // of the topic of a subscription, to notice changes
	kept            sample // of a subscription or group: the values that were measured last
}

func newSeries(kind Kind) *series {
	s := &series{}
	for i := range s.rings {
		s.rings[i].Values = make([]float32, resolutions[i].points*len(columnsOf[kind]))
		for j := range s.rings[i].Values {
			s.rings[i].Values[j] = unknown
		}
	}
	s.before.kept = unknownSample()
	return s
}

// add adds a sample that ends at a time.
func (s *series) add(kind Kind, at time.Time, v *sample) {
	for i := range s.rings {
		s.rings[i].add(lastPoint(at, resolutions[i].step), columnsOf[kind], v)
	}
}

// lastPoint returns the number of the point with the last complete sample at a time.
func lastPoint(at time.Time, step time.Duration) int64 {
	end := at.Add(sampleEvery/2).UnixNano() / int64(sampleEvery) // samples are taken at multiples of sampleEvery
	return (end - 1) * int64(sampleEvery) / int64(step)
}

// newest returns the number of the newest point of the longest range.
func (s *series) newest() int64 { return s.rings[len(s.rings)-1].Last }

// Range is a range of the history.
type Range string

// DefaultRange is the range when a query has none.
const DefaultRange Range = "1h"

// ErrRange is returned for a range that the history does not have.
var ErrRange = errs.New(errs.Invalid, "range of the history must be 15m, 1h or 24h")

// index returns the index of a range in resolutions, or -1.
func (r Range) index() int {
	for i := range resolutions {
		if resolutions[i].name == r {
			return i
		}
	}
	return -1
}

// Query asks for the history of one key up to a time.
type Query struct {
	Key
	Range Range     `json:"range"`
	Until time.Time `json:"until"`
}

// NewQuery returns a query up to now; ErrRange for a range that does not exist. "" is DefaultRange.
func NewQuery(key Key, of Range) (*Query, error) {
	if of == "" {
		of = DefaultRange
	}
	if of.index() < 0 {
		return nil, ErrRange
	}
	return &Query{Key: key, Range: of, Until: time.Now().Add(-sampleTime).Truncate(sampleEvery)}, nil
}

// Values are the points of one value, oldest first. A point that is unknown is null in JSON.
type Values []float32

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 8*len(v)+2), '[')
	for i, x := range v {
		if i > 0 {
			out = append(out, ',')
		}
		if isUnknown(x) {
			out = append(out, "null"...)
			continue
		}
		out = strconv.AppendFloat(out, float64(x), 'f', -1, 32)
	}
	return append(out, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Values) UnmarshalJSON(text []byte) error {
	var points []*float32
	if err := json.Unmarshal(text, &points); err != nil {
		return err
	}
	*v = make(Values, len(points))
	for i, p := range points {
		(*v)[i] = unknown
		if p != nil && !math.IsInf(float64(*p), 0) {
			(*v)[i] = *p
		}
	}
	return nil
}

// Answer is the history of one key.
type Answer struct {
	Range       Range     `json:"range"`
	StepSeconds int       `json:"stepSeconds"`
	Start       time.Time `json:"start"` // of the first point
	// Recorded reports whether the server has a series for the key: it is among the busiest.
	Recorded bool `json:"recorded"`
	// Incomplete means that a member of the ensemble did not respond.
	Incomplete bool `json:"incomplete"`

	// In and Out are messages per second, Errors failures per second.
	In     Values `json:"in,omitempty"`
	Out    Values `json:"out,omitempty"`
	Errors Values `json:"errors,omitempty"`
	// Backlog is in messages; groups have Lag instead.
	Backlog     Values `json:"backlog,omitempty"`
	Lag         Values `json:"lag,omitempty"`
	StoredBytes Values `json:"storedBytes,omitempty"`
}

// values returns the field of a value.
func (a *Answer) values(kind Kind, column int) *Values {
	switch column {
	case valueIn:
		return &a.In
	case valueOut:
		return &a.Out
	case valueErrors:
		return &a.Errors
	case valueStored:
		return &a.StoredBytes
	}
	if kind == Group {
		return &a.Lag
	}
	return &a.Backlog
}

// emptyAnswer returns an answer in which every point is unknown.
func emptyAnswer(q *Query) *Answer {
	of := &resolutions[q.Range.index()]
	first := lastPoint(q.Until, of.step) - int64(of.points) + 1
	a := &Answer{
		Range: q.Range, StepSeconds: int(of.step / time.Second),
		Start: time.Unix(0, first*int64(of.step)).UTC(),
	}
	for _, column := range columnsOf[q.Kind] {
		v := make(Values, of.points)
		for i := range v {
			v[i] = unknown
		}
		*a.values(q.Kind, column) = v
	}
	return a
}

// Add adds the answer of another member to the same query. What members count adds up, and a point is
// unknown only if no member knows it. An answer to another query is an error.
func (a *Answer) Add(kind Kind, other *Answer) error {
	same := a.Range == other.Range && a.Start.Equal(other.Start)
	for _, column := range columnsOf[kind] {
		same = same && len(*a.values(kind, column)) == len(*other.values(kind, column))
	}
	if !same {
		return errs.New(errs.Internal, "answer of another member is not about the same time")
	}
	a.Recorded = a.Recorded || other.Recorded
	a.Incomplete = a.Incomplete || other.Incomplete
	for _, column := range columnsOf[kind] {
		sum := *a.values(kind, column)
		for i, v := range *other.values(kind, column) {
			switch {
			case isUnknown(v):
			case isUnknown(sum[i]):
				sum[i] = v
			default:
				sum[i] += v
			}
		}
	}
	return nil
}
