package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"freshet/test/ensemble/spoil"
)

// Healing describes how a member with damaged files came back.
type Healing struct {
	// Refused is the line of the log with which the member refused to start; "" if it did not.
	Refused string
	// Command is the command that the line advised and that was executed.
	Command string
	// NamesFile reports whether the refusal names the damaged file or its directory.
	NamesFile bool
}

// advised finds the command that a member advises when it refuses to start.
var advised = regexp.MustCompile(
	`freshet ensemble (rejoin|join BUNDLE|replace)( [^,;".]*--only-bundle)?|rm /[^ ;"]+`)

// maxRefusal bounds how much of the log is searched for a refusal.
const maxRefusal = 256 << 10

// Heal starts a member whose files are damaged. If the member refuses to start and advises a
// command, Heal executes the command and starts the member again. It returns when the member is
// ready. file is the damaged file, relative to the data directory.
func (g *Ensemble) Heal(ctx context.Context, m *Member, file string) (Healing, error) {
	var h Healing
	for range 3 { // a refusal may name one file after another
		before := logSize(m.LogFile())
		err := m.Start(ctx)
		if err == nil {
			return h, nil
		}
		line, command := refusal(m.LogFile(), before)
		if command == "" {
			return h, fmt.Errorf("member neither becomes ready nor advises a command: %s\n%s", firstLine(err.Error()),
				complaints(m.LogFile(), before))
		}
		h.Refused, h.Command = line, command
		h.NamesFile = h.NamesFile || namesFile(line, file)
		if err := g.obey(ctx, m, command); err != nil {
			return h, fmt.Errorf("doing what the member advised (%s): %w", line, err)
		}
	}
	return h, fmt.Errorf("member still refuses to start: %s", h.Refused)
}

// obey executes the advised command for a stopped member.
func (g *Ensemble) obey(ctx context.Context, m *Member, command string) error {
	switch {
	case strings.Contains(command, "rejoin"):
		return g.command(ctx, "ensemble", "rejoin", "--config", g.configuration(m.Name))
	case strings.Contains(command, "--only-bundle"):
		return g.newBundle(ctx, m)
	case strings.Contains(command, "join"):
		return g.join(ctx, m, m.Name+".bundle")
	case strings.HasPrefix(command, "rm "):
		name, err := filepath.Rel(m.options.DataDir, strings.TrimPrefix(command, "rm "))
		if err != nil || !filepath.IsLocal(name) {
			return fmt.Errorf("%s is not about the data directory %s", command, m.options.DataDir)
		}
		return os.Remove(filepath.Join(m.options.DataDir, name))
	default:
		return g.empty(ctx, m)
	}
}

// newBundle installs a new bundle for a stopped member, which keeps its data.
func (g *Ensemble) newBundle(ctx context.Context, m *Member) error {
	dir := filepath.Join(g.o.Dir, "group")
	if err := g.commandAt(ctx, g.other(m), "ensemble", "replace", m.Name, "--only-bundle", "--group", dir); err != nil {
		return err
	}
	return g.join(ctx, m, m.Name+"-new.bundle")
}

// join installs a bundle for a stopped member, which keeps its data.
func (g *Ensemble) join(ctx context.Context, m *Member, bundle string) error {
	return g.command(ctx, "ensemble", "join", filepath.Join(g.o.Dir, "group", bundle), "--data-dir", m.options.DataDir,
		"--config", g.configuration(m.Name))
}

// other returns a member that is not m, if possible one that runs.
func (g *Ensemble) other(m *Member) *Member {
	var found *Member
	for _, o := range g.Members {
		if o != m && (found == nil || o.Running() && !o.Paused()) {
			found = o
		}
	}
	return found
}

// Renew replaces a member by an empty one and starts it.
func (g *Ensemble) Renew(ctx context.Context, m *Member) error {
	m.Kill()
	return g.replace(ctx, m, 0)
}

// logFrom returns a log from a position on, at most its last part.
func logFrom(path string, from int64) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	text := make([]byte, maxRefusal)
	n, _ := file.ReadAt(text, max(from, logSize(path)-maxRefusal)) // a short read is expected
	return string(text[:n])
}

// maxComplaints bounds the lines that complaints returns.
const maxComplaints = 6

// complaints returns the last errors and warnings of a log, from a position on.
func complaints(path string, from int64) string {
	var lines []string
	for line := range strings.Lines(logFrom(path, from)) {
		if strings.HasPrefix(line, "freshet: ") || strings.HasPrefix(line, "panic: ") ||
			strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines[max(len(lines)-maxComplaints, 0):], "\n")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// refusal returns the last line of a log, from a position on, that advises a command.
func refusal(path string, from int64) (line, command string) {
	for l := range strings.Lines(logFrom(path, from)) {
		if found := advised.FindString(l); found != "" {
			line, command = strings.TrimSpace(l), found
		}
	}
	return line, command
}

func logSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// namesFile reports whether a line names a file or one of the directories that contain it.
func namesFile(line, file string) bool {
	for part := file; part != "." && part != "/" && part != ""; part = filepath.Dir(part) {
		if strings.Contains(line, part) || strings.Contains(line, filepath.Base(part)) {
			return true
		}
	}
	return false
}

// AwaitHealthy waits until every member reports that all members are ready and have no problem, and
// that all shards have an owner and all their copies. Its error is the last difference.
func (g *Ensemble) AwaitHealthy(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		var err error
		for _, m := range g.Members {
			err = errors.Join(err, m.healthy(ctx))
		}
		if err == nil {
			return nil
		}
		if !pause(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

// maxLag is the lag at which a copy counts as caught up, because the clients go on writing.
const maxLag = 1000

func (m *Member) healthy(ctx context.Context) error {
	if !m.Running() {
		return fmt.Errorf("member %s does not run", m.Name)
	}
	status, err := m.Status(ctx)
	if err != nil {
		return err
	}
	for _, other := range status.Members {
		if !other.Ready || other.Problem != "" {
			return fmt.Errorf("member %s reports of %s: ready %t, problem %q", m.Name, other.Name, other.Ready,
				other.Problem)
		}
	}
	for _, shard := range status.Shards {
		if shard.Owner == "" || shard.Problem != "" {
			return fmt.Errorf("member %s reports of shard %d: owner %q, problem %q", m.Name, shard.Number, shard.Owner,
				shard.Problem)
		}
		for _, c := range shard.Copies {
			if !c.Live || c.Lag > maxLag || c.Problem != "" {
				return fmt.Errorf("member %s reports of the copy of shard %d at %s: live %t, lag %d, problem %q",
					m.Name, shard.Number, c.Member, c.Live, c.Lag, c.Problem)
			}
		}
	}
	if damage := status.Damage(); len(damage) > 0 {
		return fmt.Errorf("member %s reports: %s", m.Name, strings.Join(damage, "; "))
	}
	if !m.awaitReady(ctx, statusTimeout) {
		return fmt.Errorf("/readyz of member %s does not return 200", m.Name)
	}
	return nil
}

// DamageFaults returns faults that kill a random member, damage one of its files, and start it
// again. Classes of files are in groups, so that a round of a plan has some of each.
func (g *Ensemble) DamageFaults(seed uint64) []Fault {
	random := rand.New(rand.NewPCG(seed, 3))
	groups := map[string][]spoil.Class{}
	var names []string
	for _, class := range spoil.Classes() {
		name := "files of one damaged"
		switch class.Name {
		case "log-block", "journal-block", "raft-log", "meta-log", "stream-index", "raft-snapshot", "meta-snapshot":
			name = "log of one damaged"
		case "table", "manifest", "marker", "options", "shard-log":
			name = "copy of one damaged"
		case "etcd-log", "etcd-db", "etcd-snapshot":
			name = "etcd of one damaged"
		}
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], class)
	}
	faults := make([]Fault, len(names))
	for i, name := range names {
		faults[i] = g.damage(name, groups[name], random)
	}
	return faults
}

// damage returns a fault that damages a file of one of the classes.
func (g *Ensemble) damage(name string, classes []spoil.Class, random *rand.Rand) Fault {
	inject := func(context.Context) (func(context.Context) error, error) {
		m := g.RandomMember()[0]
		m.Kill()
		done, err := damageOne(m.DataDir(), classes, random)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			if _, err := g.Heal(ctx, m, done.File); err != nil {
				return fmt.Errorf("%s at %s: %w", done, m.Name, err)
			}
			if err := g.AwaitHealthy(ctx, healthyTimeout); err != nil {
				return fmt.Errorf("%s at %s: %w", done, m.Name, err)
			}
			return nil
		}, nil
	}
	return Fault{Name: name, Hold: time.Second, Inject: inject}
}

// healthyTimeout is the timeout for a damaged member to fetch its files from the others.
const healthyTimeout = 3 * time.Minute

// damageOne damages a file of a random class that has files.
func damageOne(dir string, classes []spoil.Class, random *rand.Rand) (done spoil.Done, err error) {
	operations := spoil.Operations()
	for range 100 {
		class, operation := classes[random.IntN(len(classes))], operations[random.IntN(len(operations))]
		if done, err = spoil.Damage(dir, class, operation, random, nil); err == nil {
			return done, nil
		}
	}
	return done, err
}
