package howto_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/test/pages"
	"freshet/test/testserver"
)

// TestMigration runs the pages about migration twice, with a second server as the source.
func TestMigration(t *testing.T) {
	t.Parallel()
	need(t, "bash", "curl", "jq")
	source, binary := start(t)
	shell(t, fillSource, folderWith(t, binary), accessTo(source)...)
	target, _ := start(t)
	for page, wants := range map[string][]string{
		"migrate-registry.md": {
			"2 subjects with 3 versions read (1 soft-deleted): 3 versions and 1 levels would be written",
			"2 subjects with 3 versions read (1 soft-deleted): 3 versions and 2 levels written",
			"com.shop.Order", "FULL", " 0 versions and 0 levels written, 5 existed",
		},
		"migrate-pulsar.md": {`"sales"`},
	} {
		script, folder := commandsOf(t, page), folderWith(t, binary)
		env := append(accessTo(target), "SOURCE_REGISTRY="+source.URL, "SOURCE_ADMIN="+source.URL,
			"SOURCE_PASSWORD="+source.Token)
		out := shell(t, script, folder, env...)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: output does not contain %q\n%s", page, want, out)
			}
		}
		shell(t, script, folder, env...) // a page can be repeated
	}
	out := shell(t, `admin=$FRESHET_SERVER/admin/v2
curl --fail-with-body -sS -H "Authorization: Bearer $(cat $FRESHET_DATA/admin.token)" \
  $admin/persistent/sales/web/orders/partitions $admin/namespaces/sales/web/messageTTL`,
		t.TempDir(), accessTo(target)...)
	if !strings.Contains(out, `"partitions":3`) || !strings.HasSuffix(strings.TrimSpace(out), "77") {
		t.Errorf("topic of the source: got %s, want 3 partitions, and 77 seconds to live", out)
	}
}

// fillSource creates schemas and topics on the server that is the source.
const fillSource = `
freshet tenant create com; freshet namespace create com/shop
freshet tenant create sales; freshet namespace create sales/web
echo '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}' >order.avsc
cat >order2.avsc <<'END'
{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},
  {"name": "n", "type": "int", "default": 0}]}
END
echo '{"type": "record", "name": "Line", "fields": [{"name": "order", "type": "Order"}]}' >line.avsc
freshet schema register com.shop.Order order.avsc
freshet schema register com.shop.Order order2.avsc
freshet schema register a-line line.avsc --reference Order=com.shop.Order:2
freshet schema delete com.shop.Order 1
freshet schema level a-line FULL
call() {
  curl --fail-with-body -sS -H Content-Type:application/json \
    -H "Authorization: Bearer $(cat $FRESHET_DATA/admin.token)" -X "$1" "$FRESHET_SERVER/admin/v2/$2" -d "$3"
}
call PUT persistent/sales/web/orders/partitions 3
call POST namespaces/sales/web/messageTTL 77
`

// TestGitOps runs the page about GitOps, twice.
func TestGitOps(t *testing.T) {
	t.Parallel()
	need(t, "bash", "openssl")
	kubectl(t)
	server, binary := start(t)
	script, folder := commandsOf(t, "gitops.md"), folderWith(t, binary)
	env := append(accessTo(server), "HOME="+folder)
	for range 2 {
		out := shell(t, script, folder, env...)
		for _, want := range []string{"apikey.cloud.vendor.io/checkout-1", "condition met", "no difference"} {
			if !strings.Contains(out, want) {
				t.Errorf("output does not contain %q\n%s", want, out)
			}
		}
	}
	token, err := os.ReadFile(filepath.Join(folder, "checkout.token"))
	if err != nil || strings.Count(string(token), ".") != 2 {
		t.Errorf("decrypted token: got %d bytes (error %v), want a token", len(token), err)
	}
	for _, name := range []string{"shop.yaml", "key.yaml"} {
		text, err := os.ReadFile(filepath.Join(folder, "repository", name))
		if err != nil || strings.Contains(string(text), "PRIVATE") {
			t.Errorf("%s: error %v, or it contains a private key", name, err)
		}
	}
}

// accessTo returns the environment that the pages expect.
func accessTo(server *testserver.Server) []string {
	return []string{
		"FRESHET_SERVER=" + server.URL, "FRESHET_DATA=" + server.DataDir, "FRESHET_DATA_DIR=" + server.DataDir,
	}
}

// folderWith returns a new folder with the program freshet, where shell finds it.
func folderWith(t *testing.T, binary string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(folder, "freshet")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// commandsOf returns the commands of a page.
func commandsOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs/howto", page))
	if err != nil {
		t.Fatal(err)
	}
	return pages.Commands(string(text))
}
