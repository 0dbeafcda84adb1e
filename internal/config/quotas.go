package config

import "fmt"

// Quotas are the quotas of each organization. 0 is unlimited, except for StoredBytes,
// where it is 75 % of the disk.
type Quotas struct {
	// Resources bounds the organization's objects in the resource API.
	Resources ResourceQuota `json:"resources"`
	// Clusters and Instances include those that are being deleted.
	Clusters  int `json:"clusters"`
	Instances int `json:"instances"`
	// Topics counts partitions; a topic without partitions counts as one.
	Topics        int `json:"topics"`
	Subscriptions int `json:"subscriptions"`
	// Subjects includes deleted subjects until their permanent deletion.
	Subjects    int  `json:"subjects"`
	SchemaBytes Size `json:"schemaBytes"`
	// StoredBytes counts messages before compression.
	StoredBytes Size `json:"storedBytes"`
	// ClientStateBytes counts what Kafka clients create: consumer groups with their members, committed
	// offsets, and the state of idempotent producers. TenantStateBytes is the part of one tenant of a
	// cluster, AccountStateBytes that of one account in a cluster.
	ClientStateBytes  Size `json:"clientStateBytes"`
	TenantStateBytes  Size `json:"tenantStateBytes"`
	AccountStateBytes Size `json:"accountStateBytes"`
	// RequestsPerSecond and BytesPerSecond bound the calls of an organization; bytes are
	// those of request and response bodies.
	RequestsPerSecond int  `json:"requestsPerSecond"`
	BytesPerSecond    Size `json:"bytesPerSecond"`
	// Organizations are the quotas of single organizations.
	Organizations []OrganizationQuotas `json:"organizations,omitempty"`
}

// OrganizationQuotas are the quotas of one organization; 0 is the value in Quotas.
type OrganizationQuotas struct {
	Name              string `json:"name"`
	Clusters          int    `json:"clusters,omitempty"`
	Instances         int    `json:"instances,omitempty"`
	Topics            int    `json:"topics,omitempty"`
	Subscriptions     int    `json:"subscriptions,omitempty"`
	Subjects          int    `json:"subjects,omitempty"`
	SchemaBytes       Size   `json:"schemaBytes,omitempty"`
	StoredBytes       Size   `json:"storedBytes,omitempty"`
	ClientStateBytes  Size   `json:"clientStateBytes,omitempty"`
	TenantStateBytes  Size   `json:"tenantStateBytes,omitempty"`
	AccountStateBytes Size   `json:"accountStateBytes,omitempty"`
	RequestsPerSecond int    `json:"requestsPerSecond,omitempty"`
	BytesPerSecond    Size   `json:"bytesPerSecond,omitempty"`
}

// defaultQuotas returns quotas that stop accidents. They are higher than the regular use
// of a team on one machine.
func defaultQuotas() Quotas {
	return Quotas{
		Resources: ResourceQuota{Objects: 20_000, Bytes: 256 << 20},
		Clusters:  50, Instances: 50, Topics: 20_000, Subscriptions: 50_000, Subjects: 20_000,
		SchemaBytes: 512 << 20, ClientStateBytes: 512 << 20, TenantStateBytes: 128 << 20,
		AccountStateBytes: 64 << 20, RequestsPerSecond: 50_000, BytesPerSecond: 1 << 30,
	}
}

// validateQuotas checks the default quotas and those of single organizations.
func (c *Config) validateQuotas(p *problems) {
	q := &c.Quotas
	q.Resources.validate(p)
	checkQuotas(p, "quotas", &OrganizationQuotas{
		Clusters: q.Clusters, Instances: q.Instances, Topics: q.Topics, Subscriptions: q.Subscriptions,
		Subjects:    q.Subjects,
		SchemaBytes: q.SchemaBytes, StoredBytes: q.StoredBytes, ClientStateBytes: q.ClientStateBytes,
		TenantStateBytes: q.TenantStateBytes, AccountStateBytes: q.AccountStateBytes,
		RequestsPerSecond: q.RequestsPerSecond, BytesPerSecond: q.BytesPerSecond,
	})
	seen := map[string]bool{}
	for i := range q.Organizations {
		o, path := &q.Organizations[i], fmt.Sprintf("quotas.organizations[%d]", i)
		p.checkLabel(path+".name", o.Name)
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
	}{
		{"schemaBytes", q.SchemaBytes},
		{"storedBytes", q.StoredBytes},
		{"clientStateBytes", q.ClientStateBytes},
		{"tenantStateBytes", q.TenantStateBytes},
		{"accountStateBytes", q.AccountStateBytes},
		{"bytesPerSecond", q.BytesPerSecond},
	} {
		if b.value < 0 || b.value > 1<<60 {
			p.addf(path+"."+b.field, "%s is not between 0 and %s", b.value, Size(1<<60))
		}
	}
}
