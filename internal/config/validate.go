package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"freshet/internal/base/errs"
)

// problems collects all problems, each with the path of its field, so that one run of
// `freshet config check` reports everything.
type problems []problem

type problem struct{ field, text string }

func (p *problems) addf(field, format string, args ...any) {
	*p = append(*p, problem{field, fmt.Sprintf(format, args...)})
}

// err returns one error that lists the problems. It adds the origin of each field, or of
// the nearest enclosing field that has one.
func (p problems) err(origins map[string]string) error {
	if len(p) == 0 {
		return nil
	}
	lines := []string{"configuration is not valid:"}
	for _, one := range p {
		line := one.field + ": " + one.text
		for field := one.field; field != ""; field = field[:max(0, strings.LastIndexAny(field, ".["))] {
			if origin := origins[field]; origin != "" {
				line += " (" + origin + ")"
				break
			}
		}
		lines = append(lines, line)
	}
	return errs.New(errs.Invalid, strings.Join(lines, "\n  "))
}

// Validate checks the whole configuration. It only reads the files that the configuration
// names.
func (c *Config) Validate() error {
	var p problems
	c.validate(&p)
	return p.err(c.origins)
}

func (c *Config) validate(p *problems) {
	if c.DataDir == "" {
		p.addf("dataDir", "must not be empty")
	}
	c.validateListeners(p)
	c.validateProxies(p)
	c.validateKafka(p)
	c.validateSignIn(p)
	c.validateURLs(p)
	c.validateTLS(p)
	c.validateEtcd(p)
	c.validateSecrets(p)
	c.validatePools(p)
	c.validateBounds(p)
	c.validateQuotas(p)
	c.validateAdmin(p)
	c.validateBackup(p)
	c.validateLog(p)
	c.validateMembers(p)
	c.validateNATS(p)
}

func (c *Config) validateListeners(p *problems) {
	if c.HTTP == Off && c.HTTPS == Off {
		p.addf("https", "http and https are both off, so clients cannot reach the server; enable one of them")
	}
	seen := map[string]string{}
	for _, l := range []struct{ field, address string }{{"http", c.HTTP}, {"https", c.HTTPS}, {"ops", c.Ops}} {
		if l.address == Off {
			continue
		}
		_, port, err := net.SplitHostPort(l.address)
		if n, convErr := strconv.Atoi(port); err != nil || convErr != nil || n < 0 || n > 65535 {
			p.addf(l.field, "%q must be host:port, or off", l.address)
			continue
		}
		if other, taken := seen[l.address]; taken && port != "0" {
			p.addf(l.field, "%s is already the address of %s", l.address, other)
		}
		seen[l.address] = l.field
	}
	if c.HTTP != Off && !c.InsecureHTTP && !isLoopback(c.HTTP) {
		p.addf("http", "%s can be reached from other machines, and plain HTTP sends tokens unencrypted; "+
			"use https, or allow it with insecureHTTP: true (--insecure-http)", c.HTTP)
	}
}

// isLoopback reports whether an address is a literal loopback address or "localhost". It
// resolves no other names, because their addresses can change.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // another check reports the malformed address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

var (
	labelPattern     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	subdomainPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

func (p *problems) checkLabel(field, value string) {
	if !labelPattern.MatchString(value) {
		p.addf(field, "%q must be at most 63 lower-case letters, digits and '-'", value)
	}
}

func (p *problems) checkSubdomain(field, value string) {
	if len(value) > 253 || !subdomainPattern.MatchString(value) {
		p.addf(field, "%q must be a DNS name in lower case", value)
	}
}

func (c *Config) validateURLs(p *problems) {
	p.checkOrigin("baseURL", c.BaseURL)
	if c.BaseURL == "" && c.Etcd.External() && !c.Etcd.SingleReplica && !c.Members.Enabled() {
		p.addf("baseURL", "must be set when etcd is external, because all replicas issue and accept tokens for the "+
			"same URL")
	}
	p.checkOrigin("issuerURL", c.IssuerURL)
	p.checkSubdomain("domain", c.Domain)
	if c.DefaultCluster == Off {
		return
	}
	organization, cluster, ok := strings.Cut(c.DefaultCluster, "/")
	if !ok || !labelPattern.MatchString(organization) || !subdomainPattern.MatchString(cluster) {
		p.addf("defaultCluster", "%q must be organization/cluster, or off", c.DefaultCluster)
	}
}

// checkOrigin checks that a URL consists of scheme and host only. Every surface is mounted at
// the root, so a path would match no route.
func (p *problems) checkOrigin(field, value string) {
	if value == "" {
		return
	}
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		p.addf(field, "must be http(s)://host[:port] without path, query or user")
	}
}

func (c *Config) validateTLS(p *problems) {
	p.checkPair("tls", c.TLS.CertFile, c.TLS.KeyFile)
	p.checkReadable("tls.certFile", c.TLS.CertFile)
	p.checkReadable("tls.keyFile", c.TLS.KeyFile)
	for i, name := range c.TLS.Names {
		if net.ParseIP(name) == nil {
			p.checkSubdomain(fmt.Sprintf("tls.names[%d]", i), strings.TrimPrefix(name, "*."))
		}
	}
}

func (c *Config) validateEtcd(p *problems) {
	for i, endpoint := range c.Etcd.Endpoints {
		field := fmt.Sprintf("etcd.endpoints[%d]", i)
		u, err := url.Parse(endpoint)
		switch {
		case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil:
			p.addf(field, "must be http(s)://host:port")
		case u.Scheme == "http" && c.Etcd.CertFile+c.Etcd.CAFile != "":
			p.addf(field, "must be https, because etcd.certFile or etcd.caFile is set")
		}
	}
	p.checkPair("etcd", c.Etcd.CertFile, c.Etcd.KeyFile)
	p.checkReadable("etcd.caFile", c.Etcd.CAFile)
	p.checkReadable("etcd.certFile", c.Etcd.CertFile)
	p.checkReadable("etcd.keyFile", c.Etcd.KeyFile)
	if !strings.HasPrefix(c.Etcd.Prefix, "/") || strings.HasSuffix(c.Etcd.Prefix, "/") {
		p.addf("etcd.prefix", "%q must start with / and must not end with /", c.Etcd.Prefix)
	}
	if c.Etcd.Quota < 16<<20 {
		p.addf("etcd.quota", "%s is too small; the minimum is 16Mi", c.Etcd.Quota)
	}
	if c.Etcd.CompactionInterval < Duration(time.Minute) {
		p.addf("etcd.compactionInterval", "%s is too short; the minimum is 1m", c.Etcd.CompactionInterval)
	}
}

func (c *Config) validateSecrets(p *problems) {
	if c.EncryptionKey.File == "" && c.Etcd.External() && !c.Etcd.SingleReplica && !c.Members.Enabled() {
		p.addf("encryptionKey.file", "must be set when etcd is external, because all replicas need the same keys")
	}
	p.checkReadable("encryptionKey.file", c.EncryptionKey.File)
}

func (c *Config) validatePools(p *problems) {
	if len(c.Pools) == 0 {
		p.addf("pools", "must contain at least one pool")
	}
	pools, members := map[string]bool{}, map[string]bool{}
	for i := range c.Pools {
		pool, field := &c.Pools[i], fmt.Sprintf("pools[%d]", i)
		p.checkLabel(field+".name", pool.Name)
		p.checkLabel(field+".namespace", pool.Namespace)
		if !poolTypes[pool.Type] {
			p.addf(field+".type", "%q must be generic, aws, gcloud or azure", pool.Type)
		}
		if id := pool.Namespace + "/" + pool.Name; pools[id] {
			p.addf(field+".name", "%s is listed twice", id)
		} else {
			pools[id] = true
		}
		if len(pool.Members) == 0 {
			p.addf(field+".members", "must contain at least one member")
		}
		for j, member := range pool.Members {
			c.validateMember(p, fmt.Sprintf("%s.members[%d]", field, j), member)
			if id := pool.Namespace + "/" + member.Name; members[id] {
				p.addf(fmt.Sprintf("%s.members[%d].name", field, j), "%s is listed twice", id)
			} else {
				members[id] = true
			}
		}
	}
}

var poolTypes = map[string]bool{"generic": true, "aws": true, "gcloud": true, "azure": true}

func (c *Config) validateMember(p *problems, field string, member PoolMember) {
	p.checkLabel(field+".name", member.Name)
	p.checkLabel(field+".location", member.Location)
	switch {
	case member.Engine != EnginePebble:
		p.addf(field+".engine", "%q must be pebble", member.Engine)
	case c.Etcd.External() && !c.Etcd.SingleReplica && !c.Members.Enabled():
		p.addf(field+".engine", "pebble stores a cluster's data on this machine only, so replicas that share "+
			"an external etcd would not see the same data; set etcd.singleReplica: true if this is the only replica")
	}
}

// validateBackup requires an absolute path, because a relative one depends on the working
// directory, and one outside of the data directory, because backups must survive its loss.
func (c *Config) validateBackup(p *problems) {
	dir := c.Backup.Directory
	if dir == "" {
		return
	}
	if !filepath.IsAbs(dir) {
		p.addf("backup.directory", "%q must be an absolute path", dir)
		return
	}
	data, err := filepath.Abs(c.DataDir)
	if err != nil {
		return // the working directory is unknown
	}
	if inside, err := filepath.Rel(data, dir); err == nil && filepath.IsLocal(inside) {
		p.addf("backup.directory", "%s is inside the data directory and would be lost with it; use another directory",
			dir)
	}
}

func (c *Config) validateAdmin(p *problems) {
	p.checkLabel("admin.organization", c.Admin.Organization)
	p.checkSubdomain("admin.serviceAccount", c.Admin.ServiceAccount)
}

func (c *Config) validateLog(p *problems) {
	switch c.Log.Level {
	case "debug", "info", "warn", "error":
	default:
		p.addf("log.level", "%q must be debug, info, warn or error", c.Log.Level)
	}
	switch c.Log.Format {
	case "text", "json":
	default:
		p.addf("log.format", "%q must be text or json", c.Log.Format)
	}
	switch c.Log.Access {
	case AccessAll, AccessErrors, AccessOff:
	default:
		p.addf("log.access", "%q must be all, errors or off", c.Log.Access)
	}
	if c.Audit.Path == "" {
		p.addf("audit.path", "must be a path, or off")
	}
	p.checkContact("securityContact", c.SecurityContact)
	for i, origin := range c.CORS.Origins {
		if origin != "*" {
			p.checkOrigin(fmt.Sprintf("cors.origins[%d]", i), origin)
		}
	}
}

// maxContact limits the length of a contact, in bytes.
const maxContact = 500

// checkContact checks a contact of security.txt: a URI of a kind that people can use, on one line.
func (p *problems) checkContact(field, contact string) {
	if contact == "" {
		return
	}
	u, err := url.Parse(contact)
	valid := err == nil && len(contact) <= maxContact && !strings.ContainsFunc(contact, unicode.IsSpace) &&
		(u.Scheme == "https" && u.Host != "" || u.Scheme == "mailto" && strings.Contains(u.Opaque, "@") ||
			u.Scheme == "tel" && u.Opaque != "")
	if !valid {
		p.addf(field, "%q must be a URI such as mailto:security@example.com or https://example.com/security", contact)
	}
}

func (p *problems) checkPair(field, cert, key string) {
	if (cert == "") != (key == "") {
		p.addf(field, "certFile and keyFile must be set together")
	}
}

func (p *problems) checkReadable(field, path string) {
	if path == "" {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		p.addf(field, "%v", err)
		return
	}
	_ = f.Close() // opened for reading only
}
