package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"freshet/test/origins"
	"freshet/test/testserver"
)

// kafkaServer is a real server with Kafka enabled, shared by all clients.
type kafkaServer struct {
	*testserver.Server
	folder string
	avro   string // topic whose values have schemas

	origins *origins.Set // topics that every client reads with one consumer
	output  string       // folder to which clients write the records that they read from them
}

// environment returns the environment variables of scripts and modules.
func (s *kafkaServer) environment() []string {
	return append(append(os.Environ(), s.origins.Environment(s.output)...),
		"FRESHET_SERVER="+s.URL, "FRESHET_TOKEN="+s.Token, "FRESHET_STREAM="+s.Kafka, "FRESHET_STREAM_TLS="+s.KafkaTLS,
		"FRESHET_CA="+filepath.Join(s.DataDir, "tls", "ca.crt"), "FRESHET_DATA="+s.DataDir,
		"FRESHET_AVRO_TOPIC="+s.avro,
		"FRESHET_CLIENT_ID="+s.ClientID, "FRESHET_CLIENT_SECRET="+s.ClientSecret,
	)
}

// run runs a program in a folder, with the server's addresses in its environment.
func (s *kafkaServer) run(t *testing.T, folder string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	cmd.Env = append(s.environment(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is run for programs that must succeed.
func (s *kafkaServer) must(t *testing.T, folder string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := s.run(t, folder, env, name, args...)
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return out
}

// TestKafkaClients runs third-party Kafka clients against one server: the modules and
// scripts of this folder, and programs.
func TestKafkaClients(t *testing.T) {
	t.Parallel()
	need(t)
	folder := t.TempDir()
	binary, err := testserver.Binary(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(t.Context(), binary, folder, testserver.Options{Kafka: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &kafkaServer{Server: server, folder: folder, avro: "clients-avro", output: t.TempDir()}
	t.Cleanup(s.Kill)
	s.writeAvro(t)
	if s.origins, err = origins.Fill(t.Context(), []string{s.Kafka}, s.Token, "origins"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, *kafkaServer){
		"franz": testFranz, "sarama": module(&origins.Sarama), "segmentio": module(&origins.Segmentio),
		"confluent": module(&origins.Confluent, "-run=TestKafka"), "node": testNode,
		// Sequential, because the how-to of Python continues that of kcat.
		"programs": func(t *testing.T, s *kafkaServer) {
			t.Helper()
			t.Run("kcat", func(t *testing.T) { testKcat(t, s) })
			t.Run("python", func(t *testing.T) { testPython(t, s) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// module runs the tests of a separate module, which also read the topics of package origins.
func module(p *origins.Program, flags ...string) func(*testing.T, *kafkaServer) {
	return func(t *testing.T, s *kafkaServer) {
		t.Helper()
		need(t, p.Needs...)
		args := append([]string{"test", "-count=1", "-timeout=5m", "./..."}, flags...)
		out, err := s.run(t, p.Folder, p.Env, "go", args...)
		if err != nil {
			t.Errorf("go %v: %v\n%s", args, err, out)
		}
		if err := p.Check(s.origins, s.output); err != nil {
			t.Error(err)
		}
	}
}

// readOrigins runs a client that reads the topics of package origins.
func (s *kafkaServer) readOrigins(t *testing.T, p *origins.Program, folder string) {
	t.Helper()
	if err := p.Run(t.Context(), s.origins, folder, s.output); err != nil {
		t.Error(err)
	}
}

// testKcat runs the kcat command that the server prints at startup, and then typical uses
// of kcat.
func testKcat(t *testing.T, s *kafkaServer) {
	t.Helper()
	need(t, origins.Kcat.Needs...)
	s.readOrigins(t, &origins.Kcat, s.folder)
	screen, err := os.ReadFile(s.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	var pasted string
	for line := range strings.Lines(string(screen)) {
		if strings.Contains(line, "kcat -b") || strings.HasSuffix(pasted, "\\\n") {
			pasted += line
		}
	}
	if out := s.must(t, s.folder, nil, "bash", "-c", pasted); pasted == "" ||
		!strings.Contains(out, " broker 1 at "+s.Kafka+" (controller)") {
		t.Errorf("%q: got %s, want the broker", pasted, out)
	}
	login := "-X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=user " +
		"-X sasl.password=token:" + s.Token
	kcat := func(args string) string {
		t.Helper()
		return s.must(t, s.folder, nil, "bash", "-euo", "pipefail", "-c",
			strings.ReplaceAll(args, "kcat ", "kcat -q -b "+s.Kafka+" "+login+" "))
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := "kcat-" + codec
		kcat("printf 'a:one\nb:two\nc:\n' | kcat -P -t " + topic + " -K : -Z -H source=shop -z " + codec)
		const want = "0 a one source=shop\n1 b two source=shop\n2 c NULL source=shop\n"
		if got := kcat("kcat -C -Z -t " + topic + " -o beginning -e -f '%o %k %s %h\\n'"); got != want {
			t.Errorf("%s: got %q, want %q", codec, got, want)
		}
	}
	for at, want := range map[string]string{"-1": "3", "-2": "0", "1": "0", "4000000000000": "-1"} {
		if got := kcat("kcat -Q -t kcat-none:0:" + at); got != "kcat-none [0] offset "+want+"\n" {
			t.Errorf("offset at %s: got %q, want %s", at, got, want)
		}
	}
	if got := kcat("kcat -L -J -t kcat-none"); !strings.Contains(got,
		`"topic":"kcat-none","partitions":[{"partition":0,"leader":1`) {
		t.Errorf("metadata: got %s, want the topic", got)
	}
	group := func() []string {
		t.Helper()
		return strings.Fields(
			kcat("kcat -G kcat-group -X auto.offset.reset=earliest -c 2 -f '%t/%o ' kcat-none kcat-gzip"))
	}
	read := append(group(), group()...)
	if slices.Sort(read); len(slices.Compact(read)) != 4 {
		t.Errorf("two members one after the other: got %q, want four different records", read)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		return
	}
	folder, blocks := s.howto(t, "kcat", "sh")
	out := s.must(t, folder, nil, "bash", "-euo", "pipefail", "-c", strings.Join(blocks, ""))
	for _, want := range []string{
		"(controller)", `0 customer-7 {"order": 1} source=shop`, `orders [0] 0: {"order": 1}`,
		"orders [0] offset 0", "X-Msg-Partition-Key: customer-7", "X-Msg-Property-source: shop",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("how-to: %q is not in the output\n%s", want, out)
		}
	}
}

// install copies the folder of a client and downloads the client's libraries there.
func (s *kafkaServer) install(t *testing.T, p *origins.Program) string {
	t.Helper()
	need(t, p.Needs...)
	folder, err := p.Copy(t.Context(), ".", filepath.Join(s.folder, p.Name))
	if err != nil {
		t.Skipf("NOT TESTED: downloading the libraries of %s failed (Python needs Debian's python3-venv): %v", p.Name,
			err)
	}
	return folder
}

func testPython(t *testing.T, s *kafkaServer) {
	t.Helper()
	folder := s.install(t, &origins.Python)
	python := filepath.Join(folder, "venv", "bin", "python")
	var running sync.WaitGroup
	for _, script := range []string{"confluent_client.py", "kafka_python_client.py", "aiokafka_client.py"} {
		running.Go(func() {
			if out, err := s.run(t, folder, nil, python, script); err != nil {
				t.Errorf("%s: %v\n%s", script, err, out)
			}
		})
	}
	running.Go(func() { s.readOrigins(t, &origins.Python, folder) })
	running.Wait()
	s.runHowto(t, "Python", "python", func(folder, file string) string { return s.must(t, folder, nil, python, file) },
		`b'customer-7' b'{"order": `, "[('source', b'shop')]", "{'id': 7, 'note': 'paid'}")
}

func testNode(t *testing.T, s *kafkaServer) {
	t.Helper()
	folder := s.install(t, &origins.Node)
	s.readOrigins(t, &origins.Node, folder)
	s.must(t, folder, nil, "node", "--test", "kafkajs.test.js")
	modules := []string{"NODE_PATH=" + filepath.Join(folder, "node_modules")}
	s.runHowto(t, "Node", "js", func(folder, file string) string { return s.must(t, folder, modules, "node", file) },
		"customer-7 Payment { id: 7 }")
}
