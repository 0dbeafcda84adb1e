package sharedfiles

import (
	"os"
	"strings"
	"testing"

	"freshet/internal/config"
	"freshet/internal/identity"
)

// TestAgreed checks that a file is taken from most of the members, and never from members that
// disagree evenly.
func TestAgreed(t *testing.T) {
	t.Parallel()
	files := func(token string) map[string][]byte { return map[string][]byte{"admin.token": []byte(token)} }
	for name, tc := range map[string]struct {
		all  map[string]map[string][]byte
		want string
		err  string
	}{
		"nobody":          {nil, "", ""},
		"without it":      {map[string]map[string][]byte{"a": {}}, "", ""},
		"the same":        {map[string]map[string][]byte{"a": files("x"), "b": files("x")}, "x", ""},
		"only one has it": {map[string]map[string][]byte{"a": {}, "b": files("x")}, "x", ""},
		"most": {
			map[string]map[string][]byte{"a": files("x"), "b": files("y"), "c": files("x"), "d": files("x")}, "x", "",
		},
		"evenly different": {map[string]map[string][]byte{"a": files("x"), "b": files("y")}, "", "copy the right one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := agreed(tc.all)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("got error %v, want %q", err, tc.err)
			}
			if string(got["admin.token"]) != tc.want {
				t.Errorf("got %q, want %q", got["admin.token"], tc.want)
			}
		})
	}
}

// TestAgreedNewline checks that a token with a newline at its end is the same token.
func TestAgreedNewline(t *testing.T) {
	t.Parallel()
	got, err := agreed(map[string]map[string][]byte{
		"a": {"admin.token": []byte("x")}, "b": {"admin.token": []byte("x\n")},
	})
	if token := string(got["admin.token"]); err != nil || token != "x" && token != "x\n" {
		t.Errorf("got %q, %v, want x", token, err)
	}
}

// TestOutvoted checks that a token is wrong only if more than half of all members have another one.
func TestOutvoted(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	token := List(cfg)[0]
	if err := os.WriteFile(token.Path, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := func(token string) map[string][]byte { return map[string][]byte{"admin.token": []byte(token)} }
	for name, tc := range map[string]struct {
		theirs map[string]map[string][]byte
		wrong  bool
	}{
		"no response":             {nil, false},
		"both have it":            {map[string]map[string][]byte{"a": files("mine"), "b": files("mine")}, false},
		"both have another":       {map[string]map[string][]byte{"a": files("other"), "b": files("other\n")}, true},
		"one of both has another": {map[string]map[string][]byte{"a": files("mine"), "b": files("other")}, false},
		"only one responds":       {map[string]map[string][]byte{"a": files("other")}, false},
		"both differ":             {map[string]map[string][]byte{"a": files("other"), "b": files("another")}, false},
		"both have none":          {map[string]map[string][]byte{"a": {}, "b": {}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := outvoted(token, tc.theirs, 3)
			if (err != nil) != tc.wrong || err != nil && !strings.Contains(err.Error(), "a and b") {
				t.Errorf("got error %v, want one that names a and b: %t", err, tc.wrong)
			}
		})
	}
}

// TestDamagedSecrets damages the token and every bit of the key file. A damaged file is never sent to
// another member, and the check finds it.
func TestDamagedSecrets(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	token := cfg.Path("admin.token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := identity.NewKeyFile()
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(cfg.EncryptionKeyFile(), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(keys)
	if got := readIntact(cfg); string(got["admin.token"]) != "secret" || string(got["encryption.key"]) != string(keys) {
		t.Errorf("got %q, want both files", got)
	}
	begin := strings.Index(string(keys), `"key": "`) + len(`"key": "`)
	for i := begin; i < begin+43; i++ { // the last character before the padding has unused bits
		data := []byte(string(keys))
		data[i] ^= 1
		write(data)
		if got := readIntact(cfg); got["encryption.key"] != nil && i < begin+42 {
			t.Errorf("byte %d of the key flipped: the file is taken for intact", i-begin)
		}
	}
	for name, data := range map[string]string{"empty": "", "zeros": "\x00\x00\x00", "flipped": "sec\x12et"} {
		if err := os.WriteFile(token, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readIntact(cfg); got["admin.token"] != nil {
			t.Errorf("%s token is taken for intact", name)
		}
	}
}
