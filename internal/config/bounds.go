package config

import "time"

// validateBounds checks that every number is in its range. The upper bounds catch
// mistakes in the unit.
func (c *Config) validateBounds(p *problems) {
	l := &c.Limits
	for _, b := range []struct {
		field    string
		value    int
		min, max int
	}{
		{"limits.connections", l.Connections, 10, 10_000_000},
		{"limits.readsInFlight", l.ReadsInFlight, 1, 1_000_000},
		{"limits.writesInFlight", l.WritesInFlight, 1, 1_000_000},
		{"limits.requestsInFlight", l.RequestsInFlight, 1, 10_000_000},
		{"limits.waitingConsumers", l.WaitingConsumers, 1, 10_000_000},
		{"limits.tokenBurst", l.TokenBurst, 1, 1_000_000},
		{"backup.keep", c.Backup.Keep, 1, 100_000},
		{"audit.keep", c.Audit.Keep, 1, 10_000},
		{"log.accessRate", c.Log.AccessRate, 0, 1_000_000},
	} {
		if b.value < b.min || b.value > b.max {
			p.addf(b.field, "%d is not between %d and %d", b.value, b.min, b.max)
		}
	}
	if l.TokenRate <= 0 || l.TokenRate > 1_000_000 {
		p.addf("limits.tokenRate", "%g is not between 0 and 1000000", l.TokenRate)
	}
	for _, b := range []struct {
		field           string
		value, min, max Size
	}{
		{"limits.headerSize", l.HeaderSize, 8 << 10, 16 << 20},
		{"limits.resourceBody", l.ResourceBody, 64 << 10, 64 << 20},
		{"limits.messageBody", l.MessageBody, 1 << 10, 1 << 30},
		{"limits.bodyMemory", l.BodyMemory, 8 << 20, 1 << 40},
		{"limits.unpackMemory", l.UnpackMemory, 16 << 20, 1 << 40},
		{"audit.maxSize", c.Audit.MaxSize, 64 << 10, 1 << 40},
	} {
		if b.value < b.min || b.value > b.max {
			p.addf(b.field, "%s is not between %s and %s", b.value, b.min, b.max)
		}
	}
	c.validateDurations(p)
}

func (c *Config) validateDurations(p *problems) {
	const day = 24 * time.Hour
	t := &c.Timeouts
	for _, b := range []struct {
		field    string
		value    Duration
		min, max time.Duration
	}{
		{"timeouts.readHeader", t.ReadHeader, time.Second, time.Hour},
		{"timeouts.readBody", t.ReadBody, time.Second, 24 * time.Hour},
		{"timeouts.writeBody", t.WriteBody, time.Second, 24 * time.Hour},
		{"timeouts.idle", t.Idle, time.Second, 24 * time.Hour},
		{"timeouts.consumeMax", t.ConsumeMax, time.Second, 10 * time.Minute},
		{"timeouts.drain", t.Drain, 0, time.Hour},
		{"tokens.lifetime", c.Tokens.Lifetime, time.Minute, 30 * day},
		{"backup.every", c.Backup.Every, time.Minute, 3650 * day},
		{"tokens.keyRotation", c.Tokens.KeyRotation, time.Hour, 3650 * day},
	} {
		if b.value.Std() < b.min || b.value.Std() > b.max {
			p.addf(b.field, "%s is not between %s and %s", b.value, b.min, b.max)
		}
	}
}
