package config

// Quotas bound what one organization may have. 0 is no limit.
type Quotas struct {
	Resources ResourceQuota `json:"resources"`
}

// ResourceQuota bounds the objects of the resource API that an organization may
// have stored: how many, and how many bytes they take together.
type ResourceQuota struct {
	Objects int  `json:"objects"`
	Bytes   Size `json:"bytes"`
}

// defaultQuotas stop accidents, such as a loop that makes objects for ever.
func defaultQuotas() Quotas {
	return Quotas{Resources: ResourceQuota{Objects: 20_000, Bytes: 256 << 20}}
}

func (c *Config) validateQuotas(p *problems) {
	q := &c.Quotas.Resources
	if q.Objects < 0 || q.Objects > 1_000_000_000 {
		p.addf("quotas.resources.objects", "%d is not between 0 and 1000000000", q.Objects)
	}
	if q.Bytes < 0 || q.Bytes > 1<<50 {
		p.addf("quotas.resources.bytes", "%s is not between 0 and 1Pi", q.Bytes)
	}
}
