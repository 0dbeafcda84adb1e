package opscmd

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"freshet.dev/client"
)

// scrape has the metrics of a server at one time.
type scrape struct {
	at     time.Time
	series []series
}

type series struct {
	name   string
	labels map[string]string
	value  float64
}

// label matches one label in the Prometheus text format.
var label = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)

// metrics fetches the metrics that the caller may see.
func metrics(ctx context.Context, conn *client.Client) (*scrape, error) {
	response, err := conn.Do(ctx, &client.Request{Method: http.MethodGet, Path: "/system/v1alpha1/metrics"})
	if err != nil {
		return nil, err
	}
	return parseMetrics(string(response.Body), time.Now()), nil
}

func parseMetrics(text string, at time.Time) *scrape {
	s := &scrape{at: at}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			continue
		}
		one := series{value: value, labels: map[string]string{}}
		name, labels, _ := strings.Cut(line[:end], "{")
		one.name = name
		for _, found := range label.FindAllStringSubmatch(labels, -1) {
			one.labels[found[1]] = found[2]
		}
		s.series = append(s.series, one)
	}
	return s
}

// sum adds up the series of a metric that have the labels, which are given as alternating
// names and values.
func (s *scrape) sum(name string, labels ...string) float64 {
	total := 0.0
	s.each(name, labels, func(value float64) { total += value })
	return total
}

// maximum returns the largest value of a metric, 0 if it has no series.
func (s *scrape) maximum(name string) float64 {
	largest := 0.0
	s.each(name, nil, func(value float64) { largest = max(largest, value) })
	return largest
}

// minimum returns the smallest value of a metric, false if it has no series.
func (s *scrape) minimum(name string) (float64, bool) {
	smallest, found := 0.0, false
	s.each(name, nil, func(value float64) {
		if !found || value < smallest {
			smallest, found = value, true
		}
	})
	return smallest, found
}

func (s *scrape) each(name string, labels []string, do func(float64)) {
	for _, one := range s.series {
		matches := one.name == name
		for i := 0; matches && i+1 < len(labels); i += 2 {
			matches = one.labels[labels[i]] == labels[i+1]
		}
		if matches {
			do(one.value)
		}
	}
}

// label returns the value of a label of the first series of a metric.
func (s *scrape) label(name, of string) string {
	for _, one := range s.series {
		if one.name == name {
			return one.labels[of]
		}
	}
	return ""
}

// rate returns how fast a counter grew per second since an earlier scrape. It is 0 if the
// counter is smaller, because the server was restarted in between.
func (s *scrape) rate(before *scrape, name string) float64 {
	seconds := s.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return max(0, s.sum(name)-before.sum(name)) / seconds
}
