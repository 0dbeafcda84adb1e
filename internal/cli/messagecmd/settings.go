package messagecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/cli/command"
)

// setting is a setting of topics, namespaces or both.
type setting struct {
	namespace, topic string // last segment of its path; "" if it does not exist there
	form             string // describes its values
	parse            func(string) (any, error)
	format           func(any) string
}

// requireSetting is the contract of a topic.
const requireSetting = "require"

// settings are the settings by their names on the command line.
var settings = map[string]setting{
	"retention": {
		"retention", "retention", "TIME or TIME,SIZE: how long, and up to which size, acknowledged messages are kept",
		parseRetention, formatRetention,
	},
	"message-ttl": {
		"messageTTL", "messageTTL", "TIME: when a message that is not acknowledged expires; 0 for never",
		parseSeconds, formatSeconds,
	},
	"deduplication": {"deduplication", "deduplicationEnabled", "true or false", parseBool, formatPlain},
	"max-unacked": {
		"maxUnackedMessagesPerSubscription", "maxUnackedMessagesOnSubscription", "NUMBER",
		parseNumber, formatPlain,
	},
	"max-message-size": {"", "maxMessageSize", "SIZE", parseSize, formatSize},
	"max-topics":       {"maxTopicsPerNamespace", "", "NUMBER", parseNumber, formatPlain},
	"schema-compatibility": {
		"schemaCompatibilityStrategy", "schemaCompatibilityStrategy", "BACKWARD, FORWARD, FULL, …",
		func(text string) (any, error) { return strings.ToUpper(text), nil }, formatPlain,
	},
	"schema-validation": {
		"schemaValidationEnforced", "schemaValidationEnforced", "true or false",
		parseBool, formatPlain,
	},
	requireSetting: {
		"", "require", "EXPRESSION: must be true for every message; others are rejected",
		func(text string) (any, error) { return text, nil }, formatPlain,
	},
	"auto-topic-creation": {
		"autoTopicCreation", "", "true or false: whether a new schema or subscription creates its topic",
		parseAutoCreation, formatAutoCreation,
	},
}

// settingNames lists the settings of topics or of namespaces.
func settingNames(ofTopics bool) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if settings[name].leaf(ofTopics) != "" {
			names = append(names, name)
		}
	}
	return names
}

func (s setting) leaf(ofTopic bool) string {
	if ofTopic {
		return s.topic
	}
	return s.namespace
}

// settingHelp lists the settings for a help text.
func settingHelp(ofTopics bool) string {
	var b strings.Builder
	for _, name := range settingNames(ofTopics) {
		fmt.Fprintf(&b, "  %-21s %s\n", name, settings[name].form)
	}
	return strings.TrimRight(b.String(), "\n")
}

// settingChanges are the values of --set and --unset.
type settingChanges struct {
	ofTopic     bool
	set, remove []string
	values      map[string]any
}

func (s *settingChanges) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.set, "set", nil, "set a setting, as `name=value`; may be repeated")
	cmd.Flags().StringArrayVar(&s.remove, "unset", nil, "`name` of a setting to reset to its default; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("unset", // fails only for a flag that does not exist
		cobra.FixedCompletions(settingNames(s.ofTopic), cobra.ShellCompDirectiveNoFileComp))
}

// check parses the flags.
func (s *settingChanges) check(cmd *cobra.Command) error {
	s.values = map[string]any{}
	given, err := pairs(cmd, "set", s.set)
	if err != nil {
		return err
	}
	for name, text := range given {
		if settings[name].leaf(s.ofTopic) == "" {
			return s.unknown(cmd, name)
		}
		if s.values[name], err = settings[name].parse(text); err != nil {
			return command.Usagef(cmd, "--set %s=%s: %w", name, text, err)
		}
	}
	for _, name := range s.remove {
		if settings[name].leaf(s.ofTopic) == "" {
			return s.unknown(cmd, name)
		}
	}
	return nil
}

func (s *settingChanges) unknown(cmd *cobra.Command, name string) error {
	return command.Usagef(cmd, "setting %q does not exist; use one of %s", name,
		strings.Join(settingNames(s.ofTopic), ", "))
}

// apply changes the settings of the topic or the namespace at path.
func (s *settingChanges) apply(ctx context.Context, c *client.Client, path string) error {
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		leaf := path + "/" + settings[name].leaf(s.ofTopic)
		if err := adminCall(ctx, c, http.MethodPost, leaf, s.values[name], nil); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	for _, name := range s.remove {
		leaf := path + "/" + settings[name].leaf(s.ofTopic)
		if err := adminCall(ctx, c, http.MethodDelete, leaf, nil, nil); err != nil {
			return fmt.Errorf("resetting %s: %w", name, err)
		}
	}
	return nil
}

// readSettings returns the settings of the topic or the namespace at path, formatted. It omits
// those that are not set. If the caller may not read one of them, it returns client.ErrDenied and those before it.
func readSettings(ctx context.Context, c *client.Client, path string, ofTopic bool) (map[string]string, error) {
	found := map[string]string{}
	for _, name := range settingNames(ofTopic) {
		var value any
		err := adminCall(ctx, c, http.MethodGet, path+"/"+settings[name].leaf(ofTopic), nil, &value)
		switch {
		case errors.Is(err, client.ErrDenied):
			return found, err
		case err != nil:
			return nil, err
		case value != nil:
			found[name] = settings[name].format(value)
		}
	}
	return found, nil
}

var dayForm = regexp.MustCompile(`^(\d{1,6})d$`)

// parseTime parses a duration, which may be a number of days: 7d.
func parseTime(text string) (time.Duration, error) {
	if match := dayForm.FindStringSubmatch(text); match != nil {
		n, err := strconv.Atoi(match[1])
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration, such as 30m, 12h or 7d", text)
	}
	return d, nil
}

var sizeForm = regexp.MustCompile(`^(\d{1,12})([KMGT]?)(i?B)?$`)

// parseBytes parses a size with a binary unit: 10MiB, 10M or 10485760.
func parseBytes(text string) (int64, error) {
	match := sizeForm.FindStringSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("%q is not a size, such as 512KiB or 10GiB", text)
	}
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return 0, err
	}
	return n << map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2]], nil
}

// retentionUnlimited is the API's value for a retention without a limit.
const retentionUnlimited = -1

func parseRetention(text string) (any, error) {
	duration, size, _ := strings.Cut(text, ",")
	minutes, megabytes := retentionUnlimited, int64(retentionUnlimited)
	if duration != "unlimited" {
		d, err := parseTime(duration)
		if err != nil {
			return nil, err
		}
		minutes = int((d + time.Minute - 1) / time.Minute)
	}
	if size != "" && size != "unlimited" {
		n, err := parseBytes(size)
		if err != nil {
			return nil, err
		}
		megabytes = (n + 1<<20 - 1) >> 20
	}
	if minutes == 0 {
		megabytes = 0 // no retention
	}
	return map[string]any{"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}, nil
}

func formatRetention(value any) string {
	fields, _ := value.(map[string]any)
	minutes, _ := fields["retentionTimeInMinutes"].(float64)
	megabytes, _ := fields["retentionSizeInMB"].(float64)
	text := "unlimited"
	if minutes >= 0 {
		text = (time.Duration(minutes) * time.Minute).String()
	}
	if megabytes >= 0 {
		text += "," + formatBytes(int64(megabytes)<<20)
	}
	return text
}

func parseSeconds(text string) (any, error) {
	d, err := parseTime(text)
	return int64(d.Seconds()), err
}

func formatSeconds(value any) string {
	seconds, _ := value.(float64)
	return (time.Duration(seconds) * time.Second).String()
}

func parseBool(text string) (any, error) {
	value, err := strconv.ParseBool(text)
	if err != nil {
		return nil, errors.New("use true or false")
	}
	return value, nil
}

func parseNumber(text string) (any, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

func parseSize(text string) (any, error) { return parseBytes(text) }

func formatSize(value any) string {
	n, _ := value.(float64)
	return formatBytes(int64(n))
}

func parseAutoCreation(text string) (any, error) {
	allow, err := parseBool(text)
	return map[string]any{"allowAutoTopicCreation": allow, "topicType": "non-partitioned"}, err
}

func formatAutoCreation(value any) string {
	fields, _ := value.(map[string]any)
	return fmt.Sprint(fields["allowAutoTopicCreation"])
}

func formatPlain(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
