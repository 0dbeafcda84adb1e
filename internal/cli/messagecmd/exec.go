package messagecmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
)

// runCommands runs a command for each message, and acknowledges the message if the command
// succeeds.
func (o *consumeOptions) runCommands(cmd *cobra.Command, env *command.Env, sub *client.Subscription, p *printer) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	r := &runner{
		o: o, env: env, sub: sub, p: p, stop: cancel,
		clock: newIdleTimer(o.idleTimeout(), passingOver(ctx, sub), cancel),
	}
	defer r.clock.stop()
	// Hold at most one message per worker, so that no lease ends while a message waits.
	sub.ReceiveOptions.MaxHeld = o.workers
	if err := r.handle(ctx); err != nil {
		return err
	}
	if r.failed > 0 {
		return fmt.Errorf("command failed for %d of %d messages, which will be redelivered", r.failed, r.taken)
	}
	return nil
}

// runner is the state that the --exec commands of one consume share.
type runner struct {
	o    *consumeOptions
	env  *command.Env
	sub  *client.Subscription
	p    *printer
	stop context.CancelFunc

	// mu protects the fields below, and serializes the output of commands.
	mu      sync.Mutex
	clock   *idleTimer
	running int
	taken   int
	failed  int
}

func (r *runner) handle(ctx context.Context) error {
	return r.sub.Handle(ctx, r.o.workers, func(ctx context.Context, d *client.Delivery) error {
		if !r.begin() {
			d.Nack(0)
			return nil
		}
		err := r.run(ctx, d)
		if err != nil {
			d.Nack(r.o.nackDelay)
		} else {
			d.Ack()
		}
		r.end(err)
		return nil
	})
}

// begin counts a message. It returns false if --count messages were taken already.
func (r *runner) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.o.count > 0 && r.taken == r.o.count {
		return false
	}
	r.taken++
	if r.running++; r.running == 1 {
		r.clock.stop()
	}
	if r.o.count > 0 && r.taken == r.o.count {
		r.stop()
	}
	return true
}

func (r *runner) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed++
		_, _ = fmt.Fprintln(r.env.Err, "freshet:", err) // the exit code reports the failure too
	}
	if r.running--; r.running == 0 {
		r.clock.restart()
	}
}

// killGracePeriod is the grace period of a command between SIGINT and SIGKILL.
const killGracePeriod = 5 * time.Second

// run runs the command for one message. It prints the command's output after the command
// has ended, so that the outputs of commands do not mix.
func (r *runner) run(ctx context.Context, d *client.Delivery) error {
	value := d.Value
	if r.p.decode != nil && !d.NullValue {
		text, err := r.p.decode(ctx, &d.Received)
		if err != nil {
			return fmt.Errorf("message %s: %w", d.StringID, err)
		}
		value = text
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", r.o.exec)
	cmd.Stdin = bytes.NewReader(value)
	cmd.Env = append(os.Environ(),
		"FRESHET_TOPIC="+r.sub.Topic().ShortName(), "FRESHET_SUBSCRIPTION="+r.sub.Name(),
		"FRESHET_MESSAGE_ID="+d.StringID, "FRESHET_MESSAGE_KEY="+removeZeroBytes(d.Key),
		"FRESHET_REDELIVERIES="+strconv.Itoa(d.Redeliveries))
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = killGracePeriod
	err := cmd.Run()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, writeErr := r.env.Out.Write(out.Bytes()); writeErr != nil && err == nil {
		err = writeErr
	}
	_, _ = r.env.Err.Write(problems.Bytes()) // a failure to print diagnostics is ignored
	if err != nil {
		return fmt.Errorf("running the command for message %s: %w", d.StringID, err)
	}
	return nil
}

// removeZeroBytes removes zero bytes, which an environment variable cannot contain.
func removeZeroBytes(key string) string { return string(bytes.ReplaceAll([]byte(key), []byte{0}, nil)) }
