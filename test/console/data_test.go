package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/test/tally"
)

// want calls the server directly, not through the browser, and fails the test on an error.
func want(t *testing.T, method, path string, body any, headers ...string) []byte {
	t.Helper()
	text, err := send(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// backlog returns the number of unacknowledged messages of a subscription in the cluster orders.
func backlog(t *testing.T, topic, subscription string) int {
	t.Helper()
	var stats struct {
		Subscriptions map[string]struct {
			Backlog int `json:"msgBacklog"`
		}
	}
	if err := json.Unmarshal(want(t, http.MethodGet, admin+topic+"/stats", nil), &stats); err != nil {
		t.Fatal(err)
	}
	return stats.Subscriptions[subscription].Backlog
}

// set sets the value of a control of the dialog, by its name.
func (b *tab) set(name, value string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector('[name=%q]')`, name))
	eval[any](b, fmt.Sprintf(
		`(e => {
			e.value = %q
			e.dispatchEvent(new Event('input', {bubbles: true}))
			e.dispatchEvent(new Event('change', {bubbles: true}))
		})([...document.querySelectorAll('[name=%q]')].at(-1))`, value, name))
}

// TestTailOfAvro checks that a message of another client appears immediately, decoded with its
// schema; while the tail is paused messages wait, and after a stop the rows stay.
func TestTailOfAvro(t *testing.T) {
	const topic = "public/default/live"
	want(t, http.MethodPut, admin+topic, nil)
	want(t, http.MethodPost, ordersRoot+"/admin/v2/schemas/"+topic+"/schema",
		object{"type": "AVRO", "schema": orderAvro, "properties": object{}})
	produce := func(id, key string) {
		t.Helper()
		want(t, http.MethodPost, messages+topic+"/message", avroOrder(id, 9.5, "tea"), "X-Msg-Partition-Key", key,
			"X-Msg-Property-region", "eu")
	}
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/topics/orders/" + topic)
	b.waitText("No messages yet")
	b.until(`document.querySelector('.badge.ok')?.innerText === 'Live'`)
	produce("first", "k-1")
	b.waitText(`{"id":"first","amount":9.5,"items":["tea"],"note":null}`)
	b.click("Pause")
	produce("second", "k-2")
	b.waitText("1 waiting")
	if eval[bool](b, `document.body.innerText.includes('"second"')`) {
		t.Error("message appeared while the tail was paused")
	}
	b.click("Resume")
	b.waitText(`"second"`)
	b.fill("Filter messages", "key=k-2")
	b.until(`document.querySelectorAll('.rows .row').length === 1`)
	b.fill("Filter messages", "region=eu")
	b.until(`document.querySelectorAll('.rows .row').length === 2`)
	eval[any](b, `void [...document.querySelectorAll('.rows a')].at(-1).click()`)
	b.waitText("AVRO, version 0 of the topic's schema")
	b.until(`document.querySelector('.message .code').innerText.includes('"amount": 9.5')`)
	b.click("Hex")
	b.until(`/^000000  0a 66 69 72 73 74/.test(document.querySelector('.message pre').innerText)`)
	b.click("Stop")
	b.waitText("Stopped")
	produce("third", "k-3")
	if rows := eval[int](b, `document.querySelectorAll('.rows .row').length`); rows != 2 {
		t.Errorf("got %d rows after the stop, want the previous 2", rows)
	}
	b.visit("acme/topics/orders/" + topic) // opens with the newest messages
	b.until(`document.querySelectorAll('.rows .row').length === 3`)
	b.until(`document.querySelector('.rows .row').innerText.includes('"third"')`)
	b.fill("Expression", `payload.id == "second" && key == "k-2"`)
	b.click("Find")
	b.waitText("3 read, 1 selected")
	b.until(`document.querySelectorAll('.rows .row').length === 1`)
	b.until(`document.querySelector('.rows .row').innerText.includes('"second"')`)
	b.until(`new URLSearchParams(location.search).get('from') === 'earliest'`)
	b.fill("Expression", `payload.id ==`)
	b.click("Find")
	b.waitText("Syntax error")
	for _, sent := range b.sent() {
		if strings.Contains(sent, server.Token) {
			t.Errorf("token is in a URL or body: %.100s", sent)
		}
	}
	b.clean()
}

// TestPayloads checks that the server truncates a large payload while the download has all of
// it, and that a Protobuf message is decoded with the registry's schema.
func TestPayloads(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/topics/orders/public/default/clicks?from=earliest&q=long")
	b.prepare("topic-large", "", "long")
	b.waitText("Only the first 64 KiB of 195 KiB")
	eval[any](b, `void (URL.createObjectURL = blob => { window.saved = blob.size; return '#' })`)
	b.click("Download 195 KiB")
	b.until(`window.saved > 195 * 1024`)
	b.visit("acme/topics/orders/public/default/emails?from=earliest")
	b.waitText(`{"to":"a@b.c","tags":["x","y"],"counts":{"n":7},"kind":"HTML"}`)
	b.clean()
}

func TestProduceBySchema(t *testing.T) {
	const topic = "public/default/written"
	want(t, http.MethodPut, admin+topic, nil)
	want(t, http.MethodPost, ordersRoot+"/admin/v2/schemas/"+topic+"/schema",
		object{"type": "AVRO", "schema": orderAvro, "properties": object{}})
	want(t, http.MethodPut, admin+topic+"/subscription/s", "earliest")
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/topics/orders/" + topic + "?tab=produce")
	b.until(`document.querySelector('[name=payload]')?.value.includes('amount')`) // the schema's example
	b.set("payload", `{"id":"A-1","amount":"much","items":[]}`)
	b.click("Produce message")
	b.waitText(`amount: string "much" is not of type double`)
	b.set("payload", `{"id":"A-1","amount":2,"items":["x"]}`)
	b.set("key", "größe")
	b.set("properties", "Region=eu")
	b.click("Produce message")
	b.until(`[...document.querySelectorAll('.rows-list a')].some(a => /^\d+:0:-1:0/.test(a.innerText))`)
	snippet := eval[string](b, `document.querySelector('.show-as pre').innerText`)
	run := exec.CommandContext(t.Context(), "bash", "-c", snippet) // repeats the produce
	run.Env = append(os.Environ(), "TOKEN="+server.Token, "FRESHET_SERVER="+server.URL)
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%s\n%v %s", snippet, err, out)
	}
	for range 2 {
		body := string(want(t, http.MethodPost, messages+topic+"/s/message", object{}))
		if body != string(avroOrder("A-1", 2, "x")) {
			t.Errorf("got %q, want the order in Avro", body)
		}
	}
	b.clean()
}

func TestPlayground(t *testing.T) {
	const topic = "public/default/playing"
	want(t, http.MethodPut, admin+topic, nil)
	want(t, http.MethodPost, messages+topic+"/message", []byte(`{"hello":"world"}`))
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/topics/orders/" + topic + "?tab=playground")
	b.click("Create the subscription “playground”")
	b.click("Consume one message")
	b.waitText("200 OK")
	b.waitText("x-msg-message-string-id")
	b.waitText("the id of this topic")
	b.waitText("ledgerId")
	b.click("Acknowledge by string id")
	b.waitText("204 No Content")
	b.waitText("The acknowledgement is stored on disk")
	b.shoot("playground-done-1440-light")
	if n := backlog(t, topic, "playground"); n != 0 {
		t.Errorf("backlog has %d messages, want 0", n)
	}
	b.click("Consume one message")
	b.waitText("204: no message arrived within a second")
	b.clean()
}

func TestSubscriptions(t *testing.T) {
	const topic = "public/default/moving"
	want(t, http.MethodPut, admin+topic, nil)
	for i := range 3 {
		want(t, http.MethodPost, messages+topic+"/message", fmt.Appendf(nil, "message %d", i))
	}
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/topics/orders/" + topic + "?tab=subscriptions")
	b.click("New subscription")
	b.set("name", "mover")
	b.click("Create")
	b.until(`document.querySelector('.row.chosen')`)
	if n := backlog(t, topic, "mover"); n != 0 {
		t.Fatalf("subscription at the end has a backlog of %d, want 0", n)
	}
	b.click("Reset…")
	b.click("Reset")
	b.waitText("The position of mover was reset")
	b.until(`document.querySelector('.row.chosen').innerText.includes('3')`)
	if n := backlog(t, topic, "mover"); n != 3 {
		t.Errorf("backlog is %d after the reset to the start, want 3", n)
	}
	b.click("Peek")
	b.waitText("message 0")
	b.click("Next")
	b.waitText("message 1")
	b.click("Filter…")
	b.set("filter", `payload ==`)
	b.click("Change")
	b.waitText("not a valid expression")
	b.set("filter", `payload.endsWith("2")`)
	b.click("Change")
	b.waitText("The filter of mover was changed")
	want(t, http.MethodPost, messages+topic+"/mover/message", nil)
	b.waitText("2 passed over")
	b.shoot("subscription-filter-1440-light")
	b.click("Delete")
	b.until(`document.querySelector('dialog[open]')`)
	b.click("Cancel")
	b.clean()
}

// TestSchemaThatBreaks checks that an incompatible change is shown as such and rejected before
// it is registered, and that a rejected deletion is explained by its error code.
func TestSchemaThatBreaks(t *testing.T) {
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/schemas/orders/invoices-value?tab=diff")
	b.waitText("Not backward compatible")
	b.waitText("/total")
	b.waitText("would reject this change")
	b.until(`[...document.querySelectorAll('.diff .del')].some(l => l.innerText.includes('"long"'))`)
	b.visit("acme/schemas/orders/invoices-value")
	b.click("New version")
	b.until(`document.querySelector('dialog textarea').value.includes('customer')`)
	eval[any](b, `(e => {
		e.value = e.value.replace('"name": "id",\n      "type": "string"', '"name": "id",\n      "type": "int"')
		e.dispatchEvent(new Event('input', {bubbles: true}))
	})(document.querySelector('dialog textarea'))`)
	b.click("Check")
	b.waitText("Not compatible: the registry would reject the schema.")
	b.waitText("TYPE_MISMATCH")
	b.shoot("schema-check-1440-light")
	b.click("Register")
	b.waitText("The subject’s compatibility level does not allow this change.")
	b.click("Cancel")
	b.visit("acme/schemas/orders/address")
	b.waitText("invoices-value 3") // the schema that refers to it
	b.click("Delete")
	b.click("Soft delete")
	b.waitText("42206")
	b.waitText("Other schemas refer to it")
	b.shoot("schema-refused-1440-light")
	b.click("Cancel")
	want(t, http.MethodPost, registry+"/subjects/short-lived/versions", object{"schema": `"int"`})
	b.visit("acme/schemas/orders/short-lived")
	b.click("Delete")
	b.click("Soft delete")
	b.set("typed", "short-lived")
	b.click("Delete permanently")
	b.until(`location.pathname === '/console/acme/schemas/orders'`)
	status, _, err := call(t.Context(), server.Token, http.MethodGet,
		registry+"/subjects/short-lived/versions?deleted=true", nil)
	if err != nil || status != http.StatusNotFound {
		t.Errorf("got %d %v after both steps, want 404", status, err)
	}
	b.clean()
}

// TestGroupReset checks a consumer group of a real Kafka client: it is shown, its offsets
// cannot be reset while it reads, and can after it has left.
func TestGroupReset(t *testing.T) {
	for i := range 5 {
		want(t, http.MethodPost, messages+"public/default/invoices/message", fmt.Appendf(nil, "invoice %d", i))
	}
	join := func() *kgo.Client {
		t.Helper()
		c, err := kgo.NewClient(kgo.SeedBrokers(server.Kafka),
			kgo.SASL(plain.Auth{User: "test@acme/orders", Pass: "token:" + server.Token}.AsMechanism()),
			kgo.ConsumerGroup("console-readers"), kgo.ConsumeTopics("invoices"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	read := func(c *kgo.Client) {
		t.Helper()
		for n := 0; n < 5; {
			fetched := c.PollFetches(t.Context())
			if err := fetched.Err(); err != nil {
				t.Fatal(err)
			}
			n += fetched.NumRecords()
		}
		if err := c.CommitUncommittedOffsets(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c := join()
	read(c)
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.visit("acme/groups/orders/public/console-readers")
	b.waitText("Stable")
	b.until(`document.querySelector('.stats.slim').innerText.includes('Lag\n0')`)
	b.shoot("group-stable-1440-light")
	b.click("Reset offsets…")
	b.waitText("Stop them first")
	b.click("Reset")
	b.until(`document.querySelector('dialog .callout.bad')`)
	b.click("Cancel")
	c.Close()
	b.waitText("Empty")
	b.click("Reset offsets…")
	b.click("Reset")
	b.until(`document.querySelector('.stats.slim').innerText.includes('Lag\n5')`)
	c = join()
	read(c) // reads all records again
	c.Close()
	b.until(`document.querySelector('.stats.slim').innerText.includes('Lag\n0')`)
	b.clean()
}

// TestReadOnlyData checks that a reader sees which permissions are missing.
func TestReadOnlyData(t *testing.T) {
	b := open(t, 1440, "light")
	id, secret := credentials(t, "reporting") // the console requests a token for each instance with them
	b.before(fmt.Sprintf(
		`sessionStorage.setItem('freshet.session', JSON.stringify({kind: 'client', id: %q, secret: %q, keep: true}))`,
		id, secret))
	b.visit("acme/topics/orders")
	b.until(`document.querySelector('.rows .row')`)
	b.until(button + `('New topic')?.title.includes('messaging.topics.create')`)
	b.visit("acme/topics/orders/public/default/orders?from=earliest")
	b.waitText("You do not have access to the messages of this topic")
	b.waitText("for a role that has it") // it does not suggest to sign in again
	b.waitText("messaging.topics.consume")
	b.shoot("topic-denied-1440-light")
	b.visit("acme/topics/orders/public/default/orders?tab=produce")
	b.until(button + `('Produce message')?.getAttribute('aria-disabled') === 'true'`)
	b.visit("acme/schemas/orders/invoices-value")
	for _, name := range []string{"Compatibility", "Delete", "New version", "Delete version"} {
		b.until(fmt.Sprintf(`%s(%q)?.getAttribute('aria-disabled') === 'true'`, button, name))
	}
	b.visit("acme/groups/orders/public/reporting")
	b.until(button + `('Reset offsets…')?.title.includes('messaging.subscriptions.update')`)
	b.clean()
}

// TestCrowd filters 10,000 real topics and 5,000 subjects without a noticeable pause.
func TestCrowd(t *testing.T) {
	const root = "/clusters/acme/events"
	work := make(chan int)
	var workers sync.WaitGroup
	for range 48 {
		workers.Go(func() {
			for i := range work {
				if _, err := send(t.Context(), http.MethodPut,
					fmt.Sprintf("%s/admin/v2/persistent/public/default/topic-%05d", root, i), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	topics, subjects := 10_000, 5_000
	for i := range topics {
		work <- i
	}
	close(work)
	workers.Wait()
	b := open(t, 1440, "light")
	b.as(server.Token)
	b.before(`window.longest = 0
		const longer = e => { longest = Math.max(longest, e.duration) }
		new PerformanceObserver(l => l.getEntries().forEach(longer)).observe({type: 'longtask', buffered: true})`)
	b.visit("acme/topics/events")
	b.waitText("10,000 topics")
	if rows := eval[int](b, `document.querySelectorAll('.rows .row').length`); rows == 0 || rows > 200 {
		t.Errorf("%d rows are rendered, want about one screen", rows)
	}
	b.shoot("topics-crowd-1440-light")
	filter := func(text string) string {
		return fmt.Sprintf(`(e => {
			e.value = %q
			e.dispatchEvent(new Event('input', {bubbles: true}))
		})(document.querySelector('[data-filter]'))`, text)
	}
	took := b.timed(filter("0777"), "topic-00777")
	t.Logf("10,000 topics: filtered within %.0f ms, the longest pause was %.0f ms", took, eval[float64](b, `longest`))
	var made sync.WaitGroup
	next := make(chan int)
	for range 32 {
		made.Go(func() {
			for i := range next {
				if _, err := send(t.Context(), http.MethodPost,
					fmt.Sprintf("%s/subjects/subject-%05d/versions", root, i),
					object{"schema": `"string"`}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range subjects {
		next <- i
	}
	close(next)
	made.Wait()
	b.visit("acme/schemas/events")
	b.waitText("5,000 subjects")
	took = b.timed(filter("0444"), "subject-00444")
	t.Logf("5,000 subjects: filtered within %.0f ms", took)
	if pause := eval[float64](b, `longest`); pause > 2000 {
		t.Errorf("page was blocked for %.0f ms, want at most 2000", pause)
	}
	b.clean()
}

// timed runs a script and returns the milliseconds until a text is on the page.
func (b *tab) timed(act, text string) float64 {
	b.t.Helper()
	began := time.Now()
	eval[any](b, `void `+act)
	b.waitText(text)
	return float64(time.Since(began).Microseconds()) / 1000
}

func TestSlowTopics(t *testing.T) {
	b := open(t, 390, "dark")
	b.as(server.Token)
	command(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{
			Latency: 300, DownloadThroughput: 100 << 10,
			UploadThroughput: 20 << 10,
		}},
	})
	command(b, page.Navigate, page.NavigateParams{URL: site + "/console/acme/topics/orders"})
	b.until(`document.querySelector('.skeleton, .boot')`)
	b.waitText("orders-2025")
	b.clean()
}

// TestAttackMarkupInMessages checks that markup in messages, names and schemas is shown as text.
func TestAttackMarkupInMessages(t *testing.T) {
	evil := `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>"'><svg onload=window.pwned=1>`
	topic := "public/default/" + "%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E"
	want(t, http.MethodPut, admin+topic, nil)
	want(t, http.MethodPut, admin+topic+"/properties", object{"x": evil})
	want(t, http.MethodPost, messages+topic+"/messages",
		object{
			"producerName": evil,
			"messages": []object{
				{"payload": evil, "encoding": "text", "key": evil, "properties": object{evil: evil}},
				{"payload": object{"a": evil}, "encoding": "json"},
			},
		})
	want(t, http.MethodPost, ordersRoot+"/admin/v2/schemas/"+topic+"/schema",
		object{"type": "JSON", "schema": `{"type":"record","name":"R","doc":"` + strings.ReplaceAll(evil, `"`, `\"`) +
			`","fields":[]}`, "properties": object{"x": evil}})
	want(t, http.MethodPost, registry+"/subjects/evil/versions",
		object{"schemaType": "JSON", "schema": `{"type":"object","title":"` +
			strings.ReplaceAll(evil, `"`, `\"`) + `"}`})
	b := open(t, 1440, "light")
	b.as(server.Token)
	tries, successes := 0, 0
	for _, view := range []string{
		"topics/orders", "topics/orders/" + topic + "?from=earliest",
		"topics/orders/" + topic + "?tab=schema", "topics/orders/" + topic + "?tab=settings",
		"topics/orders/" + topic + "?tab=produce", "schemas/orders/evil",
		"groups/orders/public/" + "%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E",
		"schemas/orders?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E",
	} {
		b.visit("acme/" + view)
		if strings.Contains(view, "from=earliest") {
			b.until(`document.querySelectorAll('.rows .row').length === 2`)
			for i := range 2 {
				eval[any](b, fmt.Sprintf(`void document.querySelectorAll('.rows a')[%d].click()`, i))
				b.until(`document.querySelector('.message pre')?.innerText.includes('onerror')`)
			}
		}
		tries++
		if eval[bool](b, `!!window.pwned || !!document.querySelector('main img, main script, main svg[onload]')`) {
			successes++
			t.Errorf("%s executes or renders markup from the server", view)
		}
	}
	b.clean()
	tally.Attack(t, "markup in messages, names and schemas", tries, successes)
}
