package cli

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"freshet/test/freeport"
)

// workFolder is a folder in which the tests run commands such as freshet doctor.
type workFolder struct {
	*testing.T
	dir string
}

func newWorkFolder(t *testing.T) workFolder {
	t.Helper()
	p := workFolder{t, t.TempDir()}
	if err := populate(p.dir, server); err != nil {
		t.Fatal(err)
	}
	return p
}

// do runs a script that must succeed.
func (p workFolder) do(script string) {
	p.Helper()
	if out, err := bash(p.Context(), p.dir, server, script); err != nil {
		p.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// file writes a file into the folder, and creates its parent folders.
func (p workFolder) file(name, text string) {
	p.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// freeAddress returns an address with a free port.
func freeAddress(t *testing.T) string {
	t.Helper()
	addresses, err := freeport.Addresses(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

// ensembleMember creates the configuration of the first of three members; the other two do not run.
func ensembleMember() func(workFolder) string {
	return func(p workFolder) string {
		p.Helper()
		args := ""
		for _, name := range []string{"a", "b", "c"} {
			args += fmt.Sprintf(" %s=%s,%s,%s", name, freeAddress(p.T), freeAddress(p.T), freeAddress(p.T))
		}
		p.file("a.yaml", "dataDir: a-data\nhttp: 127.0.0.1:0\nhttps: off\nops: off\n")
		p.do("freshet ensemble init --base-url http://127.0.0.1:8080 --out group" + args +
			"\nfreshet ensemble join group/a.bundle --config a.yaml")
		return "--config a.yaml"
	}
}

// TestDoctor creates each fault and checks that doctor prints a line about it with the next
// step, and fails.
func TestDoctor(t *testing.T) {
	t.Parallel()
	const as = "--server $SERVER --ca-file freshet-data/tls/ca.crt "
	for name, c := range map[string]struct {
		seed func(p workFolder) (args string)
		want string // a line
		fine bool   // no check fails
	}{
		"nothing": {func(workFolder) string { return "" }, `^ok    console `, true},
		"clock skew": {func(p workFolder) string {
			target, err := url.Parse(server.URL)
			if err != nil {
				p.Fatal(err)
			}
			proxy := &httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
				ModifyResponse: func(r *http.Response) error {
					r.Header.Set("Date", time.Now().Add(10*time.Minute).UTC().Format(http.TimeFormat))
					return nil
				},
			}
			skewed := httptest.NewServer(proxy)
			p.Cleanup(skewed.Close)
			return "--token-file freshet-data/admin.token --server " + skewed.URL
		}, `^FAIL  clock .*differ by (9m5|10m)\S+\. Set both by NTP`, false},
		"expired token": {func(p workFolder) string {
			p.do(`freshet org create doctor-expired
				freshet sa create old -n doctor-expired
				freshet apikey create old --account old -n doctor-expired --expires 15s --out token
				until { freshet doctor ` + as + `--token-file token || true; } |
					grep -q 'token of .* has expired'; do :; done`)
			return as + "--token-file token"
		}, `^FAIL  token .* has expired at .*freshet apikey create`, false},
		"disk limit": {func(p workFolder) string {
			p.file("disk.yaml", "dataDir: data\nhttp: 127.0.0.1:0\nhttps: off\nops: off\nlimits: {diskReserve: "+
				"1048576Gi}\n")
			return "--config disk.yaml"
		}, `^FAIL  disk .*1 PiB: the server accepts no messages\. Free some space`, false},
		"wrong authority": {func(p workFolder) string {
			other := httptest.NewTLSServer(nil)
			p.Cleanup(other.Close)
			p.file("other.crt", string(
				pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})))
			return "--server $SERVER --ca-file other.crt --token-file freshet-data/admin.token"
		}, `^FAIL  certificate .*not from the certificate authority that you trust\. Set .* --ca-file`, false},
		"port taken": {func(p workFolder) string {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				p.Fatal(err)
			}
			p.Cleanup(func() { _ = listener.Close() })
			p.file("port.yaml", fmt.Sprintf("dataDir: data\nhttp: %s\nhttps: off\nops: off\n", listener.Addr()))
			return "--config port.yaml"
		}, `^FAIL  port http .* is in use by another program\. Stop that program .* or set http to another`, false},
		"revoked key": {func(p workFolder) string {
			p.do(`freshet org create doctor-revoked
				freshet sa create lost -n doctor-revoked
				freshet apikey create lost --account lost -n doctor-revoked --out token
				freshet apikey revoke lost -n doctor-revoked`)
			return as + "--token-file token -n doctor-revoked"
		}, `^FAIL  token .*has been revoked\. Create another with 'freshet apikey create`, false},
		"etcd": {func(p workFolder) string {
			p.file("etcd.yaml", fmt.Sprintf("dataDir: data\nhttp: 127.0.0.1:0\nhttps: off\nops: off\netcd: "+
				"{endpoints: ['http://%s'], singleReplica: true}\n", freeAddress(p.T)))
			return "--config etcd.yaml"
		}, `^FAIL  etcd .*connection refused\. Start etcd, or correct etcd.endpoints`, false},
		"NATS": {
			ensembleMember(),
			`^FAIL  member b .*\(the message log, NATS\) does not respond: .*connection refused\. ` +
				`Start the server b, .*members\.list\[1\]\.log`, false,
		},
		"NATS of one's own": {func(p workFolder) string {
			args := ensembleMember()(p)
			p.do(`sed -i 's/, *log: *[^,}]*//; /^ *log:/d' a.yaml; echo "nats: {urls: ['nats://` + freeAddress(p.T) +
				`']}" >>a.yaml`)
			return args
		}, `^FAIL  nats .*connecting to NATS at nats://.*\. Start the NATS servers, or correct nats\.urls`, false},
		"etcd of a member": {
			ensembleMember(),
			`^FAIL  member c .*\(the resource store, etcd\) does not respond: .*connection refused\. ` +
				`Start the server c, `, false,
		},
		"no bundle": {func(p workFolder) string {
			args := ensembleMember()(p)
			p.do("rm -r a-data/members")
			return args
		}, `^FAIL  members .*has no certificate of member a\. .*freshet ensemble join BUNDLE`, false},
		"member alone": {func(p workFolder) string {
			ensembleMember()(p)
			p.file("alone.yaml", "dataDir: a-data\nhttp: 127.0.0.1:0\nhttps: off\nops: off\n")
			return "--config alone.yaml"
		}, `^FAIL  members .*data directory of member a of an ensemble, .*\. ` +
			`Start the server with the configuration .*--config`, false},
		"missing role": {func(p workFolder) string {
			p.do(`freshet org create doctor-role
				freshet sa create nobody -n doctor-role --out nobody.json`)
			return as + "--credentials-file nobody.json"
		}, `^FAIL  roles .*nobody.* has no role in organization doctor-role.*freshet grant`, false},
		"newer data": {func(p workFolder) string {
			p.file("data/FORMAT", "freshet data directory\ndirectory 99\ndirectory 99\n")
			p.file("new.yaml", "dataDir: data\nhttp: 127.0.0.1:0\nhttps: off\nops: off\n")
			return "--config new.yaml"
		}, `^FAIL  data format .*newer version of the server; start that version`, false},
		"older data": {func(p workFolder) string {
			p.file("data/FORMAT", "freshet data directory\ndirectory 0\ndirectory 0\n")
			p.file("old.yaml", "dataDir: data\nhttp: 127.0.0.1:0\nhttps: off\nops: off\n")
			return "--config old.yaml"
		}, `^warn  data format .*older version\. .*take a backup`, true},
		"open directory": {func(p workFolder) string {
			p.file("data/FORMAT", "freshet data directory\n"+
				"directory 1\nkeys 1\naudit 1\ndirectory 1\nkeys 1\naudit 1\n")
			p.file("open.yaml", "dataDir: data\nhttp: 127.0.0.1:0\nhttps: off\nops: off\n")
			p.do("chmod 755 data")
			return "--config open.yaml"
		}, `^FAIL  data directory .*mode 0755.*chmod 700`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newWorkFolder(t)
			args := c.seed(p)
			// With --config, doctor checks this machine only: no context of another server may be used.
			if strings.HasPrefix(args, "--config") {
				args = "env -u FRESHET_SERVER freshet doctor " + args
				p.do("rm freshet-data")
			} else {
				args = "freshet doctor " + args
			}
			out, err := bash(t.Context(), p.dir, server, args)
			if (err == nil) != c.fine || c.fine == strings.Contains(out, "FAIL") {
				t.Errorf("%s: got %v, want failure: %t\n%s", args, err, !c.fine, out)
			}
			if !regexp.MustCompile("(?m)" + c.want).MatchString(out) {
				t.Errorf("%s: want a line %s, got\n%s", args, c.want, out)
			}
			if c.fine {
				return
			}
			if out, err := bash(t.Context(), p.dir, server, args+" -o json"); err == nil ||
				!strings.Contains(out, `"ok": false`) || !strings.Contains(out, `"status": "FAIL"`) {
				t.Errorf("%s -o json: %v\n%s", args, err, out)
			}
		})
	}
}

// TestDoctorChecksKafka checks the Kafka protocol of the cluster that the command names, with the
// settings of a server that was started with its defaults.
func TestDoctorChecksKafka(t *testing.T) {
	t.Parallel()
	s, err := startOwn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	if err := populate(dir, s); err != nil {
		t.Fatal(err)
	}
	out, err := bash(t.Context(), dir, s, `freshet apply --wait -f - > applied <<END
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingInstance
metadata: {name: other}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingCluster
metadata: {name: east}
spec: {instanceName: other, location: local, broker: {}, config: {protocols: {stream: {}}}}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingCluster
metadata: {name: quiet}
spec: {instanceName: other, location: local, broker: {}, config: {protocols: {}}}
END
		for cluster in default east quiet; do freshet doctor --cluster $cluster; done`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`(?m)^ok    stream +cluster default/default responds at SASL_PLAINTEXT://` + regexp.QuoteMeta(s.Kafka),
		`(?m)^ok    stream +cluster default/east responds at SASL_PLAINTEXT://` + regexp.QuoteMeta(s.Kafka),
		`(?m)^ok    stream +cluster default/east responds at SASL_SSL://east\.default\.`,
		`(?m)^ok    stream +cluster default/quiet has no address of the Kafka protocol`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("want a line %s, got\n%s", want, out)
		}
	}
}
