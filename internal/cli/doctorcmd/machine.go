package doctorcmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"freshet.dev/client"
	"freshet/internal/base/filelock"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
	"freshet/internal/config"
	"freshet/internal/ops/disk"
)

// machine checks the prerequisites of a server on this machine, and reports whether a
// server is running.
func (d *doctor) machine(ctx context.Context) bool {
	if !d.configuration() {
		return false
	}
	d.serverRunning = d.directory()
	if d.serverRunning && d.file == "" {
		d.running(ctx)
	}
	d.disk()
	d.etcd(ctx)
	d.nats(ctx)
	d.members(ctx)
	d.addresses(ctx)
	if !d.serverRunning {
		d.warned("server", "no server is running on "+d.config.DataDir, "Start it with 'freshet serve'.")
	}
	return d.serverRunning
}

// configuration reads the configuration with which a server would start.
func (d *doctor) configuration() bool {
	cfg, err := config.Default(), error(nil)
	from := "defaults and environment"
	if d.file != "" {
		from = d.file
		cfg, err = config.Load(d.file)
	}
	if err == nil {
		err = cfg.ApplyEnvironment(os.Environ())
	}
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		d.failed("configuration", err.Error(),
			"Correct it; docs/reference/configuration.md describes every setting, 'freshet config check FILE' checks "+
				"the file.")
		return false
	}
	d.config = cfg
	d.good("configuration", "%s: valid", from)
	return true
}

// directory checks the data directory, and reports whether a server is using it.
func (d *doctor) directory() bool {
	dir := d.config.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.good("data directory", "%s does not exist yet: the first start creates it", dir)
		return false
	case err != nil:
		d.failed("data directory", err.Error(), "Give the user of the server access to it.")
		return false
	case !info.IsDir():
		d.failed("data directory", dir+" is not a directory", "Set another one with dataDir, or move the file away.")
		return false
	}
	d.permissions(dir, info)
	older, err := d.inspector.Formats(dir)
	switch {
	case errors.Is(err, command.ErrNoServer):
		d.unchecked("data format")
	case err != nil:
		d.failed("data format", err.Error(), "See docs/howto/upgrade.md.")
	case older:
		d.warned("data format", dir+" was written by an older version", "This version reads it and upgrades it at the "+
			"next start: take a backup first ('freshet backup'), because the older version may not read it "+
			"afterwards; see docs/howto/upgrade.md.")
	default:
		d.good("data format", "the format of this version")
	}
	return d.lock(dir)
}

func (d *doctor) permissions(dir string, info os.FileInfo) {
	if info.Mode().Perm()&0o077 != 0 {
		d.failed("data directory", fmt.Sprintf("%s is accessible to other users (mode %#o): it has keys and messages",
			dir, info.Mode().Perm()), "Run 'chmod 700 "+dir+"'.")
		return
	}
	for _, name := range []string{"admin.token", "admin.json", "encryption.key"} {
		file, err := os.Stat(filepath.Join(dir, name))
		if err == nil && file.Mode().Perm()&0o077 != 0 {
			d.failed("data directory", fmt.Sprintf("%s can be read by other users (mode %#o)", filepath.Join(dir, name),
				file.Mode().Perm()),
				"Run 'chmod 600' on it, and replace the secret: 'freshet admin --help'.")
			return
		}
	}
	d.good("data directory", "%s is accessible only to its owner", dir)
}

// lock reports whether a process holds the directory's lock. It releases its own shared
// lock by closing the file.
func (d *doctor) lock(dir string) bool {
	file, err := os.Open(filepath.Join(dir, "LOCK"))
	if err != nil {
		return false // no server has used the directory
	}
	defer func() { _ = file.Close() }() // only read
	if filelock.TryShared(file) == nil {
		return false
	}
	pid := make([]byte, 16)
	n, _ := file.Read(pid) // the process id is optional
	d.good("lock", "a server is using the directory (pid %s)", strings.TrimSpace(string(pid[:n])))
	return true
}

// running replaces the configuration with that of the running server, which includes its
// flags. It keeps the old one if the server does not return its own.
func (d *doctor) running(ctx context.Context) {
	conn, err := d.env.Client()
	if err != nil {
		return // the connection checks report it
	}
	defer conn.Close()
	response, err := conn.Do(ctx, &client.Request{
		Method: http.MethodGet, Path: "/system/v1alpha1/configuration",
		Timeout: requestTimeout,
	})
	if err != nil {
		return
	}
	if cfg, err := config.Parse(response.Body); err == nil {
		cfg.DataDir = d.config.DataDir // the server's path can be relative to another directory
		d.config = cfg
	}
}

// disk compares the free space with the disk reserve.
func (d *doctor) disk() {
	dir := d.config.Path("clusters") // the message stores
	for {                            // before the first start only a parent directory exists
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	total, free, err := disk.Space(dir)
	if err != nil {
		d.failed("disk", err.Error(), "Check the file system of "+dir+".")
		return
	}
	reserve := config.DiskReserve(total, d.config.Limits.DiskReserve)
	text := fmt.Sprintf("%s free of %s, the server accepts messages down to %s", output.Bytes(free, 4),
		output.Bytes(total, 4), output.Bytes(reserve, 4))
	const next = "Free some space, shorten retention, or lower limits.diskReserve; consuming and deleting still work."
	switch {
	case free < reserve:
		d.failed("disk", text+": the server accepts no messages", next)
	case free < 2*reserve:
		d.warned("disk", text+": nearly full", next)
	default:
		d.good("disk", "%s", text)
	}
}

// etcd checks the health of an external etcd. The server's own health includes an embedded
// one.
func (d *doctor) etcd(ctx context.Context) {
	if !d.config.Etcd.External() {
		return
	}
	const next = "Start etcd, or correct etcd.endpoints and its certificates; the server does not start without etcd."
	httpClient, err := etcdClient(&d.config.Etcd)
	if err != nil {
		d.failed("etcd", err.Error(), next)
		return
	}
	for _, endpoint := range d.config.Etcd.Endpoints {
		if !strings.Contains(endpoint, "://") {
			endpoint = "http://" + endpoint
		}
		if err := healthy(ctx, httpClient, endpoint); err != nil {
			d.failed("etcd", fmt.Sprintf("%s cannot be used: %v", endpoint, err), next)
			continue
		}
		d.good("etcd", "%s is healthy", endpoint)
	}
}

func etcdClient(cfg *config.Etcd) (*http.Client, error) {
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, err
		}
		secured.RootCAs = x509.NewCertPool()
		if !secured.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("file %s has no certificate", cfg.CAFile)
		}
	}
	if cfg.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, err
		}
		secured.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{TLSClientConfig: secured}}, nil
}

func healthy(ctx context.Context, httpClient *http.Client, endpoint string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimRight(endpoint, "/")+"/health", http.NoBody)
	if err != nil {
		return err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // only the status matters
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("health check returned %s", response.Status)
	}
	return nil
}

// addresses checks that a running server listens at its addresses, or that a server could.
func (d *doctor) addresses(ctx context.Context) {
	c := d.config
	own, index := c.Members.Own()
	setting := fmt.Sprintf("members.list[%d].", index)
	for _, l := range []struct{ name, setting, address string }{
		{"internal", setting + "internal", own.Internal},
		{"etcd", setting + "etcd", own.Etcd},
		{"log", setting + "log", own.Log},
		{"http", "http", c.HTTP},
		{"https", "https", c.HTTPS},
		{"ops", "ops", c.Ops},
		{"stream", "stream.plain", c.Kafka.Plain},
		{"stream tls", "stream.tls", c.Kafka.TLS},
	} {
		if l.address == config.Off || l.address == config.Auto || l.address == "" ||
			strings.HasSuffix(l.address, ":0") {
			continue
		}
		check := "port " + l.name
		if d.serverRunning {
			if err := dial(ctx, l.address); err != nil {
				d.warned(check, fmt.Sprintf("a server is using the data directory, but no program listens at %s",
					l.address),
					"This is expected if it was started with other flags; otherwise restart it, and see its log.")
				continue
			}
			d.kafkaReached = d.kafkaReached || strings.HasPrefix(l.name, "stream")
			d.good(check, "%s accepts connections", l.address)
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			d.failed(check, l.address+" is in use by another program",
				fmt.Sprintf("Stop that program ('ss -ltnp' shows it), or set %s to another address.", l.setting))
		case errors.Is(err, syscall.EACCES):
			d.failed(check, "this user may not listen at "+l.address,
				"Ports below 1024 require CAP_NET_BIND_SERVICE; the unit of 'freshet generate systemd' has it.")
		case err != nil:
			d.failed(check, err.Error(), fmt.Sprintf("Set %s to an address of this machine.", l.setting))
		default:
			_ = listener.Close() // it was only opened as a test
			d.good(check, "%s is free", l.address)
		}
	}
}

// requestTimeout bounds each request.
const requestTimeout = 10 * time.Second

// dial returns an error if no program listens at the address. An address without a host is
// on this machine.
func dial(ctx context.Context, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	conn, err := (&net.Dialer{Timeout: requestTimeout}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	return conn.Close()
}
