package archtest

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"freshet/internal/config"
	"freshet/test/pages"
)

// fixedLimits maps the fixed limits of docs/reference/limits.md to the constants that set them: the package and
// the constant, or the field of messaging.Limits.
var fixedLimits = map[string]string{
	"key, properties and producer name of a message over HTTP":  "broker/messaging MetadataBytes",
	"properties of a message over HTTP":                         "surfaces/messageapi maxProperties",
	"idempotency key":                                           "surfaces/messageapi maxIdempotencyKey",
	"messages or ids in one call":                               "broker/messaging MaxBatch",
	"payloads in one call":                                      "broker/messaging BatchBytes",
	"shortest lease":                                            "broker/messaging MinLease",
	"longest lease":                                             "broker/messaging MaxLease",
	"longest delay of a delivery":                               "broker/messaging MaxDelay",
	"leased messages of a subscription":                         "broker/messaging MaxUnacked",
	"partitions of a topic":                                     "broker/messaging Partitions",
	"subscriptions of a topic":                                  "broker/messaging Subscriptions",
	"topics of a cluster":                                       "broker/messaging Topics",
	"namespaces of a cluster":                                   "broker/messaging Namespaces",
	"tenants of a cluster":                                      "broker/messaging Tenants",
	"roles in a list of permissions":                            "broker/messaging maxRoles",
	"properties of a topic, namespace, subscription or schema":  "broker/messaging maxPropertyBytes",
	"contract of a topic":                                       "broker/filter MaxContract",
	"operations of a contract for every message":                "broker/filter maxFixed",
	"schema of a topic":                                         "broker/messaging SchemaBytes",
	"versions of a topic's schema":                              "broker/messaging SchemaCount",
	"request other than Produce":                                "surfaces/kafkaapi maxControlFrame",
	"request without a permission on the cluster":               "surfaces/kafkaapi maxOutsiderFrame",
	"request before authentication":                             "surfaces/kafkaapi maxFrameBeforeAuth",
	"connections of one address":                                "surfaces/kafkaapi maxConnectionsByAddress",
	"idle connection":                                           "surfaces/kafkaapi idleTimeout",
	"authentication":                                            "surfaces/kafkaapi authTimeout",
	"responses in flight on a connection":                       "surfaces/kafkaapi maxPendingResponses",
	"record batch":                                              "broker/messaging defaultBatchBytes",
	"decompressed batch":                                        "broker/records MaxDecompressedBytes",
	"records of a batch":                                        "broker/records MaxRecords",
	"headers of a record":                                       "broker/records MaxHeaders",
	"size of a record's headers":                                "broker/records MaxHeaderBytes",
	"response to a Fetch":                                       "surfaces/kafkaapi maxFetchBytes",
	"wait of a Fetch":                                           "surfaces/kafkaapi maxFetchWait",
	"fetch sessions":                                            "surfaces/kafkaapi maxSessions",
	"partitions of a fetch session":                             "surfaces/kafkaapi maxSessionPartitions",
	"topics of a request":                                       "surfaces/kafkaapi maxTopics",
	"partitions of a request":                                   "surfaces/kafkaapi maxPartitions",
	"longest delay of a response by a rate quota":               "surfaces/kafkaapi maxThrottle",
	"groups of a cluster":                                       "broker/groups maxGroups",
	"members of a group":                                        "broker/groups maxMembers",
	"metadata or assignment of a member":                        "broker/groups maxMemberBytes",
	"metadata of all members of a group":                        "broker/groups maxGroupBytes",
	"metadata of all members of a cluster's groups":             "broker/groups maxClusterBytes",
	"expression of a search or a filter":                        "broker/filter MaxExpression",
	"messages for which a receive evaluates a filter at a time": "storage/pebble maxSelect",
	"share sessions":                                            "surfaces/kafkaapi maxShareSessions",
	"share sessions of one account":                             "surfaces/kafkaapi maxShareSessionsOfOne",
	"partitions of a share session":                             "surfaces/kafkaapi maxShareSessionPartitions",
	"records of a partition on lease to a share session":        "surfaces/kafkaapi maxAcquired",
	"records on lease to a share session":                       "surfaces/kafkaapi maxAcquiredInSession",
	"members of a share group":                                  "broker/groups maxShareMembers",
	"members of a share group of one account":                   "broker/groups maxShareMembersOfOne",
	"groups of a tenant with configurations":                    "broker/messaging maxConfiguredGroups",
	"group id":                                                  "broker/groups maxGroupID",
	"instance id":                                               "broker/groups maxInstanceID",
	"shortest session timeout":                                  "broker/groups minSessionTimeout",
	"longest session timeout":                                   "broker/groups maxSessionTimeout",
	"partitions of a commit":                                    "broker/groups maxOffsets",
	"metadata of a committed offset":                            "broker/groups maxOffsetMetadata",
	"regular expression of a subscription":                      "broker/groups maxPatternBytes",
	"request body, and with it a schema":                        "surfaces/registryapi maxBody",
	"direct references of a schema":                             "registry/schemas maxReferences",
	"levels of references":                                      "registry/schemas maxReferenceDepth",
	"schemas that a schema refers to, directly and indirectly":  "registry/schemas maxDependencies",
	"size of all schemas that a schema refers to":               "registry/schemas maxClosureBytes",
	"steps of one call":                                         "base/workpool maxSteps",
	"time of one call, without waiting":                         "base/workpool maxTime",
	"nesting of an Avro schema":                                 "registry/avro maxJSONDepth",
	"nesting of a JSON schema":                                  "registry/jsonschema maxDepth",
	"nesting of a Protobuf schema":                              "registry/protobuf maxDepth",
	"file of an import":                                         "surfaces/registryapi maxImport",
	"line of an import":                                         "registry/schemas maxImportLine",
	"YAML body":                                                 "controlplane/apiserver maxYAML",
	"values of a YAML body with aliases expanded":               "controlplane/apiserver maxYAMLNodes",
	"finalizers of an object":                                   "controlplane/store maxFinalizers",
	"owner references of an object":                             "controlplane/store maxOwners",
	"wait for a place in flight":                                "controlplane/apiserver maxInFlightWait",
	"API keys of an instance":                                   "controlplane/kinds/apikey MaxKeys",
	"role bindings of an organization":                          "controlplane/kinds/rolebinding MaxBindings",
	"roles of an organization":                                  "controlplane/kinds/role MaxRoles",
	"permissions of a role":                                     "controlplane/kinds/role maxPermissions",
	"subjects of a role binding":                                "controlplane/kinds/rolebinding maxSubjects",
	"longest lifetime of an access token that an instance can set": "controlplane/kinds/messaginginstance " +
		"maxTokenLifetime",
	"browser sessions of a person": "identity/signin maxSessions",
	"passkeys of a person":         "identity/signin maxPasskeys",
	"password":                     "identity/signin maxPassword",
}

// TestLimitsPage compares every value of docs/reference/limits.md with the default of its setting, or with
// the constant that sets it.
func TestLimitsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	constants, seen := &sourceConstants{t: t, packages: map[string]map[string]constant.Value{}}, map[string]bool{}
	rows := pages.Rows(string(page))
	if len(rows) < 100 {
		t.Errorf("page has %d limits, want at least 100", len(rows))
	}
	for _, row := range rows {
		if len(row) != 3 {
			t.Errorf("row %q: want limit, value and setting", row)
			continue
		}
		got, isTime, err := parseLimit(row[1])
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		var want int64
		if setting := strings.Trim(row[2], "`"); setting != "fixed" {
			want = settingValue(t, setting)
		} else if where, ok := fixedLimits[row[0]]; ok {
			seen[row[0]] = true
			want = constants.value(where)
			if isTime && want > 0 && want < int64(time.Second) {
				want *= int64(time.Second) // a constant in seconds
			}
		} else {
			t.Errorf("%s: no constant in fixedLimits sets it", row[0])
			continue
		}
		if got != want {
			t.Errorf("%s: page has %s, which is %d; the code has %d", row[0], row[1], got, want)
		}
	}
	for limit := range fixedLimits {
		if !seen[limit] {
			t.Errorf("page has no limit %q", limit)
		}
	}
}

var (
	limitText  = regexp.MustCompile(`^([\d,]+)(?: (\w+))?$`)
	limitUnits = map[string]int64{
		"": 1, "bytes": 1, "characters": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
		"s": int64(time.Second), "min": int64(time.Minute), "h": int64(time.Hour), "days": 24 * int64(time.Hour),
	}
)

// parseLimit returns the value of a text such as "8 MiB" or "30 s", times in nanoseconds.
func parseLimit(text string) (n int64, isTime bool, err error) {
	m := limitText.FindStringSubmatch(text)
	if m == nil || limitUnits[m[2]] == 0 {
		return 0, false, fmt.Errorf("value %q is not a number with a known unit", text)
	}
	n, err = strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
	return n * limitUnits[m[2]], limitUnits[m[2]] >= int64(time.Second), err
}

// settingValue returns the default of a setting such as limits.messageBody.
func settingValue(t *testing.T, setting string) int64 {
	t.Helper()
	v := reflect.ValueOf(config.Default()).Elem()
	for name := range strings.SplitSeq(setting, ".") {
		field := reflect.Value{}
		for i := range v.NumField() {
			tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if tag == "" {
				tag, _, _ = strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			}
			if tag == name {
				field = v.Field(i)
			}
		}
		if !field.IsValid() {
			t.Errorf("configuration has no setting %s", setting)
			return -1
		}
		v = field
	}
	if v.CanInt() {
		return v.Int()
	}
	return int64(v.Float())
}

// sourceConstants evaluates constants of packages from their sources, without compiling them.
type sourceConstants struct {
	t        *testing.T
	packages map[string]map[string]constant.Value // by folder below internal and name
}

// value returns the constant that "folder name" identifies.
func (s *sourceConstants) value(where string) int64 {
	s.t.Helper()
	folder, name, _ := strings.Cut(where, " ")
	if s.packages[folder] == nil {
		s.packages[folder] = s.load(filepath.Join("..", filepath.FromSlash(folder)))
	}
	found := s.packages[folder][name]
	if found == nil {
		s.t.Errorf("package %s has no constant %s", folder, name)
		return -1
	}
	n, exact := constant.Int64Val(constant.ToInt(found))
	if !exact {
		s.t.Errorf("%s of package %s is not an integer", name, folder)
	}
	return n
}

// load returns the constants of a package, and its calls setDefault(&l.Field, value) by field. Errors of
// types do not matter, because imports are missing.
func (s *sourceConstants) load(folder string) map[string]constant.Value {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		s.t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			s.t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	checker := types.Config{Importer: onlyTime{}, Error: func(error) {}}
	checked, _ := checker.Check(folder, set, files, info) // the error is about missing imports
	values := map[string]constant.Value{}
	for _, name := range checked.Scope().Names() {
		if c, ok := checked.Scope().Lookup(name).(*types.Const); ok && c.Val().Kind() != constant.Unknown {
			values[name] = c.Val()
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 || types.ExprString(call.Fun) != "setDefault" {
				return true
			}
			if field, ok := strings.CutPrefix(types.ExprString(call.Args[0]), "&l."); ok {
				values[field] = info.Types[call.Args[1]].Value
			}
			return true
		})
	}
	return values
}

// onlyTime imports package time with its durations, and no other package.
type onlyTime struct{}

// Import implements types.Importer.
func (onlyTime) Import(path string) (*types.Package, error) {
	if path != "time" {
		return nil, fmt.Errorf("%s is not needed", path)
	}
	p := types.NewPackage("time", "time")
	name := types.NewTypeName(token.NoPos, p, "Duration", nil)
	duration := types.NewNamed(name, types.Typ[types.Int64], nil)
	p.Scope().Insert(name)
	for unit, d := range map[string]time.Duration{
		"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
	} {
		p.Scope().Insert(types.NewConst(token.NoPos, p, unit, duration, constant.MakeInt64(int64(d))))
	}
	p.MarkComplete()
	return p, nil
}
