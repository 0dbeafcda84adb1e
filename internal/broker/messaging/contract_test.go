package messaging_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/test/tally"
)

// createWith creates a topic with a contract.
func (c *cluster) createWith(local, contract string) names.Topic {
	c.t.Helper()
	c.do(c.Catalogue.CreateTopic(c.t.Context(), topic(local), messaging.NewTopic{Contract: contract}))
	return topic(local)
}

// contract returns the contract of a topic.
func (c *cluster) contract(name names.Topic) string {
	c.t.Helper()
	t, err := c.Catalogue.Topic(c.t.Context(), name)
	c.do(err)
	return t.Policies.Contract()
}

// stored returns the payloads of a topic.
func (c *cluster) stored(name names.Topic) []string {
	c.t.Helper()
	got, _ := c.search(name, `true`, messaging.SearchOptions{})
	return got
}

// wantBreach checks that an error is a breach whose detail has all these texts, and that the text for logs
// does not have them.
func wantBreach(t *testing.T, err error, want ...string) {
	t.Helper()
	var breach *messaging.ContractError
	if !errors.As(err, &breach) || !errors.Is(err, messaging.ErrContract) || errs.KindOf(err) != errs.Invalid {
		t.Fatalf("got %v, want a ContractError", err)
	}
	for _, text := range want {
		if !strings.Contains(breach.Detail(), text) {
			t.Errorf("got %q, want it to contain %q", breach.Detail(), text)
		}
	}
	if strings.Contains(breach.Error(), " is ") {
		t.Errorf("the text for logs has values: %q", breach.Error())
	}
}

func TestContractOfMessages(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.createWith("t", `payload.total >= 0`)
	c.produce(name, text(`{"total":1}`))
	_, err := c.Producer.Produce(t.Context(), name, text(`{"total":-1,"secret":"x"}`))
	wantBreach(t, err, "payload.total >= 0 is false; payload.total is -1")
	_, err = c.Producer.Produce(t.Context(), name, text(`{}`))
	wantBreach(t, err, "payload.total >= 0 fails: no such key: total")

	batch := []messaging.Message{*text(`{"total":2}`), *text(`{"total":3}`), *text(`{"total":-4}`)}
	_, err = c.Producer.ProduceBatch(t.Context(), name, batch)
	wantBreach(t, err, "message 2: ", "payload.total is -4")
	if got := c.stored(name); len(got) != 1 {
		t.Errorf("after a batch that breaks the contract: got %q, want the first message only", got)
	}
	results, err := c.Producer.ProduceBatch(t.Context(), name, batch[:2])
	if err != nil || results[0].Err != nil || results[1].Err != nil {
		t.Errorf("a batch that keeps the contract: got %+v, %v", results, err)
	}

	// Without the contract everything is accepted again.
	c.do(c.Catalogue.SetContract(t.Context(), name, ""))
	if got := c.contract(name); got != "" {
		t.Errorf("got the contract %q, want none", got)
	}
	c.produce(name, text(`{"total":-1}`))
}

func TestContractIsChecked(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.createWith("t", `size > 0`)
	ones := "[" + strings.TrimSuffix(strings.Repeat("1,", 500), ",") + "]"
	bad := []string{
		`payload.total >`, `size`, `total > 1`, `offset > 1`,
		strings.Repeat(" ", 3000) + "true" + strings.Repeat("x", 3000),
		ones + ".all(x, " + strings.Repeat("x == 1 && ", 90) + "true)", `key.matches("(a{30}){30}{30}")`,
	}
	accepted := 0
	for _, text := range bad {
		err := c.Catalogue.SetContract(t.Context(), name, text)
		created := c.Catalogue.CreateTopic(t.Context(), topic("other"), messaging.NewTopic{Contract: text})
		for _, err := range []error{err, created} {
			if !errors.Is(err, filter.ErrExpression) || errs.KindOf(err) != errs.Invalid {
				accepted++
				t.Errorf("%.60s: got %v, want ErrExpression", text, err)
			}
		}
	}
	tally.Attack(t, "contract that is too costly or not valid", 2*len(bad), accepted)
	if err := c.Catalogue.SetContract(t.Context(), name, bad[0]); !strings.Contains(err.Error(), "1:") {
		t.Errorf("got %v, want the position of the error", err)
	}
	if got := c.contract(name); got != `size > 0` {
		t.Errorf("got the contract %q, want the earlier one", got)
	}
	if ok, err := c.Catalogue.HasTopic(t.Context(), topic("other")); ok || err != nil {
		t.Errorf("a topic with a bad contract: got %t, %v, want no topic", ok, err)
	}
	// A change that bypasses the first check is checked with the catalogue.
	err := c.Catalogue.UpdateTopic(t.Context(), name, func(p *messaging.Policies) error {
		p.Kafka["freshet.require"] = `size`
		return nil
	})
	if !errors.Is(err, filter.ErrExpression) {
		t.Errorf("UpdateTopic: got %v, want ErrExpression", err)
	}
}

func TestContractAfterRestart(t *testing.T) {
	t.Parallel()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	// With these options every change is followed by a snapshot of the catalogue.
	first, err := messaging.Open(t.Context(), eng, messaging.Options{SnapshotBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = first.Catalogue.CreateTopic(t.Context(), topic("t"), messaging.NewTopic{Contract: `key == "a"`})
	if err == nil {
		err = first.Catalogue.CreateTopic(t.Context(), topic("plain"), messaging.NewTopic{})
	}
	if err := errors.Join(err, first.Close()); err != nil {
		t.Fatal(err)
	}
	c := openOver(t, eng, messaging.Options{})
	if got := c.contract(topic("t")); got != `key == "a"` {
		t.Errorf("got the contract %q after a restart", got)
	}
	_, err = c.Producer.Produce(t.Context(), topic("t"), text("x"))
	wantBreach(t, err, `key is ""`)
	c.produce(topic("plain"), text("x"))
}

// TestContractWithAvro decodes payloads by the schema of the topic, over HTTP and Kafka.
func TestContractWithAvro(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.createWith("t", `payload.total >= 0 && payload.name != ""`)
	_, err := c.Schemas.Add(t.Context(), name, messaging.Schema{
		Type: messaging.SchemaAvro, Text: `{"type":"record","name":"O","fields":[
			{"name":"name","type":"string"},{"name":"total","type":"long"}]}`,
	}, false)
	c.do(err)
	datum := func(total int64) []byte { return binary.AppendVarint([]byte("\x04ab"), total) }
	for _, total := range []int64{5, -5} {
		m := text("")
		m.Payload = datum(total)
		_, produced := c.Producer.Produce(t.Context(), name, m)
		_, appended := c.appendRecords(name, records.Record{Value: datum(total)})
		for _, err := range []error{produced, appended} {
			if total > 0 && err != nil {
				t.Errorf("total %d: %v", total, err)
			} else if total < 0 {
				wantBreach(t, err, "payload.total is -5", `payload.name is "ab"`)
			}
		}
	}
}

// appendRecords appends a Kafka batch to partition 0.
func (c *cluster) appendRecords(name names.Topic, list ...records.Record) (*messaging.AppendedBatch, error) {
	c.t.Helper()
	to, err := c.Kafka.KafkaTopic(c.t.Context(), name)
	c.do(err)
	builder := records.NewBuilder(nil, 0)
	for i := range list {
		list[i].Delta = int32(i) //nolint:gosec // tests have few records
		builder.Add(&list[i])
	}
	appended, err := to.Append(c.t.Context(), 0, builder.Finish(), messaging.Sender{})
	if err == nil {
		c.do(appended.Wait(c.t.Context()))
	}
	return appended, err
}

func TestContractOfKafkaBatches(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	config := map[string]string{"freshet.require": `payload.n >= 0 && properties.region != "us"`}
	created, err := c.Kafka.CreateKafkaTopic(t.Context(), topic("t"), 1, config, false)
	c.do(err)
	name := created.Name()
	value := func(n int) records.Record {
		return records.Record{
			Value:   fmt.Appendf(nil, `{"n":%d}`, n),
			Headers: []records.Header{{Key: []byte("region"), Value: []byte("eu")}},
		}
	}
	if _, err := c.appendRecords(name, value(0), value(1)); err != nil {
		t.Errorf("a batch that keeps the contract: %v", err)
	}
	_, err = c.appendRecords(name, value(2), value(-1), value(3), value(-2))
	wantBreach(t, err, "payload.n is -1", `properties.region is "eu"`)
	var refused *messaging.BatchError
	if !errors.As(err, &refused) || len(refused.Records) != 2 || refused.Records[0].Index != 1 ||
		refused.Records[1].Index != 3 {
		t.Errorf("got %+v, want the records 1 and 3", refused)
	}
	_, err = c.appendRecords(name, records.Record{Value: []byte(`{"n":1}`)})
	wantBreach(t, err, "no such key: region")
	if got := c.stored(name); len(got) != 2 {
		t.Errorf("got %q, want the first batch only", got)
	}
	many := make([]records.Record, 200)
	for i := range many {
		many[i] = value(-1 - i)
	}
	if _, err = c.appendRecords(name, many...); !errors.As(err, &refused) || len(refused.Records) != 10 {
		t.Errorf("got %v, want 10 listed records", err)
	}

	// A request with many such batches describes a limited number of records.
	use, listed, described := &messaging.ContractUse{}, 0, 0
	for range 50 {
		builder := records.NewBuilder(nil, 0)
		for i := range 20 {
			builder.Add(&records.Record{Delta: int32(i), Value: []byte(`{"n":-1}`)}) //nolint:gosec // less than 20
		}
		to, err := c.Kafka.KafkaTopic(t.Context(), name)
		c.do(err)
		_, err = to.Append(t.Context(), 0, builder.Finish(), messaging.Sender{Contracts: use})
		var refused *messaging.BatchError
		if !errors.As(err, &refused) {
			t.Fatalf("got %v, want a BatchError", err)
		}
		for _, r := range refused.Records {
			listed++
			var breach *messaging.ContractError
			if errors.As(r.Err, &breach) && strings.Contains(breach.Detail(), "region") {
				described++
			}
		}
	}
	if listed != 140 || described != 100 {
		t.Errorf("got %d records of 50 batches, %d described, want 140 and 100", listed, described)
	}

	// A compressed batch is unpacked.
	to, err := c.Kafka.KafkaTopic(t.Context(), name)
	c.do(err)
	_, err = to.Append(t.Context(), 0, gzipBatch(3, []byte(`{"n":-7}`)), messaging.Sender{})
	wantBreach(t, err, "payload.n is -7")

	// An empty value removes the contract, as in other interfaces.
	change := []messaging.ConfigChange{{Name: "freshet.require", Value: ""}}
	c.do(to.AlterConfig(t.Context(), change, false))
	if got := c.contract(name); got != "" {
		t.Errorf("got the contract %q, want none", got)
	}
	if _, err := c.appendRecords(name, value(-1)); err != nil {
		t.Errorf("without the contract: %v", err)
	}
	change[0].Value = `payload.n >`
	if err := to.AlterConfig(t.Context(), change, true); !errors.Is(err, messaging.ErrConfig) {
		t.Errorf("dry run of a bad contract: got %v, want ErrConfig", err)
	}
	bad := map[string]string{"freshet.require": "size"}
	if _, err := c.Kafka.CreateKafkaTopic(t.Context(), topic("u"), 1, bad, true); !errors.Is(err, messaging.ErrConfig) {
		t.Errorf("creating with a bad contract: got %v, want ErrConfig", err)
	}
}

// TestContractDoesNotRefuseRepetitions checks that a batch that was stored before the contract changed is
// answered as stored when its producer sends it again.
func TestContractDoesNotRefuseRepetitions(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	created, err := c.Kafka.CreateKafkaTopic(t.Context(), topic("t"), 1, nil, false)
	c.do(err)
	first, err := created.Append(t.Context(), 0, batchOf(7, 0), messaging.Sender{})
	c.do(err)
	c.do(first.Wait(t.Context()))
	c.do(c.Catalogue.SetContract(t.Context(), topic("t"), `size > 100`))
	to, err := c.Kafka.KafkaTopic(t.Context(), topic("t"))
	c.do(err)
	again, err := to.Append(t.Context(), 0, batchOf(7, 0), messaging.Sender{})
	if err != nil || again.First != first.First {
		t.Fatalf("the same batch again: got %+v, %v, want offset %d", again, err, first.First)
	}
	c.do(again.Wait(t.Context()))
	_, err = to.Append(t.Context(), 0, batchOf(7, 1), messaging.Sender{})
	wantBreach(t, err, "size is 1")
	if got := c.stored(topic("t")); len(got) != 1 {
		t.Errorf("got %q, want one message", got)
	}
}

// TestReplayObeysContracts checks that dead letters which break the contract of the target stay dead letters,
// and that others of the same batch are sent.
func TestReplayObeysContracts(t *testing.T) {
	t.Parallel()
	c, opts := letters(t, 4, messaging.Options{})
	c.do(c.Catalogue.SetContract(t.Context(), topic("t"), `payload.n != 2`))
	got := c.replay(opts)
	if got.Sent != 3 || got.Progress.Failed != 1 || !errors.Is(got.Progress.Failure, messaging.ErrContract) {
		t.Errorf("got %+v, want 3 letters and one failure", got)
	}
	if stored := c.stored(topic("t")); strings.Contains(strings.Join(stored, " "), `"n":2`) || len(stored) != 3 {
		t.Errorf("got %q in the target", stored)
	}
}

// TestDeadLettersNeedNoContract checks that the server moves dead letters to a topic whatever its contract.
func TestDeadLettersNeedNoContract(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name, dead := c.create("t", 0), c.createWith("t-s-DLQ", `payload.n > 100`)
	c.do(c.Consumer.Subscribe(t.Context(), name, "s", messaging.Position{Kind: messaging.Earliest},
		map[string]string{messaging.PropertyMaxRedeliver: "0"}))
	c.subscribe(dead, "reader")
	c.produce(name, text(`{"n":1}`))
	got := c.receiveOne(name, "s")
	c.do(c.Consumer.Settle(t.Context(), name, "s", messaging.Settlement{ID: got.ID, Action: messaging.Nack}))
	if letter := c.receiveOne(dead, "reader"); string(letter.Payload) != `{"n":1}` {
		t.Errorf("got %q in the dead-letter topic, want the message", letter.Payload)
	}
	_, err := c.Producer.Produce(t.Context(), dead, text(`{"n":1}`))
	wantBreach(t, err, "payload.n is 1")
}

// TestAttackWorkOfContracts sends batches whose check would take long, within the limits for one message. They
// are rejected as too large, so that clients split them.
func TestAttackWorkOfContracts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.createWith("t", `payload.n == 1 && !key.matches("(x{15}){20}")`)
	costly := []byte(`{"s":"` + strings.Repeat("x", 16_000) + `","n":1}`)
	one := text(string(costly))
	if _, err := c.Producer.Produce(t.Context(), name, one); err != nil {
		t.Errorf("one costly message: %v", err)
	}
	batch := make([]messaging.Message, 200)
	list := make([]records.Record, len(batch))
	for i := range batch {
		batch[i], list[i] = *one, records.Record{Value: costly}
	}
	_, produced := c.Producer.ProduceBatch(t.Context(), name, batch)
	_, appended := c.appendRecords(name, list...)
	accepted := 0
	for _, err := range []error{produced, appended} {
		if !errors.Is(err, messaging.ErrBatch) {
			accepted++
			t.Errorf("200 costly messages: got %v, want ErrBatch", err)
		}
	}
	if got := c.stored(name); len(got) != 1 {
		t.Errorf("got %d messages, want the first only", len(got))
	}
	tally.Attack(t, "batch whose contract takes long", 2, accepted)
}

// TestContractWithRegistry decodes payloads by the schema of the registry whose id they begin with.
func TestContractWithRegistry(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Schemas: fakeRegistry{}})
	name := c.createWith("t", `payload.total >= 0`)
	for total, keeps := range map[int]bool{5: true, -5: false} {
		payload := append([]byte{0, 0, 0, 0, 7}, fmt.Sprintf(`{"total":%d}`, total)...)
		_, produced := c.Producer.Produce(t.Context(), name, text(string(payload)))
		_, appended := c.appendRecords(name, records.Record{Value: payload})
		for _, err := range []error{produced, appended} {
			if keeps && err != nil {
				t.Errorf("total %d: %v", total, err)
			} else if !keeps {
				wantBreach(t, err, "payload.total is -5")
			}
		}
	}
	unknown := append([]byte{0, 0, 0, 0, 9}, `{"total":1}`...)
	_, err := c.Producer.Produce(t.Context(), name, text(string(unknown)))
	wantBreach(t, err, "fails: ")
}
