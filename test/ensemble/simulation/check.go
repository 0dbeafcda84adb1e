package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"freshet/internal/storage/engine"
	"freshet/test/ensemble/simulation/natssim"
)

// compare checks messages that were read.
func (w *world) compare(shard int, where string, want map[engine.MessageID]string, got []engine.Record) {
	found := make(map[engine.MessageID]string, len(got))
	once := map[string]bool{}
	w.mu.Lock()
	sent := w.sent[shard]
	for i := range got {
		text := string(got[i].Payload)
		if !sent[text] || once[text] {
			w.wrong = append(w.wrong, fmt.Sprintf("shard %d, %s: message %v %.20q is invented or doubled",
				shard, where, got[i].ID, text))
		}
		once[text] = true
		found[got[i].ID] = text
	}
	w.mu.Unlock()
	lost := 0
	for id, text := range want {
		switch have, ok := found[id]; {
		case !ok:
			lost++
		case have != text:
			w.violation("shard %d, %s: message %v is %.20q, acknowledged as %.20q", shard, where, id, have, text)
		}
	}
	if lost > 0 {
		w.violation("shard %d, %s: %d of %d acknowledged messages are lost", shard, where, lost, len(want))
	}
}

// finish ends all faults, starts all members and checks the final state.
func (w *world) finish(ctx context.Context) {
	w.nats.SetChances(natssim.Chances{})
	w.etcd.SetSilent(0)
	w.transfers.set(0)
	for _, name := range w.nats.Names() {
		w.nats.Heal(name)
	}
	for _, m := range w.running() {
		m.etcd.Restore()
		m.nats.Restore()
	}
	for _, name := range names {
		if !slices.ContainsFunc(w.running(), func(m *member) bool { return m.name == name }) {
			if err := w.up(ctx, name); err != nil {
				w.violation("member %s does not start: %v", name, err)
			}
		}
	}
	time.Sleep(2 * leaseTTL) // an earlier owner may not know yet that it is none any more
	for shard := range shardCount {
		w.finishShard(ctx, shard)
	}
	w.finishCopies(ctx)
	w.finishJournal(ctx)
	w.finishGroups()
}

// reasons returns how many members have closed a shard because its log is lost, and how many for another reason: a
// copy that needs a checkpoint does not get one from copies that do not follow the log.
func (w *world) reasons(shard int) (lost, other int) {
	for _, m := range w.running() {
		switch err := m.shards[shard].Status().Err; {
		case errors.Is(err, engine.ErrLogLost):
			lost++
		case err != nil:
			other++
		}
	}
	return lost, other
}

// finishCopies checks that all damaged copies were replaced. Damage of a manifest or of options may not be found
// before the next start. A copy of a log that has lost its end may have what the log has lost, and stays closed then.
func (w *world) finishCopies(ctx context.Context) {
	for shard := range shardCount {
		if d := w.spoiled[shard]; d != nil && !strings.HasSuffix(d.path, ".sst") {
			w.crash(d.member)
			if err := w.up(ctx, d.member); err != nil {
				w.violation("member %s does not start: %v", d.member, err)
			}
		}
		for tries := 0; !w.endLost[shard] && (!w.intact(shard) || w.damagedPart() != ""); tries++ {
			if tries == 300 {
				for _, m := range w.running() {
					w.violation("shard %d has a bad copy in the end (%s); at %s: %+v", shard, w.damagedPart(), m.name,
						m.shards[shard].Status())
				}
				break
			}
			time.Sleep(time.Second)
		}
	}
}

// damagedPart returns a part that a member knows to be damaged, "" if there is none. Copies of a log that has lost its
// end do not count. It counts the parts that were replaced.
func (w *world) damagedPart() (found string) {
	w.healed = 0
	for _, m := range w.running() {
		parts, _ := m.register.Parts()
		for i := range parts {
			p := &parts[i]
			var shard int
			if _, err := fmt.Sscanf(p.Name, "shard "+clusterID+"/%d", &shard); err == nil && w.endLost[shard] {
				continue
			}
			if w.healed += p.Damages; !p.Damaged.IsZero() {
				found = fmt.Sprintf("%s at %s: %s", p.Name, m.name, p.Problem)
			}
		}
	}
	return found
}

// finishShard checks a shard. If its log has lost its end, it may also be closed for that reason.
func (w *world) finishShard(ctx context.Context, shard int) {
	for tries := range 600 {
		time.Sleep(100 * time.Millisecond)
		m, e := w.owner(shard, nil)
		if m == nil {
			if lost, other := w.reasons(shard); w.endLost[shard] && lost+other == len(names) &&
				(other == 0 || lost > 0 && tries > 300) {
				w.closed[shard] = true
				return
			}
			continue
		}
		got, err := readAll(ctx, e)
		if err != nil && (!errors.Is(err, engine.ErrNoTopic) || len(w.acked[shard]) > 0) {
			continue
		}
		w.mu.Lock()
		want := w.acked[shard]
		w.mu.Unlock()
		w.compare(shard, "in the end at "+m.name, want, got)
		if w.endLost[shard] {
			w.rebuilt++
		}
		return
	}
	for _, m := range w.running() {
		w.violation("shard %d has no owner; at %s: %+v", shard, m.name, m.shards[shard].Status())
	}
}
