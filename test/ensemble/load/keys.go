package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/test/ensemble/history"
)

// useKeys issues keys, uses them at every member, revokes them, and uses them again, with
// the resource API and the message administration API.
func (w *worker) useKeys(ctx context.Context) {
	for w.longPause(ctx) {
		name := fmt.Sprintf("key-%d", w.next)
		object := map[string]any{
			"apiVersion": resources.APIKeys.APIVersion(), "kind": "APIKey", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"serviceAccountName": robot},
		}
		m := w.any()
		start := w.recorder.Now()
		made, err := m.resources.Create(ctx, resources.APIKeys, organization, object, resources.WriteOptions{})
		w.recorder.Add(start, w.op(m, history.Issue, name, err))
		if err != nil {
			continue
		}
		token := made.Text("status", "token")
		w.useEverywhere(ctx, name, token)
		ref := resources.Ref{Kind: resources.APIKeys, Organization: organization, Name: name}
		for done := false; !done && w.pause(ctx); {
			m, start = w.any(), w.recorder.Now()
			_, err := m.resources.Patch(ctx, ref, map[string]any{"spec": map[string]any{"revoke": true}},
				resources.WriteOptions{})
			w.recorder.Add(start, w.op(m, history.Revoke, name, err, client.ErrConflict))
			done = err == nil
		}
		w.useEverywhere(ctx, name, token)
	}
}

// serviceAccounts is a call that needs a valid key.
const serviceAccounts = "/apis/cloud.vendor.io/v1alpha1/namespaces/default/serviceaccounts?limit=1"

func (w *worker) useEverywhere(ctx context.Context, name, token string) {
	for _, m := range w.members {
		w.use(ctx, m, name, token, serviceAccounts)
		w.use(ctx, m, name, token, "/admin/v2/persistent/public/default/"+w.topics[0]+"/partitions")
	}
}

// use makes a call with a key. The response 403 is as good as 200: both show that the
// key is valid.
func (w *worker) use(ctx context.Context, m *member, name, token, path string) history.Outcome {
	ctx, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+path, http.NoBody)
	if err != nil {
		panic(err) // the URL is always valid
	}
	request.Header.Set("Authorization", "Bearer "+token)
	start := w.recorder.Now()
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		err = response.Body.Close()
	}
	op := history.Op{Kind: history.Use, Client: w.name, Member: m.Name, Object: name, Outcome: history.OK, Note: path}
	switch {
	case err != nil:
		op.Outcome, op.Note = history.Unknown, errors.Join(errors.New(path), err).Error()
	case response.StatusCode == http.StatusUnauthorized:
		op.Outcome = history.Refused
	case response.StatusCode != http.StatusOK && response.StatusCode != http.StatusForbidden:
		op.Outcome, op.Note = history.Unknown, path+": "+response.Status
	}
	w.recorder.Add(start, op)
	return op.Outcome
}
