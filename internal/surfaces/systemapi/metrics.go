package systemapi

import (
	"fmt"
	"io"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Gatherer gathers series; the registry of the ops address implements it.
type Gatherer interface {
	Gather() ([]*dto.MetricFamily, error)
}

// organizationLabel names the organization of a series. Series without this label
// belong to the server.
const organizationLabel = "organization"

// cacheLifetime is how long gathered metrics are cached for all callers. The cost of gathering
// grows with the number of topics in use.
const cacheLifetime = time.Second

// contentType is the content type of the Prometheus text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// metricsCache holds the last gathered metrics.
type metricsCache struct {
	gatherer Gatherer

	mu       sync.Mutex // protects the fields below; held while gathering, so that callers share one result
	families []*dto.MetricFamily
	at       time.Time
}

func (c *metricsCache) gather() ([]*dto.MetricFamily, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < cacheLifetime {
		return c.families, nil
	}
	families, err := c.gatherer.Gather()
	if err != nil && len(families) == 0 { // partial results are returned
		return nil, fmt.Errorf("gathering metrics: %w", err)
	}
	c.families, c.at = families, time.Now()
	return families, nil
}

// write writes the series of an organization, or all series if organization is "".
func (c *metricsCache) write(w io.Writer, organization string) error {
	families, err := c.gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if organization != "" {
			if family = ofOrganization(family, organization); family == nil {
				continue
			}
		}
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return fmt.Errorf("writing metrics: %w", err)
		}
	}
	return nil
}

// ofOrganization returns the series of a family that have the organization's label, nil if none
// has.
func ofOrganization(family *dto.MetricFamily, organization string) *dto.MetricFamily {
	var series []*dto.Metric
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == organizationLabel && label.GetValue() == organization {
				series = append(series, metric)
			}
		}
	}
	if series == nil {
		return nil
	}
	//nolint:protogetter // the pointers are copied, not the values
	return &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type, Unit: family.Unit, Metric: series}
}
