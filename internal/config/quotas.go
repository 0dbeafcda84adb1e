package config

import "fmt"

// Quotas are what one organization may have and do. 0 is no limit, except for
// StoredBytes, where it is three quarters of the disk.
type Quotas struct {
	// Resources bounds what the organization has in the resource API.
	Resources ResourceQuota `json:"resources"`
	// Clusters and Instances count while they are being deleted, too.
	Clusters  int `json:"clusters"`
	Instances int `json:"instances"`
	// Topics counts partitions, and 1 for a topic that has none.
	Topics        int `json:"topics"`
	Subscriptions int `json:"subscriptions"`
	// Subjects counts deleted ones, too, until they are deleted for good.
	Subjects    int  `json:"subjects"`
	SchemaBytes Size `json:"schemaBytes"`
	// StoredBytes is of messages, as they are before compression.
	StoredBytes Size `json:"storedBytes"`
	// RequestsPerSecond and BytesPerSecond bound the calls of an organization;
	// bytes are those of bodies, in and out.
	RequestsPerSecond int  `json:"requestsPerSecond"`
	BytesPerSecond    Size `json:"bytesPerSecond"`
	// Organizations have other limits.
	Organizations []OrganizationQuotas `json:"organizations,omitempty"`
}

// OrganizationQuotas are the limits of one organization; 0 is that of all others.
type OrganizationQuotas struct {
	Name              string `json:"name"`
	Clusters          int    `json:"clusters,omitempty"`
	Instances         int    `json:"instances,omitempty"`
	Topics            int    `json:"topics,omitempty"`
	Subscriptions     int    `json:"subscriptions,omitempty"`
	Subjects          int    `json:"subjects,omitempty"`
	SchemaBytes       Size   `json:"schemaBytes,omitempty"`
	StoredBytes       Size   `json:"storedBytes,omitempty"`
	RequestsPerSecond int    `json:"requestsPerSecond,omitempty"`
	BytesPerSecond    Size   `json:"bytesPerSecond,omitempty"`
}

// defaultQuotas stop accidents: a team on one machine does not get there on
// purpose.
func defaultQuotas() Quotas {
	return Quotas{
		Resources: ResourceQuota{Objects: 20_000, Bytes: 256 << 20},
		Clusters:  50, Instances: 50, Topics: 20_000, Subscriptions: 50_000, Subjects: 20_000,
		SchemaBytes: 512 << 20, RequestsPerSecond: 50_000, BytesPerSecond: 1 << 30,
	}
}

// validateQuotas checks the limits of everybody, and of each organization.
func (c *Config) validateQuotas(p *problems) {
	q := &c.Quotas
	q.Resources.validate(p)
	checkQuotas(p, "quotas", &OrganizationQuotas{
		Clusters: q.Clusters, Instances: q.Instances, Topics: q.Topics, Subscriptions: q.Subscriptions,
		Subjects:    q.Subjects,
		SchemaBytes: q.SchemaBytes, StoredBytes: q.StoredBytes, RequestsPerSecond: q.RequestsPerSecond,
		BytesPerSecond: q.BytesPerSecond,
	})
	seen := map[string]bool{}
	for i := range q.Organizations {
		o, path := &q.Organizations[i], fmt.Sprintf("quotas.organizations[%d]", i)
		p.label(path+".name", o.Name)
		if seen[o.Name] {
			p.addf(path+".name", "%s is listed twice", o.Name)
		}
		seen[o.Name] = true
		checkQuotas(p, path, o)
	}
}

func checkQuotas(p *problems, path string, q *OrganizationQuotas) {
	for _, b := range []struct {
		field string
		value int
	}{
		{"clusters", q.Clusters},
		{"instances", q.Instances},
		{"topics", q.Topics},
		{"subscriptions", q.Subscriptions},
		{"subjects", q.Subjects},
		{"requestsPerSecond", q.RequestsPerSecond},
	} {
		if b.value < 0 || b.value > 1_000_000_000 {
			p.addf(path+"."+b.field, "%d is not between 0 and 1000000000", b.value)
		}
	}
	for _, b := range []struct {
		field string
		value Size
	}{{"schemaBytes", q.SchemaBytes}, {"storedBytes", q.StoredBytes}, {"bytesPerSecond", q.BytesPerSecond}} {
		if b.value < 0 || b.value > 1<<60 {
			p.addf(path+"."+b.field, "%s is not between 0 and %s", b.value, Size(1<<60))
		}
	}
}
