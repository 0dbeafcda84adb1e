package history

import (
	"math"
	"time"
)

// sampleEvery is the time between two samples.
const sampleEvery = 15 * time.Second

// sampleTime is how long a sample usually takes at most.
const sampleTime = time.Second

// A value of a sample. The first three are rates per second.
const (
	valueIn = iota
	valueOut
	valueErrors
	valueBacklog // or lag
	valueStored  // bytes
	valueCount
)

// sample has the values of a series at one time; NaN means unknown.
type sample [valueCount]float32

var unknown = float32(math.NaN())

func isUnknown(v float32) bool { return math.IsNaN(float64(v)) }

func unknownSample() (s sample) {
	for i := range s {
		s[i] = unknown
	}
	return s
}

// resolution is one of the ranges that the history has.
type resolution struct {
	name   Range
	step   time.Duration
	points int
}

// resolutions are the ranges from the shortest to the longest. The points determine the memory of a
// series.
var resolutions = [...]resolution{
	{"15m", sampleEvery, 60},
	{"1h", time.Minute, 60},
	{"24h", 10 * time.Minute, 144},
}

// ring has the points of one resolution. The number of a point is its time divided by the step, so that
// points of different members have the same numbers.
type ring struct {
	Last    int64 // number of the newest point; 0 for none
	Samples int32 // samples with rates in the newest point
	// Values has the point n at index n modulo the count of points, with one value per column.
	Values []float32
}

// add adds a sample to the point with a number. A point is the mean of the rates of its samples, and the last
// of their other values. Points without a sample are unknown.
func (r *ring) add(number int64, columns []int, s *sample) {
	points := int64(len(r.Values) / len(columns))
	switch {
	case number < r.Last-points, number > r.Last+points: // the first sample, a long pause or a changed clock
		for i := range r.Values {
			r.Values[i] = unknown
		}
		r.Last, r.Samples = number, 0
	case number < r.Last:
		return // the clock was set back
	}
	for ; r.Last < number; r.Samples = 0 {
		r.Last++
		for i := range r.point(r.Last, columns) {
			r.point(r.Last, columns)[i] = unknown
		}
	}
	if !isUnknown(s[valueOut]) { // all rates of a sample are known, or none
		r.Samples++
	}
	at := r.point(number, columns)
	for i, column := range columns {
		switch v := s[column]; {
		case isUnknown(v):
		case column > valueErrors || isUnknown(at[i]):
			at[i] = v
		default:
			at[i] += (v - at[i]) / float32(r.Samples)
		}
	}
}

// point returns the values of the point with a number.
func (r *ring) point(number int64, columns []int) []float32 {
	n := len(columns)
	at := int(number%int64(len(r.Values)/n)) * n
	return r.Values[at : at+n]
}

// read returns the values of the column with an index for the points up to the number last, oldest first.
func (r *ring) read(last int64, columns []int, index int) Values {
	points := len(r.Values) / len(columns)
	out := make(Values, points)
	for i := range out {
		number := last - int64(points-1-i)
		out[i] = unknown
		if number > 0 && number <= r.Last && number > r.Last-int64(points) {
			out[i] = r.point(number, columns)[index]
		}
	}
	return out
}
