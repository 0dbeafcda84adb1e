package systemapi

import (
	"fmt"
	"io"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Gatherer collects series; the registry of the ops address is one.
type Gatherer interface {
	Gather() ([]*dto.MetricFamily, error)
}

// organizationLabel is whose series it is. Series without it are the server's.
const organizationLabel = "organization"

// fresh is how long what was gathered is good for everybody who asks: a scrape
// costs as much as there are topics in use.
const fresh = time.Second

// contentType is that of Prometheus's text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// cache keeps what was gathered last.
type cache struct {
	from Gatherer

	mu       sync.Mutex // held while gathering, so that callers share one
	families []*dto.MetricFamily
	at       time.Time
}

func (c *cache) gather() ([]*dto.MetricFamily, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < fresh {
		return c.families, nil
	}
	families, err := c.from.Gather()
	if err != nil && len(families) == 0 { // what could be gathered is told
		return nil, fmt.Errorf("gathering metrics: %w", err)
	}
	c.families, c.at = families, time.Now()
	return families, nil
}

// write writes the series of an organization, of all when it is "".
func (c *cache) write(w io.Writer, organization string) error {
	families, err := c.gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if organization != "" {
			if family = only(family, organization); family == nil {
				continue
			}
		}
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return fmt.Errorf("writing metrics: %w", err)
		}
	}
	return nil
}

// only is the part of a family that an organization may know: series that name it.
func only(family *dto.MetricFamily, organization string) *dto.MetricFamily {
	var mine []*dto.Metric
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == organizationLabel && label.GetValue() == organization {
				mine = append(mine, metric)
			}
		}
	}
	if mine == nil {
		return nil
	}
	return &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type, Unit: family.Unit, Metric: mine} //nolint:protogetter // the pointers are passed on
}
