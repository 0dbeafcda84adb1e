package charts

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// network gives every pod a loopback address of its own, so that all pods can use the ports of the manifests.
type network struct {
	hosts string // /etc/hosts of every pod
	ip    []string
	set   string
}

func newNetwork(set, service string, pods int) *network {
	n := &network{set: set}
	prefix := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(256))
	for i := range pods {
		ip := fmt.Sprint(prefix, i+1)
		n.ip = append(n.ip, ip)
		n.hosts += fmt.Sprintf("%s %s-%d.%s.%s.svc\n", ip, set, i, service, namespace)
	}
	n.hosts += "127.0.0.1 localhost\n"
	return n
}

// pod runs the containers of a pod as processes: in a root directory with the binary and the mounted volumes
// only, and as the user of the manifests, who can write to the writable volumes and nowhere else.
type pod struct {
	t    *testing.T
	name string
	ip   string
	root string
	user *corev1.PodSecurityContext
	join []corev1.Container
	main corev1.Container

	process *exec.Cmd
	exited  chan error
	log     *os.File
}

func newPod(t *testing.T, ordinal int, n *network, spec *corev1.PodSpec, config, bundles string) *pod {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: running the manifests as their user in their own root directory needs root")
	}
	p := &pod{
		t: t, name: fmt.Sprintf("%s-%d", n.set, ordinal), ip: n.ip[ordinal], root: t.TempDir(),
		user: spec.SecurityContext, join: spec.InitContainers, main: spec.Containers[0],
	}
	t.Cleanup(p.kill)
	program, err := os.ReadFile(binary(t))
	if err != nil {
		t.Fatal(err)
	}
	p.file("freshet", string(program), 0o755)
	// The service for clients leads to any pod that is ready; here it leads to the pod that calls it.
	p.file("etc/hosts", fmt.Sprintf("%s%s %s.%s.svc\n", n.hosts, p.ip, n.set, namespace), 0o644)
	// A pod has an address of its own; here it is one of several on loopback.
	p.file("config/freshet.yaml", strings.ReplaceAll(config, "0.0.0.0", p.ip), 0o444)
	for _, volume := range spec.Volumes {
		if volume.Secret != nil && volume.Name == "bundle" {
			p.mountBundle(volume.Secret, bundles)
		}
	}
	for _, folder := range []string{"data", "tmp"} { // as with fsGroup
		path := filepath.Join(p.root, folder)
		if err := os.Mkdir(path, 0o770); err != nil {
			t.Fatal(err)
		}
		p.own(path)
		if err := os.Chmod(path, 0o770|os.ModeSetgid); err != nil {
			t.Fatal(err)
		}
	}
	if p.log, err = os.Create(filepath.Join(t.TempDir(), p.name+".log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.log.Close() })
	return p
}

// mountBundle mounts what subPathExpr selects of the secret.
func (p *pod) mountBundle(secret *corev1.SecretVolumeSource, bundles string) {
	p.t.Helper()
	for _, mount := range p.join[0].VolumeMounts {
		if mount.Name != "bundle" {
			continue
		}
		want := strings.ReplaceAll(mount.SubPathExpr, "$(POD_NAME)", p.name)
		for _, item := range secret.Items {
			if item.Path != want {
				continue
			}
			text, err := os.ReadFile(filepath.Join(bundles, item.Key))
			if err != nil {
				p.t.Fatal(err)
			}
			p.file(strings.TrimPrefix(mount.MountPath, "/"), string(text), os.FileMode(*secret.DefaultMode))
			return
		}
	}
	p.t.Fatalf("the pod %s mounts no bundle", p.name)
}

// file writes a file that the group of the pod can read as mode allows.
func (p *pod) file(name, text string, mode os.FileMode) {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), mode)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.own(path)
}

func (p *pod) own(path string) {
	if err := os.Chown(path, 0, int(*p.user.FSGroup)); err != nil {
		p.t.Fatal(err)
	}
}

// command returns the process of a container, with other arguments if there are any.
func (p *pod) command(ctx context.Context, c *corev1.Container, args ...string) *exec.Cmd {
	if len(args) == 0 {
		args = c.Args
	}
	cmd := exec.CommandContext(ctx, c.Command[0], args...)
	cmd.Env = []string{}
	for _, v := range c.Env {
		value := v.Value
		if v.ValueFrom != nil { // the name of the pod is the only field that the chart uses
			value = p.name
		}
		cmd.Env = append(cmd.Env, v.Name+"="+strings.ReplaceAll(value, "$(POD_NAME)", p.name))
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root, Credential: &syscall.Credential{
		Uid: uint32(*p.user.RunAsUser), Gid: uint32(*p.user.RunAsGroup), Groups: []uint32{uint32(*p.user.FSGroup)},
	}}
	return cmd
}

// start runs the init containers to their end, and starts the main one.
func (p *pod) start() {
	p.t.Helper()
	for _, c := range p.join {
		if out, err := p.command(p.t.Context(), &c).CombinedOutput(); err != nil {
			p.t.Fatalf("%s, init container %s: %v\n%s", p.name, c.Name, err, out)
		}
	}
	p.process = p.command(context.WithoutCancel(p.t.Context()), &p.main)
	p.process.Stdout, p.process.Stderr = p.log, p.log
	if err := p.process.Start(); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
	process, exited := p.process, make(chan error, 1)
	p.exited = exited
	go func() { exited <- process.Wait() }()
}

// stop stops the pod as Kubernetes does.
func (p *pod) stop() {
	p.t.Helper()
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case err := <-p.exited:
		if err != nil {
			p.t.Fatalf("%s: exit after SIGTERM: %v\n%s", p.name, err, p.tail())
		}
		p.process = nil
	case <-time.After(10 * time.Minute): // a starved machine is slower than the grace period
		p.t.Fatalf("%s does not stop\n%s", p.name, p.tail())
	}
}

func (p *pod) kill() {
	if p.process != nil {
		_ = p.process.Process.Kill()
		<-p.exited
	}
}

// awaitProbe repeats a probe until it succeeds.
func (p *pod) awaitProbe(name string, probe *corev1.Probe) {
	p.t.Helper()
	var port int32
	for _, listed := range p.main.Ports {
		if listed.Name == probe.HTTPGet.Port.StrVal {
			port = listed.ContainerPort
		}
	}
	// The kubelet does not verify certificates either.
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	defer client.CloseIdleConnections()
	url := fmt.Sprintf("%s://%s:%d%s", strings.ToLower(string(probe.HTTPGet.Scheme)), p.ip, port, probe.HTTPGet.Path)
	p.await("the probe "+name, func() (bool, string) {
		response, err := client.Get(url)
		if err != nil {
			return false, err.Error()
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK, fmt.Sprintf("%s: %s", response.Status, body)
	})
}

// await polls until done returns true, or until the process exits.
func (p *pod) await(what string, done func() (bool, string)) {
	p.t.Helper()
	deadline := time.NewTimer(10 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, why := done()
		if ok {
			return
		}
		select {
		case err := <-p.exited:
			p.process = nil
			p.t.Fatalf("%s exited before %s: %v\n%s", p.name, what, err, p.tail())
		case <-deadline.C:
			p.t.Fatalf("%s: %s: %s\n%s", p.name, what, why, p.tail())
		case <-tick.C:
		}
	}
}

// exec runs a command in the pod, as kubectl exec does, and returns its standard output.
func (p *pod) exec(args ...string) string {
	p.t.Helper()
	return p.awaitExec(func(string) bool { return true }, args...)
}

// produce sends a message to the topic orders. A repeated call does not store it twice.
func (p *pod) produce(message string) {
	p.t.Helper()
	p.exec("produce", "orders", message, "--idempotency-key", message)
}

// consume returns messages of the topic orders, from its beginning.
func (p *pod) consume(count int) string {
	p.t.Helper()
	return p.exec("consume", "orders", "-s", "check", "--create-from", "earliest", "--follow", "--count",
		strconv.Itoa(count))
}

// awaitExec repeats a command until it succeeds with the right output.
func (p *pod) awaitExec(right func(out string) bool, args ...string) (out string) {
	p.t.Helper()
	p.await(fmt.Sprintf("the command %q", args), func() (bool, string) {
		var printed, problems bytes.Buffer
		cmd := p.command(p.t.Context(), &p.main, args...)
		cmd.Stdout, cmd.Stderr = &printed, &problems
		err := cmd.Run()
		out = printed.String()
		return err == nil && right(out), fmt.Sprint(err, ": ", out, problems.String())
	})
	return out
}

// tail returns the end of the pod's log.
func (p *pod) tail() string {
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
