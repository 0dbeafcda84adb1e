package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRecipientOfAnEnvironmentFile plays the person who receives the file of 'freshet apikey
// create --env-file', or what the command prints without the flag, and nothing else: they sign
// in, produce, consume, and use the registry, the examples and kcat.
func TestRecipientOfAnEnvironmentFile(t *testing.T) {
	t.Parallel()
	s, err := startOwn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	owner := t.TempDir()
	if err := populate(owner, s); err != nil {
		t.Fatal(err)
	}
	// The cluster of the key is not the cluster of the owner's context.
	if out, err := bash(t.Context(), owner, s, `freshet apply -f - <<END
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingInstance
metadata: {name: prod}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingCluster
metadata: {name: east}
spec: {instanceName: prod, location: local, broker: {}, config: {protocols: {stream: {}}}}
END
		freshet wait mc/east --for condition=Ready
		freshet topic create jobs --cluster east
		freshet sa create app
		for role in topic-producer topic-consumer schema-writer; do freshet grant $role --to app; done
		freshet apikey create app --account app --instance prod --env-file app.env
		freshet apikey create all --account app --cluster east --env-file all.env
		freshet apikey create printed --account app --instance prod > printed.token 2> printed.txt
		test "$(wc -l < printed.token)" = 1
		grep '^FRESHET_' printed.txt | sed "s/(the token above)/$(cat printed.token)/" > printed.env
		test "$(cut -d= -f1 printed.env)" = "$(cut -d= -f1 app.env)"
		if freshet apikey create wrong --account app --instance prod --cluster default --env-file wrong.env; then
			exit 1
		fi
		if freshet get ak/wrong; then exit 1; fi
		grep -q '^FRESHET_CLUSTER=east$' app.env
		grep -q '^FRESHET_INSTANCE=prod$' app.env`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"app.env", "all.env", "printed.env"} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "home"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct{ what, script string }{
			{"produce and consume", `freshet produce jobs '{"name": "one"}'
				test "$(freshet consume jobs -s work --create-from earliest)" = '{"name": "one"}'`},
			{"registry", `echo '"string"' | freshet schema register jobs-value - -o name
				freshet schema list | grep jobs-value`},
			{"context", `freshet context show | grep 'environment variable FRESHET_API_KEY'; freshet doctor > checks
				if grep -v ^ok checks; then exit 1; fi
				grep "^ok *stream .*$FRESHET_KAFKA" checks`},
			{"login", `freshet login --name work
				freshet login --name piped --token-file - <<< "$FRESHET_API_KEY"
				freshet context list | grep ' work .* east'
				env -u FRESHET_SERVER -u FRESHET_API_KEY -u FRESHET_CLUSTER -u FRESHET_CA_DATA \
					freshet --context work produce jobs '{"name": "two"}'
				freshet consume jobs -s work`},
			{"python3", `freshet produce jobs '{"name": "three"}'
				test "$(python3 -B "$CONSUME" jobs work 1)" = three`},
			{"kcat", `mechanism="-b $FRESHET_KAFKA -X security.protocol=$FRESHET_KAFKA_SECURITY -X sasl.mechanism=PLAIN
				-X sasl.username=$FRESHET_KAFKA_USER"
				echo '{"name": "four"}' | kcat -P -t jobs $mechanism -X sasl.password=token:$FRESHET_API_KEY
				freshet consume jobs -s work | grep four`},
		} {
			if _, err := exec.LookPath(step.what); (step.what == "kcat" || step.what == "python3") && err != nil {
				t.Logf("NOT TESTED: %s is not installed", step.what)
				continue
			}
			example, err := filepath.Abs("../../examples/python/consume.py")
			if err != nil {
				t.Fatal(err)
			}
			script := "export CONSUME=" + example + "\nset -a\n. " + filepath.Join(owner, name) + "\nset +a\n" +
				step.script
			if out, err := bash(t.Context(), dir, s, script); err != nil {
				t.Errorf("%s, %s: %v\n%s", name, step.what, err, strings.TrimSpace(out))
			}
		}
	}
}
