// Package config is the configuration of a Freshet server: one YAML file, decoded
// strictly, in which every field has a usable default.
//
// It owns the fields, the defaults, the validation and the printing. Environment
// variables override the file here; package cli applies the flags afterwards. The package
// opens no listeners, stores or certificates: package server does that with a valid
// Config. The configuration never contains secrets, only paths of files that contain them.
package config

// Off disables a listener, the default cluster, the access log or the audit log.
const Off = "off"

// Config is the whole configuration. The zero value is not usable: start from
// Default or Load.
type Config struct {
	// DataDir is the directory for all persistent data.
	DataDir string `json:"dataDir"`

	// HTTP, HTTPS and Ops are listen addresses (host:port), or "off". Ops
	// serves metrics and profiles and has no authentication of its own.
	HTTP  string `json:"http"`
	HTTPS string `json:"https"`
	Ops   string `json:"ops"`
	// InsecureHTTP allows HTTP on an address that other machines can reach. Clients then
	// send their tokens unencrypted.
	InsecureHTTP bool `json:"insecureHTTP"`

	// BaseURL is the URL at which clients reach this server, and the audience of tokens
	// for the resource API. Empty: derived from the listen addresses.
	BaseURL string `json:"baseURL"`
	// IssuerURL is the issuer of access tokens. Empty: BaseURL.
	IssuerURL string `json:"issuerURL"`
	// Domain is the parent domain of clusters, <cluster>.<organization>.<domain>.
	Domain string `json:"domain"`
	// DefaultCluster (organization/cluster) serves requests whose Host header names no
	// cluster. With "off" such requests get 404.
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
	Proxies       Proxies       `json:"proxies"`
	Log           Log           `json:"log"`
	Metrics       Metrics       `json:"metrics"`
	Audit         Audit         `json:"audit"`
	Backup        Backup        `json:"backup"`
	Kafka         Kafka         `json:"stream"`
	SignIn        SignIn        `json:"signIn"`
	Members       Members       `json:"members"`

	// SecurityContact is the URI at which people report vulnerabilities, or "".
	SecurityContact string `json:"securityContact"`

	// origins maps the path of a setting to its source for error messages: "line 3", or
	// the name of an environment variable.
	origins map[string]string
}

// Organizations configures how organizations are created.
type Organizations struct {
	// AutoCreate lets the first object in an organization create the organization.
	// Otherwise a system administrator must create it first, as a Namespace.
	AutoCreate bool `json:"autoCreate"`
}

// TLS configures the certificate of the HTTPS listener. Without files, the server creates
// a CA under DIR/tls at the first start, and the CA signs certificates for the server's
// names.
type TLS struct {
	// CertFile and KeyFile are PEM files. The server reloads them when they change.
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// Names are further DNS names and IP addresses for which the server's own CA signs
	// certificates, in addition to localhost, the loopback addresses, the host of BaseURL
	// and all names under Domain.
	Names []string `json:"names,omitempty"`
}

// Etcd configures the store of resources. Without endpoints, an etcd member runs inside
// the process, with its data under DIR/etcd.
type Etcd struct {
	Endpoints []string `json:"endpoints,omitempty"`
	CAFile    string   `json:"caFile"`
	CertFile  string   `json:"certFile"`
	KeyFile   string   `json:"keyFile"`
	// Prefix is the key prefix of everything Freshet writes.
	Prefix string `json:"prefix"`
	// SingleReplica confirms that this process is the only Freshet server on the external
	// endpoints. Pool members with engine pebble require it, because they store their
	// data on this machine only.
	SingleReplica bool `json:"singleReplica"`
	// Quota bounds the data that the embedded member stores for callers. Near the quota
	// the server rejects writes that add data. The server's own writes have a reserve of
	// 25 %.
	Quota Size `json:"quota"`
	// CompactionInterval is how long old revisions are kept. Continue tokens of lists
	// are valid for as long.
	CompactionInterval Duration `json:"compactionInterval"`
}

// External reports whether etcd runs outside of this process.
func (e *Etcd) External() bool { return len(e.Endpoints) > 0 }

// NATS configures where an ensemble stores the message log. Without URLs, every member
// runs a NATS server inside its process.
type NATS struct {
	URLs []string `json:"urls,omitempty"`
	// Credentials is the path of a NATS credentials file.
	Credentials string `json:"credentials"`
	CAFile      string `json:"caFile"`
	CertFile    string `json:"certFile"`
	KeyFile     string `json:"keyFile"`
	// Monitoring are the URLs of the NATS servers' monitoring endpoints. Only they show
	// whether a server syncs every write.
	Monitoring []string `json:"monitoring,omitempty"`
}

// External reports whether NATS runs outside of this process.
func (n *NATS) External() bool { return len(n.URLs) > 0 }

// EncryptionKey names the file with the keys that encrypt secrets in etcd. Without a
// file, the server creates one in the data directory at the first start. Replicas that
// share an etcd need the same file.
type EncryptionKey struct {
	File string `json:"file"`
}

// Pool is a resource pool in which instances can be created. Pools are read-only in the
// API; the configuration defines them.
type Pool struct {
	Name string `json:"name"`
	// Namespace is the organization that owns the pool's objects.
	Namespace string       `json:"namespace"`
	Type      string       `json:"type"`
	Members   []PoolMember `json:"members"`
}

// PoolMember is one location of a pool where clusters can run.
type PoolMember struct {
	Name     string `json:"name"`
	Location string `json:"location"`
	Engine   string `json:"engine"`
}

// EnginePebble is the embedded engine: one node, data under DIR/clusters.
const EnginePebble = "pebble"

// Limits bounds the memory, files and concurrency that clients can use.
type Limits struct {
	// Connections is the maximum number of open connections per listener. The server
	// uses a lower number if the process may open too few files.
	Connections int `json:"connections"`
	// HeaderSize is the maximum size of a request's header.
	HeaderSize Size `json:"headerSize"`

	// ResourceBody and MessageBody are the maximum body sizes in the resource API and of
	// messages; docs/spec/registry.md#limits has the limit of the registry.
	ResourceBody Size `json:"resourceBody"`
	MessageBody  Size `json:"messageBody"`

	// ReadsInFlight and WritesInFlight bound the concurrent requests of the resource
	// API; further requests wait. Watches are not counted.
	ReadsInFlight  int `json:"readsInFlight"`
	WritesInFlight int `json:"writesInFlight"`
	// RequestsInFlight bounds the concurrent requests of the message API and the
	// registry together, and BodyMemory the memory for their bodies. Further requests
	// get 503 with Retry-After.
	RequestsInFlight int  `json:"requestsInFlight"`
	BodyMemory       Size `json:"bodyMemory"`
	// UnpackMemory is the memory for decompressed batches of Kafka producers, of all
	// clusters together: three quarters while batches are read, a quarter to cache them.
	UnpackMemory Size `json:"unpackMemory"`
	// WaitingConsumers is how many consume calls may wait at the same time.
	WaitingConsumers int `json:"waitingConsumers"`
	// TokenRate is how many tokens one client may request per second, with bursts of
	// TokenBurst.
	TokenRate  float64 `json:"tokenRate"`
	TokenBurst int     `json:"tokenBurst"`
	// DiskReserve is the free space below which the server rejects new messages.
	// Consuming, acknowledging and deleting still work. 0 is a share of the disk, see
	// DiskReserve.
	DiskReserve Size `json:"diskReserve"`
}

// Default of Limits.DiskReserve, as fractions of the disk and in bytes.
const (
	reserveDivisor    = 20
	maxReserveDivisor = 4
	minReserve        = 64 << 20
	maxReserve        = 1 << 30
)

// DiskReserve returns how many bytes of a disk of the given size to keep free: DiskReserve
// if it is set, otherwise 5 % of the disk, between 64Mi and 1Gi, but at most 25 %.
func DiskReserve(disk int64, configured Size) int64 {
	if configured > 0 {
		return int64(configured)
	}
	return min(max(disk/reserveDivisor, minReserve), maxReserve, disk/maxReserveDivisor)
}

// Timeouts are the timeouts of requests and connections.
type Timeouts struct {
	// ReadHeader and ReadBody are the timeouts for reading a request.
	ReadHeader Duration `json:"readHeader"`
	ReadBody   Duration `json:"readBody"`
	// WriteBody is the timeout for writing a large message, or the next event of a
	// stream, to a slow client.
	WriteBody Duration `json:"writeBody"`
	// Idle is how long a connection may stay open without requests.
	Idle Duration `json:"idle"`
	// ConsumeMax is the longest wait that a consume call may request.
	ConsumeMax Duration `json:"consumeMax"`
	// Drain is how long running requests may take to finish during shutdown.
	Drain Duration `json:"drain"`
}

// Tokens sets the lifetimes of access tokens and signing keys.
type Tokens struct {
	// Lifetime is the default of expires_in; an instance can set another one.
	Lifetime Duration `json:"lifetime"`
	// KeyRotation is how long a key signs tokens before the next key replaces it. The
	// old key stays published until its last token has expired.
	KeyRotation Duration `json:"keyRotation"`
}

// Admin names the system administrator that the server creates at the first start.
type Admin struct {
	Organization   string `json:"organization"`
	ServiceAccount string `json:"serviceAccount"`
}

// CORS lists the origins whose pages may call the APIs. "*" allows every origin. That is
// safe, because tokens are sent in a header that a page must set, never in a cookie.
type CORS struct {
	Origins []string `json:"origins,omitempty"`
}

// Log configures the log of the process.
type Log struct {
	Level  string `json:"level"`
	Format string `json:"format"`
	// File replaces standard error. The server reopens it on SIGHUP. A relative path is
	// relative to the data directory.
	File string `json:"file"`
	// Access selects the requests to log: "all", "errors" (status 400 and above) or
	// "off". The server always logs its own failures.
	Access string `json:"access"`
	// AccessRate limits these lines per second, separately for successes and failures.
	// 0 is unlimited.
	AccessRate int `json:"accessRate"`
}

// Values of Log.Access.
const (
	AccessAll    = "all"
	AccessErrors = "errors"
	AccessOff    = Off
)

// Metrics configures /metrics on the ops address.
type Metrics struct {
	// Topics adds series for each topic to those of each namespace.
	Topics bool `json:"topics"`
}

// Audit configures the audit log. A relative path is relative to the data directory;
// "off" disables the log.
type Audit struct {
	Path    string `json:"path"`
	MaxSize Size   `json:"maxSize"`
	Keep    int    `json:"keep"`
}

// Backup configures the backups that the server takes automatically.
type Backup struct {
	// Directory receives the backups, each in a folder of its own; "" disables them.
	Directory string `json:"directory"`
	// Every is the time from the newest backup to the next one.
	Every Duration `json:"every"`
	// Keep is the number of backups; the server deletes older ones.
	Keep int `json:"keep"`
	// WithoutKeys leaves out the encryption keys, the operator's token and the
	// certificate authority.
	WithoutKeys bool `json:"withoutKeys"`
}
