package contract

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

// echo starts a server that returns parts of the request, or fixed responses by path.
func echo(t *testing.T) Target {
	t.Helper()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/echo":
			w.Header().Set("X-Auth", r.Header.Get("Authorization"))
			w.Header().Set("X-Query", r.URL.RawQuery)
			w.Header().Set("X-Host", r.Host)
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(body)
		case "/eventually":
			if calls.Add(1) < 3 {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = io.WriteString(w, "{}")
		case "/stream":
			_, _ = io.WriteString(w, "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n")
		case "/bytes":
			_, _ = io.WriteString(w, "k8s\x00\xff")
		}
	}))
	t.Cleanup(server.Close)
	return Target{BaseURL: server.URL, Token: "s3cret", Client: server.Client()}
}

// execute runs a conversation and returns its first error.
func execute(t *testing.T, target Target, text string) error {
	t.Helper()
	c, err := Parse([]byte(text), fstest.MapFS{})
	if err != nil {
		return err
	}
	vars := Vars{"token": target.Token, "ns": "org-1", "list": []any{"a"}, "path": Template("/x/{{ns}}")}
	return c.execute(t.Context(), target, vars)
}

func exchange(request, response string) string {
	return "About.\n-- step --\n" + request + "\n==>\n" + response + "\n"
}

func post(body, response string) string { return exchange("POST /echo\n\n"+body, response) }

func TestPassingConversations(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"subset":              post(`{"a":1,"b":{"c":[1,2]}}`, "201\n\n{\"b\":{\"c\":[1,2]}}"),
		"status set":          post(`{}`, "200|201"),
		"status class":        post(`{}`, "2xx"),
		"numbers are numbers": post(`{"a":1.0}`, "201\n\n{\"a\":1}"),
		"absent":              post(`{"a":1}`, "201\n\n{\"b\":\"{{absent}}\"}"),
		"matchers": post(`{"a":"x","b":1,"c":true,"d":{},"e":[],"f":"2026-01-02T03:04:05Z"}`,
			"201\n\n"+`{"a":"{{string}}","b":"{{number}}","c":"{{bool}}",`+
				`"d":"{{object}}","e":"{{array}}","f":"{{time}}"}`),
		"expression": post(`{"a":"abc","b":12}`, "201\n\n"+`{"a":"{{re [a-c]{3}}}","b":"{{re 1.}}"}`),
		"contains":   post(`[{"n":1},{"n":2},{"n":3}]`, "201\n\n"+`["{{contains}}",{"n":3},{"n":1}]`),
		"unordered":  post(`[1,2]`, "201\n\n"+`["{{unordered}}",2,1]`),
		"lacks": post(`{"a":[{"n":1,"m":2}]}`,
			"201\n\n"+`{"a":["{{lacks}}",{"n":2}],"b":["{{lacks}}",{"n":1}]}`),
		"same captured twice":  post(`{"a":"x","b":"x"}`, "201\n\n"+`{"a":"{{v}}","b":"{{v}}"}`),
		"capture inside text":  post(`{"a":"id-7-end"}`, "201\n\n"+`{"a":"id-{{n}}-end"}`),
		"value outside string": post(`{"a":{{list}}}`, "201\n\n"+`{"a":{{list}}}`),
		"exact":                post(`{"a":1}`, "@exact\n201\n\n"+`{"a":1}`),
		"text":                 exchange("POST /echo\n\nplain words", "@body text\n201\n\nplain {{any}}"),
		"lines":                exchange("POST /echo\n\none two three", "@body contains\n201\n\nthree\none"),
		"yaml":                 exchange("POST /echo\n\na: 1\nb: [2]", "@body yaml\n201\n\nb: [2]"),
		"stream":               exchange("GET /stream", "@body stream\n200\n\n{\"n\":1}\n{\"n\":3}"),
		"prefix":               exchange("GET /bytes", "@body prefix\n200\n\n\"k8s\\x00\""),
		"empty":                exchange("GET /nothing", "@body empty\n200"),
		"default credentials":  post(`{}`, "201\nX-Auth: Bearer s3cret"),
		"no credentials":       exchange("POST /echo\nAuthorization: none\n\n{}", "201\nX-Auth: "),
		"own credentials":      exchange("POST /echo\nAuthorization: Basic abc\n\n{}", "201\nX-Auth: Basic abc"),
		"host":                 exchange("POST /echo\nHost: a.example\n\n{}", "201\nX-Host: a.example"),
		"long query": exchange("POST /echo\n    ?a=1\n    &b={{ns|query}}\n\n{}",
			"201\nX-Query: a=1&b=org-1"),
		"header pattern": post(`{}`, "201\nX-Auth: {{re Bearer .*}}\nX-None: {{absent}}"),
		"retry":          exchange("@retry 10s\nGET /eventually", "200"),
		"template":       post(`{"a":"{{path}}"}`, "201\n\n"+`{"a":"/x/org-1"}`),
		"back again": "About.\n-- first --\nGET /eventually\n==>\n404|200\n-- second --\n@again first " +
			"10s\nGET /eventually\n==>\n200\n",
		"saved bytes": "About.\n-- get --\nGET /bytes\n==>\n@save raw\n200\n-- put --\n@raw raw\nPOST " +
			"/echo\n==>\n@body prefix\n201\n\n\"k8s\\x00\\xff\"\n",
		"captured, then sent": "About.\n-- a --\nPOST /echo\n\n{\"rv\":\"a/b\"}\n==>\n201\n\n{\"rv\":\"{{rv}}\"}\n" +
			"-- b --\nPOST /echo?v={{rv|query}}\n==>\n201\nX-Query: v=a%2Fb\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := execute(t, echo(t), text); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFailingConversations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"status":            {post(`{}`, "200"), "status: want 200, got 201"},
		"missing key":       {post(`{"a":{}}`, "201\n\n"+`{"a":{"b":1}}`), "body.a.b: is missing"},
		"other value":       {post(`{"a":1}`, "201\n\n"+`{"a":2}`), "body.a: want 2, got 1"},
		"other type":        {post(`{"a":"1"}`, "201\n\n"+`{"a":1}`), "body.a"},
		"null":              {post(`{"a":null}`, "201\n\n"+`{"a":"{{any}}"}`), "body.a"},
		"must be absent":    {post(`{"a":1}`, "201\n\n"+`{"a":"{{absent}}"}`), "must be absent"},
		"too many elements": {post(`[1,2]`, "201\n\n[1]"), "want 1 elements, got 2"},
		"not contained":     {post(`[1]`, "201\n\n"+`["{{contains}}",2]`), "no element"},
		"does not lack":     {post(`[{"n":1,"m":2}]`, "201\n\n"+`["{{lacks}}",{"n":1}]`), "must be absent"},
		"used up":           {post(`[1]`, "201\n\n"+`["{{contains}}",1,1]`), "number 2"},
		"not exact":         {post(`{"a":1}`, "@exact\n201\n\n{}"), "body.a: is unexpected"},
		"two different":     {post(`{"a":"x","b":"y"}`, "201\n\n"+`{"a":"{{v}}","b":"{{v}}"}`), "body.b"},
		"not JSON":          {post(`<html>`, "201\n\n{}"), "not JSON"},
		"not YAML but JSON": {post(`{"a":1}`, "@body yaml\n201\n\na: 1"), "got JSON"},
		"header":            {post(`{}`, "201\nX-Auth: nobody"), "header X-Auth"},
		"header missing":    {post(`{}`, "201\nX-None: a"), "header X-None: is missing"},
		"stream order": {
			exchange("GET /stream", "@body stream\n200\n\n{\"n\":3}\n{\"n\":1}"),
			"not in the stream",
		},
		"text":           {exchange("POST /echo\n\nabc", "@body text\n201\n\nab"), "body"},
		"prefix":         {exchange("GET /bytes", "@body prefix\n200\n\n\"k9s\""), "want prefix"},
		"not empty":      {exchange("GET /bytes", "@body empty\n200"), "want none"},
		"unset variable": {exchange("GET /echo?a={{nobody}}", "200"), "nobody is not set"},
		"retries end":    {exchange("@retry 120ms\nGET /echo", "500"), "status"},
		"regular text":   {post(`{"a":"a.c"}`, "201\n\n"+`{"a":"abc{{x}}"}`), "body.a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := execute(t, echo(t), c.text)
			if err == nil {
				t.Fatal("got no error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %q, want one that contains %q", err, c.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no comment":        {"-- a --\nGET /\n==>\n200\n", "what it is about"},
		"no steps":          {"About.\n", "no steps"},
		"no arrow":          {"About.\n-- a --\nGET /\n200\n", "==>"},
		"no path":           {"About.\n-- a --\nGET\n==>\n200\n", "method and a path"},
		"no status":         {"About.\n-- a --\nGET /\n==>\nfine\n", "not a status"},
		"bad header":        {"About.\n-- a --\nGET /\nnonsense\n==>\n200\n", "not a header"},
		"unknown directive": {"About.\n-- a --\n@hurry\nGET /\n==>\n200\n", "@hurry"},
		"vague body":        {"About.\n-- a --\nGET /\n==>\n200\n\nwords\n", "@body"},
		"same name":         {"About.\n-- a --\nGET /\n==>\n200\n-- a --\nGET /\n==>\n200\n", "two steps"},
		"back to nowhere":   {"About.\n-- a --\n@again b 1s\nGET /\n==>\n200\n", "does not exist"},
		"back to itself":    {"About.\n-- a --\n@again a 1s\nGET /\n==>\n200\n", "before it"},
		"missing include":   {"About.\n-- include none.txtar --\n-- a --\nGET /\n==>\n200\n", "none.txtar"},
		"nameless case":     {"About.\n-- cases --\n{\"a\":1}\n-- a --\nGET /\n==>\n200\n", "no name"},
		"missing cases":     {"About.\n-- cases none.jsonl --\n-- a --\nGET /\n==>\n200\n", "none.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(c.text), fstest.MapFS{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestCases(t *testing.T) {
	t.Parallel()
	c, err := Parse([]byte(
		"About.\n-- cases kinds.jsonl --\n-- a --\nPOST /echo\n\n{{body}}\n==>\n201\n\n{\"n\":\"{{n}}\"}\n"),
		fstest.MapFS{"kinds.jsonl": {Data: []byte(
			"{\"case\":\"one\",\"body\":{\"n\":1},\"n\":1}\n\n{\"case\":\"two\",\"body\":{\"n\":2},\"n\":2}\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Cases) != 2 {
		t.Fatalf("got %d cases, want 2", len(c.Cases))
	}
	c.Run(t, echo(t))
}

func FuzzParse(f *testing.F) {
	f.Add(post(`{"a":"{{b}}"}`, "201\n\n{}"))
	f.Add("About.\n-- a --\n@retry 1s\nGET /\n ?x\n==>\n@body stream\n200\nA: b\n\n{}\n{}")
	f.Fuzz(func(_ *testing.T, text string) {
		c, err := Parse([]byte(text), fstest.MapFS{})
		if err != nil {
			return
		}
		for _, step := range c.Steps {
			_, _ = Vars{"a": "b"}.expand(step.Body)
			_, _ = Vars{"a": "b"}.expandOutsideStrings(step.Want.Body)
		}
	})
}
