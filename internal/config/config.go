// Package config is the configuration of a Freshet server: one YAML file,
// decoded strictly, every field with a usable default.
//
// It owns the shape, the defaults, the checks and the printing. It opens
// nothing: listeners, stores and certificates are made by server from a
// checked Config. Environment variables are laid over the file here, flags by cli. Secrets are never
// values here, only references to files.
package config

// Off switches off a listener or the default cluster.
const Off = "off"

// Config is the whole configuration. The zero value is not usable: start from
// Default or Load.
type Config struct {
	// DataDir holds everything that must survive a restart.
	DataDir string `json:"dataDir"`

	// HTTP, HTTPS and Ops are listen addresses (host:port), or "off". Ops
	// serves metrics and profiles and has no authentication of its own.
	HTTP  string `json:"http"`
	HTTPS string `json:"https"`
	Ops   string `json:"ops"`
	// InsecureHTTP allows HTTP on an address others can reach. Tokens then
	// cross the network in the clear.
	InsecureHTTP bool `json:"insecureHTTP"`

	// BaseURL is how clients reach this server, and the audience of tokens for
	// the resource API. Empty: derived from the listen addresses.
	BaseURL string `json:"baseURL"`
	// IssuerURL is the issuer of access tokens. Empty: BaseURL.
	IssuerURL string `json:"issuerURL"`
	// Domain is the parent of the clusters' own names,
	// <cluster>.<organization>.<domain>.
	Domain string `json:"domain"`
	// DefaultCluster (organization/cluster) answers requests whose Host names
	// no cluster; "off" answers them 404.
	DefaultCluster string `json:"defaultCluster"`

	TLS           TLS           `json:"tls"`
	Etcd          Etcd          `json:"etcd"`
	NATS          NATS          `json:"nats"`
	EncryptionKey EncryptionKey `json:"encryptionKey"`
	Pools         []Pool        `json:"pools"`
	Limits        Limits        `json:"limits"`
	Quotas        Quotas        `json:"quotas"`
	Timeouts      Timeouts      `json:"timeouts"`
	Tokens        Tokens        `json:"tokens"`
	Admin         Admin         `json:"admin"`
	Organizations Organizations `json:"organizations"`
	CORS          CORS          `json:"cors"`
	Log           Log           `json:"log"`
	Metrics       Metrics       `json:"metrics"`
	Audit         Audit         `json:"audit"`
	Backup        Backup        `json:"backup"`
	Stream        Stream        `json:"stream"`
	SignIn        SignIn        `json:"signIn"`
	Members       Members       `json:"members"`

	// origins says where a setting was read: "line 3", or the name of an
	// environment variable. By path, for messages.
	origins map[string]string
}

// Organizations says how organizations come to be.
type Organizations struct {
	// AutoCreate has the first object in an organization create it; otherwise a
	// system administrator creates it first, as a Namespace.
	AutoCreate bool `json:"autoCreate"`
}

// TLS says which certificate HTTPS shows. Without files, a CA is made at the
// first start under DIR/tls and signs certificates for the server's names.
type TLS struct {
	// CertFile and KeyFile are PEM files, read again when they change.
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// Names are further DNS names and IP addresses for self-made certificates,
	// beside localhost, the loopback addresses, the host of BaseURL and
	// everything beneath Domain.
	Names []string `json:"names,omitempty"`
}

// Etcd says where the resources are kept. Without endpoints, a member is
// embedded in the process, with its data under DIR/etcd.
type Etcd struct {
	Endpoints []string `json:"endpoints,omitempty"`
	CAFile    string   `json:"caFile"`
	CertFile  string   `json:"certFile"`
	KeyFile   string   `json:"keyFile"`
	// Prefix is the key prefix of everything Freshet writes.
	Prefix string `json:"prefix"`
	// SingleReplica states that this process is the only Freshet on these
	// external endpoints, which pool members with engine pebble demand: their
	// data lies on this machine only.
	SingleReplica bool `json:"singleReplica"`
	// Quota bounds what the embedded member stores for callers. Near it nothing
	// is taken that adds to the store; the service's own writes may go a quarter
	// further.
	Quota Size `json:"quota"`
	// CompactionInterval decides how long old revisions, and with them
	// continue tokens, stay good.
	CompactionInterval Duration `json:"compactionInterval"`
}

// External says whether etcd runs elsewhere.
func (e *Etcd) External() bool { return len(e.Endpoints) > 0 }

// NATS says where the members of a group keep the log of messages. Without URLs, a
// server runs inside each of them.
type NATS struct {
	URLs []string `json:"urls,omitempty"`
	// Credentials is a file as NATS accounts have them.
	Credentials string `json:"credentials"`
	CAFile      string `json:"caFile"`
	CertFile    string `json:"certFile"`
	KeyFile     string `json:"keyFile"`
	// Monitoring are the addresses where each server tells of itself: without
	// them it cannot be seen whether it syncs every write.
	Monitoring []string `json:"monitoring,omitempty"`
}

// External says whether NATS runs elsewhere.
func (n *NATS) External() bool { return len(n.URLs) > 0 }

// EncryptionKey says where the keys are that secrets in etcd are encrypted
// with. Without a file, one is made at the first start in the data directory;
// replicas that share an etcd share the file.
type EncryptionKey struct {
	File string `json:"file"`
}

// Pool is a resource pool that instances can be placed in. Pools are read-only
// through the API; this is where they come from.
type Pool struct {
	Name string `json:"name"`
	// Namespace is the organization that owns the pool's objects.
	Namespace string       `json:"namespace"`
	Type      string       `json:"type"`
	Members   []PoolMember `json:"members"`
}

// PoolMember is one place of a pool where clusters can run.
type PoolMember struct {
	Name     string `json:"name"`
	Location string `json:"location"`
	Engine   string `json:"engine"`
}

// EnginePebble is the embedded engine: one node, data under DIR/clusters.
const EnginePebble = "pebble"

// Limits bounds what the outside can make the server hold or do at once.
type Limits struct {
	// Connections is the most open connections per listener; fewer when the
	// system lets the process open too few files.
	Connections int `json:"connections"`
	// HeaderSize is the most a request's header may weigh.
	HeaderSize Size `json:"headerSize"`

	// ResourceBody and MessageBody are the most a request may carry there; the
	// registry's bound is that of docs/spec/registry.md#limits.
	ResourceBody Size `json:"resourceBody"`
	MessageBody  Size `json:"messageBody"`

	// ReadsInFlight and WritesInFlight bound what the resource API works on at
	// once; more than that waits. Watches are not counted.
	ReadsInFlight  int `json:"readsInFlight"`
	WritesInFlight int `json:"writesInFlight"`
	// RequestsInFlight bounds the message interface and the registry together,
	// and BodyMemory what the bodies of these requests may hold. Requests past
	// them are answered 503 with Retry-After.
	RequestsInFlight int  `json:"requestsInFlight"`
	BodyMemory       Size `json:"bodyMemory"`
	// WaitingConsumers is how many consume calls may wait at once.
	WaitingConsumers int `json:"waitingConsumers"`
	// TokenRate is how many tokens one client may ask for per second, with
	// bursts of TokenBurst.
	TokenRate  float64 `json:"tokenRate"`
	TokenBurst int     `json:"tokenBurst"`
	// DiskReserve is the free space below which no messages are taken, while
	// consuming, acknowledging and deleting go on; 0 is a share of the disk (ReserveOf).
	DiskReserve Size `json:"diskReserve"`
}

// What the reserve is when the configuration leaves it open.
const (
	reserveShare = 20
	largestShare = 4
	leastReserve = 64 << 20
	mostReserve  = 1 << 30
)

// ReserveOf is what of a disk of so many bytes is kept free, as DiskReserve says; when
// that is left open, a twentieth, between 64Mi and 1Gi, and never more than a quarter.
func ReserveOf(disk int64, configured Size) int64 {
	if configured > 0 {
		return int64(configured)
	}
	return min(max(disk/reserveShare, leastReserve), mostReserve, disk/largestShare)
}

// Timeouts bounds how long things may take.
type Timeouts struct {
	// ReadHeader and ReadBody bound how slowly a request may arrive.
	ReadHeader Duration `json:"readHeader"`
	ReadBody   Duration `json:"readBody"`
	// WriteBody bounds how slowly a client may take a large message, or the
	// next event of a stream.
	WriteBody Duration `json:"writeBody"`
	// Idle is how long a connection may sit between requests.
	Idle Duration `json:"idle"`
	// ConsumeMax caps the wait that a consume call may ask for.
	ConsumeMax Duration `json:"consumeMax"`
	// Drain is how long running requests may take to end on shutdown.
	Drain Duration `json:"drain"`
}

// Tokens sets the lives of access tokens and signing keys.
type Tokens struct {
	// Lifetime is expires_in where an instance does not say otherwise.
	Lifetime Duration `json:"lifetime"`
	// KeyRotation is how long a signing key signs before the next takes over;
	// it stays published until its last token has expired.
	KeyRotation Duration `json:"keyRotation"`
}

// Admin names the system administrator made at the first start.
type Admin struct {
	Organization   string `json:"organization"`
	ServiceAccount string `json:"serviceAccount"`
}

// CORS lists the origins whose pages may call the APIs; "*" is any, and safe:
// tokens travel in a header that a page must know, never in a cookie.
type CORS struct {
	Origins []string `json:"origins,omitempty"`
}

// Log sets what the process tells, and where.
type Log struct {
	Level  string `json:"level"`
	Format string `json:"format"`
	// File is written to instead of standard error, and opened again on SIGHUP.
	// A relative path is under the data directory.
	File string `json:"file"`
	// Access says which requests leave a line: "all", "errors" (status 400 and
	// up) or "off". Failures of the server itself always do.
	Access string `json:"access"`
	// AccessRate is how many of these lines a second may have; successes and
	// failures are counted apart. 0 is no limit.
	AccessRate int `json:"accessRate"`
}

// What Log.Access says.
const (
	AccessAll    = "all"
	AccessErrors = "errors"
	AccessOff    = Off
)

// Metrics sets what /metrics on the ops address shows.
type Metrics struct {
	// Topics adds series for single topics to those of namespaces.
	Topics bool `json:"topics"`
}

// Audit sets the audit trail. A relative path is under the data directory;
// "off" keeps none.
type Audit struct {
	Path    string `json:"path"`
	MaxSize Size   `json:"maxSize"`
	Keep    int    `json:"keep"`
}

// Backup sets the backups that the server takes of itself.
type Backup struct {
	// Directory is where they go, each in a folder of its own; "" takes none.
	Directory string `json:"directory"`
	// Every is how long after the newest one the next begins.
	Every Duration `json:"every"`
	// Keep is how many there are; the oldest go.
	Keep int `json:"keep"`
	// WithoutKeys leaves out the encryption keys, the operator's token and the
	// certificate authority.
	WithoutKeys bool `json:"withoutKeys"`
}
