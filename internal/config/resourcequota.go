package config

// ResourceQuota bounds the objects of one organization in the resource API: their number
// and their total size in bytes. 0 is unlimited.
type ResourceQuota struct {
	Objects int  `json:"objects"`
	Bytes   Size `json:"bytes"`
}

func (q *ResourceQuota) validate(p *problems) {
	if q.Objects < 0 || q.Objects > 1_000_000_000 {
		p.addf("quotas.resources.objects", "%d is not between 0 and 1000000000", q.Objects)
	}
	if q.Bytes < 0 || q.Bytes > 1<<50 {
		p.addf("quotas.resources.bytes", "%s is not between 0 and 1Pi", q.Bytes)
	}
}
