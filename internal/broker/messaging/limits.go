package messaging

import "time"

// DefaultMaxDelay is the default of Limits.MaxDelay.
const DefaultMaxDelay = 366 * 24 * time.Hour

// Limits bounds the resources of one cluster. Zero fields mean the default.
type Limits struct {
	MessageBytes  int           // payload of one message; 5 MiB
	MetadataBytes int           // key, properties and producer of one message; 8 KiB
	MaxBatch      int           // messages or ids in one call; 1000
	BatchBytes    int           // payload bytes in one call; when reading also keys and properties; 8 MiB
	MaxWait       time.Duration // longest long poll; 30 s
	MinLease      time.Duration // shortest lease; 1 s
	MaxLease      time.Duration // longest lease; 12 h
	MaxDelay      time.Duration // longest delay of a delivery; 366 days
	MaxUnacked    int           // leased messages of a subscription; 200,000
	Partitions    int32         // partitions of a topic; 1024
	Tenants       int           // tenants of the cluster; 10,000
	Namespaces    int           // namespaces of the cluster; 100,000
	Topics        int           // topics of the cluster; 1,000,000
	Subscriptions int           // subscriptions of a topic; 10,000
	MaxWaiting    int           // consumers waiting at the same time; 50,000
	SchemaBytes   int           // text of a topic schema; 1 MiB
	SchemaCount   int           // versions of a topic's schema; 10,000
	MaxCredits    int           // unacknowledged messages of one push consumer; 10,000
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.MessageBytes, 5<<20)
	setDefault(&l.MetadataBytes, 8<<10)
	setDefault(&l.MaxBatch, 1000)
	setDefault(&l.BatchBytes, 8<<20)
	setDefault(&l.MaxWait, 30*time.Second)
	setDefault(&l.MinLease, time.Second)
	setDefault(&l.MaxLease, 12*time.Hour)
	setDefault(&l.MaxDelay, DefaultMaxDelay)
	setDefault(&l.MaxUnacked, 200_000)
	setDefault(&l.Partitions, 1024)
	setDefault(&l.Tenants, 10_000)
	setDefault(&l.Namespaces, 100_000)
	setDefault(&l.Topics, 1_000_000)
	setDefault(&l.Subscriptions, 10_000)
	setDefault(&l.MaxWaiting, 50_000)
	setDefault(&l.SchemaBytes, 1<<20)
	setDefault(&l.SchemaCount, 10_000)
	setDefault(&l.MaxCredits, 10_000)
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
