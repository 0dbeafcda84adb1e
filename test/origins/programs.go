package origins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// programTimeout bounds one program. A client that skipped records may wait for them forever.
const programTimeout = 3 * time.Minute

// Program is a client in test/clients. It reads all topics several times, with different fetch limits,
// and writes the records that it got to files.
type Program struct {
	Name   string
	Folder string   // in test/clients
	Needs  []string // commands that must be installed
	Env    []string // variables in addition to those of Set.Environment

	install [][]string // commands that download the client's libraries into the folder
	command []string
	clients []string // names of the files that it writes, without the limits
}

// Sarama, Segmentio and Confluent are tests in separate Go modules. Confluent uses librdkafka and needs a C compiler.
var (
	Sarama    = module("sarama", "kafka-sarama", "TestOrigins", "CGO_ENABLED=0")
	Segmentio = module("segmentio", "kafka-segmentio", "TestOrigins", "CGO_ENABLED=0")
	Confluent = module("confluent", "confluent", "TestKafkaOrigins", "CGO_ENABLED=1", "gcc")
)

func module(name, folder, test, env string, needs ...string) Program {
	return Program{
		Name: name, Folder: folder, Needs: append(needs, "go"), Env: []string{env}, clients: []string{name},
		command: []string{"go", "test", "-count=1", "-timeout=2m", "-run=^" + test + "$", "./..."},
	}
}

// Kcat is the kcat command, which uses librdkafka.
var Kcat = Program{
	Name: "kcat", Needs: []string{"bash", "kcat"}, clients: []string{"kcat"},
	command: []string{"bash", "-euo", "pipefail", "-c", `
		read_all() {
			timeout 60 kcat -q -b "$FRESHET_STREAM" -X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN \
				-X sasl.username=user -X "sasl.password=token:$FRESHET_TOKEN" -X auto.offset.reset=earliest "${@:2}" \
				-G "origins-kcat-$1" -c "$FRESHET_ORIGIN_RECORDS" -f '%t %p %o %S\n%s\n' \
				${FRESHET_ORIGIN_TOPICS//,/ } > "$FRESHET_ORIGIN_OUTPUT/kcat-$1"
		}
		read_all default
		read_all small -X message.max.bytes=300000 -X fetch.max.bytes=300000 -X max.partition.fetch.bytes=100000
		read_all medium -X fetch.max.bytes=10000000 -X max.partition.fetch.bytes=250000
	`},
}

// Python runs the clients confluent-kafka, kafka-python and aiokafka.
var Python = Program{
	Name: "python", Folder: "kafka-python", Needs: []string{"python3"},
	clients: []string{"confluent-kafka", "kafka-python", "aiokafka"},
	install: [][]string{
		{"python3", "-m", "venv", "venv"},
		{
			"venv/bin/python", "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check",
			"-r", "requirements.txt",
		},
	},
	command: []string{"venv/bin/python", "origins.py"},
}

// Node is KafkaJS.
var Node = Program{
	Name: "kafkajs", Folder: "kafka-node", Needs: []string{"node", "npm"}, clients: []string{"kafkajs"},
	install: [][]string{{"npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"}},
	command: []string{"node", "--test", "origins.test.js"},
}

// Missing returns the first needed command that is not installed, or "".
func (p *Program) Missing() string {
	for _, command := range p.Needs {
		if _, err := exec.LookPath(command); err != nil {
			return command
		}
	}
	return ""
}

// Copy copies the program's folder of test/clients to target and downloads the client's libraries there, so that
// they stay out of the source tree. It returns the folder to run the program in.
func (p *Program) Copy(ctx context.Context, clients, target string) (string, error) {
	source := filepath.Join(clients, p.Folder)
	if len(p.install) == 0 {
		return source, nil
	}
	if err := os.CopyFS(target, os.DirFS(source)); err != nil {
		return "", err
	}
	for _, command := range p.install {
		if err := execute(ctx, target, os.Environ(), command); err != nil {
			return "", err
		}
	}
	return target, nil
}

// Run runs the program in the folder and checks the records that it got.
func (p *Program) Run(ctx context.Context, s *Set, folder, output string) error {
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	env := append(append(os.Environ(), s.Environment(output)...), p.Env...)
	return errors.Join(execute(ctx, folder, env, p.command), p.Check(s, output))
}

func execute(ctx context.Context, folder string, env, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // commands are constants
	cmd.Dir, cmd.Env = folder, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command[0], err, out)
	}
	return nil
}

// Check checks the records that the program wrote to the output folder, and removes the files.
func (p *Program) Check(s *Set, output string) error {
	var failures []error
	for _, client := range p.clients {
		for _, limits := range []string{"default", "small", "medium"} {
			file := filepath.Join(output, client+"-"+limits)
			if err := s.CheckFile(file); err != nil {
				failures = append(failures, fmt.Errorf("%s with %s fetch limits: %w", client, limits, err))
			}
			_ = os.Remove(file) // the folder is temporary
		}
	}
	return errors.Join(failures...)
}
